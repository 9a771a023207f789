//! librdkafka's cluster in memory, a way to it that a test can cut, and a consumer.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]
#![allow(dead_code, unused_imports, reason = "each test target uses a part of it")]

mod narrow;
mod way;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_testkit::publishers::Arrived;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, DefaultProducerContext, Producer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use tokio::time::Instant;

pub(crate) use narrow::NarrowWay;
pub(crate) use way::{Door, Way};

/// Partitions of each topic.
pub(crate) const PARTITIONS: i32 = 3;
/// How long what was confirmed may need until a consumer sees it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing has to come until that is all.
const SILENCE: Duration = Duration::from_millis(400);

/// A cluster of one broker in this process.
pub(crate) struct Cluster {
    /// Holds the cluster, and can be sent to other threads, which the cluster itself cannot.
    owner: BaseProducer,
    pub(crate) address: SocketAddr,
    names: AtomicUsize,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let owner: BaseProducer =
            ClientConfig::new().set("test.mock.num.brokers", "1").create().expect("a cluster in memory");
        let address = owner.client().mock_cluster().expect("a cluster").bootstrap_servers();
        Self { address: address.parse().expect("an address"), owner, names: AtomicUsize::new(0) }
    }

    pub(crate) fn mock(&self) -> MockCluster<'_, DefaultProducerContext> {
        self.owner.client().mock_cluster().expect("a cluster")
    }

    pub(crate) fn url(&self) -> String {
        format!("kafka://{}", self.address)
    }

    pub(crate) fn name(&self) -> String {
        format!("topic-{}", self.names.fetch_add(1, Ordering::SeqCst))
    }

    pub(crate) fn topic(&self) -> String {
        let name = self.name();
        self.mock().create_topic(&name, PARTITIONS, 1).expect("a topic");
        name
    }

    pub(crate) async fn arrived(&self, topic: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
        read(self.address, topic, least).await
    }
}

/// Reads all partitions of a topic from their beginning, each in its order.
pub(crate) async fn read(broker: SocketAddr, topic: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
    Ok(read_partitions(broker, topic, least).await?.into_values().flatten().collect())
}

/// The same, by partition.
pub(crate) async fn read_partitions(
    broker: SocketAddr,
    topic: &str,
    least: usize,
) -> Result<HashMap<i32, Vec<Arrived>>, BoxError> {
    let topic = topic.to_owned();
    tokio::task::spawn_blocking(move || read_blocking(broker, &topic, least)).await?
}

fn read_blocking(broker: SocketAddr, topic: &str, least: usize) -> Result<HashMap<i32, Vec<Arrived>>, BoxError> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", broker.to_string())
        .set("group.id", "tests")
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "50")
        .create()?;
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
    let partitions = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
    let mut list = TopicPartitionList::new();
    for partition in 0..i32::try_from(partitions)? {
        list.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    let mut arrived: HashMap<i32, Vec<Arrived>> = HashMap::new();
    let (mut count, began) = (0, Instant::now());
    loop {
        let enough = count >= least;
        match consumer.poll(if enough { SILENCE } else { Duration::from_millis(100) }) {
            Some(Ok(message)) => {
                count += 1;
                arrived.entry(message.partition()).or_default().push(shape(&message));
            }
            // The broker of a test comes and goes.
            Some(Err(KafkaError::MessageConsumption(
                RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::AllBrokersDown,
            ))) => {}
            Some(Err(error)) => return Err(error.into()),
            None if enough || began.elapsed() > PATIENCE => break,
            None => {}
        }
    }
    Ok(arrived)
}

fn shape(message: &BorrowedMessage<'_>) -> Arrived {
    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let headers = message.headers().map_or_else(Vec::new, |headers| {
        headers.iter().map(|header| (header.key.to_owned(), text(header.value).unwrap_or_default())).collect()
    });
    let mut arrived = Arrived::default();
    arrived.key = text(message.key());
    arrived.headers = headers;
    arrived.content_type = arrived.header("content-type").map(str::to_owned);
    arrived.body = message.payload().unwrap_or_default().to_vec();
    arrived
}
