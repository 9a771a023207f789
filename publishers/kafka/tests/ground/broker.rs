//! What brokers do to a producer: they go and come back, refuse, and have limits of their own.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Cluster, NarrowWay, PARTITIONS, Way, read_partitions};
use futures_util::future::join_all;
use pillarbox_core::examine::{Checked, Judgement};
use pillarbox_core::publisher::PublishErrorKind::{Misconfigured, Permanent, Unavailable};
use pillarbox_core::publisher::{FailureScope, Message, Publisher as _, Receipt};
use pillarbox_kafka::{KafkaOptions, KafkaPublisher};
use pillarbox_testkit::publishers::{Link as _, Load, load_through, message, messages};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, Producer as _};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

fn publisher(url: String, change: impl FnOnce(&mut KafkaOptions)) -> KafkaPublisher {
    let mut options = KafkaOptions::new(url);
    change(&mut options);
    KafkaPublisher::new(options).expect("options")
}

fn kinds(receipts: &[Receipt]) -> Vec<Option<pillarbox_core::publisher::PublishErrorKind>> {
    receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect()
}

fn keyed(topic: &str, key: &str) -> Message {
    let mut message = message(topic);
    message.key = Some(key.into());
    message
}

/// Ten thousand events, while the connections are cut and the broker is away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_broker_comes_and_goes() {
    let cluster = Cluster::start();
    let way = Way::to(cluster.address).await.expect("a way");
    let publisher = publisher(way.url(), |options| options.timeout = Duration::from_secs(2));
    let topic = cluster.topic();
    let disaster = async {
        way.cut();
        way.refuse().await;
        cluster.mock().broker_down(1)?;
        sleep(Duration::from_secs(3)).await;
        cluster.mock().broker_up(1)?;
        way.pass();
        Ok(())
    };
    let confirmed = load_through(&publisher, &topic, Load::default(), disaster).await.expect("all are confirmed");
    let arrived = cluster.arrived(&topic, 10_000).await.expect("reads");
    let ids = arrived.iter().filter_map(|message| message.header("event-id"));
    let duplicates = confirmed.duplicates_among(ids).expect("none is lost");
    println!("{} failures, {duplicates} duplicates, {:?}", confirmed.failures, confirmed.took);
    assert!(confirmed.failures > 0, "the broker was away for longer than the limit");
}

/// Each partition counts from zero.
#[tokio::test]
async fn a_message_is_where_its_receipt_says() {
    let cluster = Cluster::start();
    let (publisher, topic) = (publisher(cluster.url(), |_| ()), cluster.topic());
    let messages: Vec<Message> = (0..30).map(|number| keyed(&topic, &format!("key-{number}"))).collect();
    let receipts = publisher.publish(messages.clone()).await;
    let arrived = read_partitions(cluster.address, &topic, messages.len()).await.expect("reads");
    for (message, receipt) in messages.iter().zip(receipts) {
        let position = receipt.expect("confirmed").expect("has a position");
        let numbers = position.strip_prefix(&format!("{topic}/")).and_then(|numbers| numbers.split_once('/'));
        let (partition, offset) = numbers.expect("topic/partition/offset");
        let partition: i32 = partition.parse().expect("a number");
        let offset: usize = offset.parse().expect("a number");
        assert_eq!(arrived[&partition][offset].header("event-id"), Some(message.id.as_str()), "{position}");
    }
}

/// The hashes are those of Kafka's own tests of its partitioner.
#[tokio::test]
async fn a_key_is_where_javas_clients_put_it() {
    let cluster = Cluster::start();
    let (publisher, topic) = (publisher(cluster.url(), |_| ()), cluster.topic());
    let hashes = [
        ("21", -973_932_308_i32),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ("abc", 479_470_107),
    ];
    let receipts = publisher.publish(hashes.iter().map(|(key, _)| keyed(&topic, key)).collect()).await;
    assert!(receipts.iter().all(Result::is_ok), "{receipts:?}");
    let arrived = read_partitions(cluster.address, &topic, hashes.len()).await.expect("reads");
    for (key, hash) in hashes {
        let partition = (hash & i32::MAX) % PARTITIONS;
        let there =
            arrived.get(&partition).is_some_and(|there| there.iter().any(|one| one.key.as_deref() == Some(key)));
        assert!(there, "{key} is not in partition {partition}");
    }
}

#[tokio::test]
async fn messages_that_the_broker_asks_to_repeat_are_repeated_and_arrive_once() {
    let cluster = Cluster::start();
    let (publisher, topic) = (publisher(cluster.url(), |_| ()), cluster.topic());
    let again = [
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        // Makes the broker cut the connection in the place of answering.
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT,
    ];
    cluster.mock().request_errors(RDKafkaApiKey::Produce, &again);
    let receipts = publisher.publish(messages(&topic, 100)).await;
    assert!(receipts.iter().all(Result::is_ok), "{receipts:?}");
    assert_eq!(cluster.arrived(&topic, 100).await.expect("reads").len(), 100);
}

/// A broker refuses a batch as one, so those that were in it are tried alone.
#[tokio::test]
async fn a_batch_that_is_too_large_condemns_no_small_message() {
    let cluster = Cluster::start();
    let (publisher, topic) = (publisher(cluster.url(), |_| ()), cluster.topic());
    let too_large = RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
    // The first is of the batch; the second, of the first message alone.
    cluster.mock().request_errors(RDKafkaApiKey::Produce, &[too_large, too_large]);
    let receipts = publisher.publish((0..5).map(|_| keyed(&topic, "key")).collect()).await;
    assert_eq!(kinds(&receipts), [Some(Permanent), None, None, None, None], "{receipts:?}");
    assert_eq!(cluster.arrived(&topic, 4).await.expect("reads").len(), 4);
}

/// The client gathers the messages of all calls, so those that are sent alone would meet one another there.
#[tokio::test]
async fn messages_sent_alone_meet_none_of_another_call() {
    let cluster = Arc::new(Cluster::start());
    let way = NarrowWay::to(Arc::clone(&cluster)).await.expect("a way");
    let (publisher, topic) = (publisher(way.url(), |_| ()), cluster.topic());
    let calls = [5, 1].repeat(8);
    let calls = calls.into_iter().map(|count| publisher.publish((0..count).map(|_| keyed(&topic, "key")).collect()));
    let receipts = join_all(calls).await.concat();
    assert_eq!(kinds(&receipts), [None; 48], "{receipts:?}");
    assert_eq!(cluster.arrived(&topic, 48).await.expect("reads").len(), 48);
}

#[tokio::test]
async fn a_topic_that_takes_nothing_concerns_no_other_that_does() {
    let cluster = Cluster::start();
    let (ill, well) = (cluster.topic(), cluster.topic());
    for partition in 0..PARTITIONS {
        cluster.mock().partition_leader(&ill, partition, None).expect("has no leader");
    }
    let publisher = || publisher(cluster.url(), |options| options.timeout = Duration::from_secs(3));
    let state = |receipt: &Receipt| receipt.as_ref().err().map(|error| (error.kind(), error.scope()));
    let of_topic = Some((Unavailable, FailureScope::Target));
    let receipts = publisher().publish(vec![message(&ill), message(&well)]).await;
    assert_eq!(receipts.iter().map(state).collect::<Vec<_>>(), [of_topic, None]);
    let several = publisher();
    let calls = [&ill, &well].map(|topic| several.publish(vec![message(topic)]));
    assert_eq!(join_all(calls).await.concat().iter().map(state).collect::<Vec<_>>(), [of_topic, None]);
    let receipts = publisher().publish(vec![message(&ill)]).await;
    let of_broker = Some((Unavailable, FailureScope::Broker));
    assert_eq!(receipts.iter().map(state).collect::<Vec<_>>(), [of_broker], "nothing shows that the broker is well");
    assert_eq!(cluster.arrived(&well, 2).await.expect("reads").len(), 2);
}

#[tokio::test]
async fn a_refusal_is_a_matter_of_configuration() {
    let cluster = Cluster::start();
    let (publisher, topic) = (publisher(cluster.url(), |_| ()), cluster.topic());
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    cluster.mock().request_errors(RDKafkaApiKey::Produce, &[refused]);
    let receipts = publisher.publish(vec![message(&topic)]).await;
    assert_eq!(kinds(&receipts), [Some(Misconfigured)]);
    cluster.mock().topic_error(&topic, refused).expect("an error");
    let error = publisher.check(std::slice::from_ref(&topic)).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains(&topic), "{error}");
}

#[tokio::test]
async fn a_topic_that_is_made_later_is_published_to() {
    let cluster = Cluster::start();
    let (publisher, topic) = (publisher(cluster.url(), |_| ()), cluster.name());
    for _ in 0..2 {
        let receipts = publisher.publish(messages(&topic, 2)).await;
        assert_eq!(kinds(&receipts), [Some(Misconfigured); 2], "{receipts:?}");
    }
    cluster.mock().create_topic(&topic, PARTITIONS, 1).expect("a topic");
    let began = Instant::now();
    while publisher.publish(vec![message(&topic)]).await.iter().any(Result::is_err) {
        assert!(began.elapsed() < Duration::from_secs(15), "it is not noticed");
        sleep(Duration::from_millis(100)).await;
    }
    println!("noticed after {:?}", began.elapsed());
}

/// The cluster in memory tells the replicas of a topic, and no settings.
#[tokio::test]
async fn a_topic_with_one_replica_is_found() {
    let judgement = |results: &[Checked], code: &str| {
        results.iter().find(|checked| checked.check.code == code).expect("it is looked for").judgement.clone()
    };
    let cluster = Cluster::start();
    let short = |options: &mut KafkaOptions| options.timeout = Duration::from_secs(2);
    let (publisher, topic) = (publisher(cluster.url(), short), cluster.topic());
    let results = publisher.examine(std::slice::from_ref(&topic)).await;
    let Judgement::Found { evidence, .. } = judgement(&results, "kafka-one-replica") else { panic!("{results:?}") };
    assert_eq!(evidence, format!("topic {topic} has one replica"));
    for code in ["kafka-min-insync-one", "kafka-unclean-election"] {
        assert!(matches!(judgement(&results, code), Judgement::NotChecked { .. }), "{results:?}");
    }
    let nothing = publisher.examine(&[]).await;
    assert!(nothing.iter().all(|checked| matches!(checked.judgement, Judgement::NotChecked { .. })), "{nothing:?}");

    let three: BaseProducer =
        ClientConfig::new().set("test.mock.num.brokers", "3").create().expect("a cluster in memory");
    let mock = three.client().mock_cluster().expect("a cluster");
    mock.create_topic("safe", PARTITIONS, 3).expect("a topic");
    let servers = mock.bootstrap_servers();
    let first = servers.split(',').next().expect("a server");
    let results = self::publisher(format!("kafka://{first}"), short).examine(&["safe".to_owned()]).await;
    assert_eq!(judgement(&results, "kafka-one-replica"), Judgement::Healthy, "{results:?}");
}

/// An error after which librdkafka's client does nothing any more.
#[tokio::test]
async fn a_client_that_has_given_up_is_replaced() {
    let cluster = Cluster::start();
    let topic = cluster.topic();
    for (fatal, kind, reason) in [
        (RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, Misconfigured, "authorization"),
        (RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, Unavailable, "fenced"),
    ] {
        let publisher = publisher(cluster.url(), |options| options.timeout = Duration::from_secs(3));
        cluster.mock().request_errors(RDKafkaApiKey::InitProducerId, &[fatal]);
        let receipts = publisher.publish(vec![message(&topic)]).await;
        assert_eq!(kinds(&receipts), [Some(kind)], "{receipts:?}");
        let text = receipts[0].as_ref().expect_err("given up").to_string();
        assert!(text.contains(reason), "{text}");
        let receipts = publisher.publish(vec![message(&topic)]).await;
        assert_eq!(kinds(&receipts), [None], "{receipts:?}");
    }
}

#[tokio::test]
async fn a_queue_that_is_full_is_waited_for() {
    let cluster = Cluster::start();
    let publisher = publisher(cluster.url(), |options| {
        options.properties.insert("queue.buffering.max.messages".into(), "10".into());
    });
    let topic = cluster.topic();
    let receipts = publisher.publish(messages(&topic, 500)).await;
    assert!(receipts.iter().all(Result::is_ok), "{receipts:?}");
    assert_eq!(cluster.arrived(&topic, 500).await.expect("reads").len(), 500);
}

#[tokio::test]
async fn closing_answers_those_who_wait() {
    let cluster = Cluster::start();
    let way = Way::to(cluster.address).await.expect("a way");
    let (publisher, topic) = (publisher(way.url(), |_| ()), cluster.topic());
    assert!(publisher.publish(vec![message(&topic)]).await.iter().all(Result::is_ok));
    way.stall();
    let mut call = publisher.publish(messages(&topic, 3));
    assert!(futures_util::poll!(&mut call).is_pending());
    publisher.close().await;
    drop(call);
    assert_eq!(kinds(&publisher.publish(vec![message(&topic)]).await), [Some(Unavailable)]);
    assert!(publisher.check(&[topic]).await.is_err_and(|error| error.kind() == Unavailable));
}

#[test]
fn a_property_that_is_none_is_refused() {
    let error = |name: &str, value: &str| {
        let mut options = KafkaOptions::new("kafka://localhost");
        options.properties.insert(name.into(), value.into());
        KafkaPublisher::new(options).expect_err("refused").to_string()
    };
    let text = error("no.such.thing", "hunter2");
    assert!(text.contains("`no.such.thing`") && !text.contains("hunter2"), "{text}");
    let text = error("compression.type", "hunter2");
    assert!(text.contains("`compression.type`") && !text.contains("hunter2"), "{text}");
    assert!(error("acks", "1").contains("`acks`, which a guarantee"));
}

/// A broker that asks for a password and accepts none.
async fn doorkeeper() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("kafka://ann:hunter2@{}", listener.local_addr().expect("an address"));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(refuse(stream));
        }
    });
    (url, tasks)
}

/// Answers three requests of Kafka's protocol in their oldest form: versions, handshake, authentication.
async fn refuse(mut stream: TcpStream) -> std::io::Result<()> {
    loop {
        let length = stream.read_u32().await?;
        let mut request = vec![0; usize::try_from(length).map_err(std::io::Error::other)?];
        stream.read_exact(&mut request).await?;
        let (kind, version) =
            (u16::from_be_bytes([request[0], request[1]]), u16::from_be_bytes([request[2], request[3]]));
        let mut answer = request[4..8].to_vec();
        match kind {
            18 => {
                // 35: this version is not known here.
                answer.extend_from_slice(&u16::to_be_bytes(if version == 0 { 0 } else { 35 }));
                let supported: [[u16; 3]; 4] = [[18, 0, 0], [17, 0, 1], [36, 0, 0], [3, 0, 1]];
                answer.extend_from_slice(&4_u32.to_be_bytes());
                answer.extend(supported.into_iter().flatten().flat_map(u16::to_be_bytes));
            }
            17 => answer.extend_from_slice(b"\0\0\0\0\0\x01\0\x05PLAIN"),
            // 58: authentication failed.
            36 => answer.extend_from_slice(b"\0\x3a\0\x06denied\0\0\0\0"),
            _ => return Ok(()),
        }
        stream.write_u32(u32::try_from(answer.len()).map_err(std::io::Error::other)?).await?;
        stream.write_all(&answer).await?;
    }
}

#[tokio::test]
async fn refused_credentials_are_a_matter_of_configuration_and_stay_secret() {
    let (url, _tasks) = doorkeeper().await;
    let (checked, used) = (publisher(url.clone(), |_| ()), publisher(url, |_| ()));
    let began = Instant::now();
    let error = checked.check(&["orders".to_owned()]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("denied"), "{error}");
    let receipts = used.publish(messages("orders", 3)).await;
    assert_eq!(kinds(&receipts), [Some(Misconfigured); 3], "{receipts:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "a refusal is not waited for: {:?}", began.elapsed());
    assert!(!format!("{receipts:?} {error} {used:?}").contains("hunter2"));
    assert!(!used.info().address.contains("hunter2"));
}
