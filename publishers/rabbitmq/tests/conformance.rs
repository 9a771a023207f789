//! The suite of all publishers, on RabbitMQ.

mod support;

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher;
use pillarbox_rabbitmq::{RabbitMqOptions, RabbitMqPublisher};
use pillarbox_testkit::publishers::{Arrived, Proxy, PublisherCapabilities, PublisherHarness, Server};
use support::Client;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

const MAX_BODY: usize = 4 * 1024 * 1024;

/// Queues behind one exchange each, whose names the targets have.
struct RabbitMq {
    server: Server,
    client: Client,
    /// Reading takes messages out of their queue; here they stay.
    taken: Mutex<HashMap<String, Vec<Arrived>>>,
    targets: AtomicU32,
}

impl RabbitMq {
    fn next(&self) -> u32 {
        self.targets.fetch_add(1, Ordering::Relaxed)
    }
}

impl PublisherHarness for RabbitMq {
    type Link = Proxy;

    const CAPABILITIES: PublisherCapabilities =
        PublisherCapabilities { deduplicates: false, keys: false, positions: false, ..PublisherCapabilities::ALL };

    async fn start() -> Result<Self, BoxError> {
        let server = support::start().await?;
        let client = Client::connect(server.address().port()).await?;
        Ok(Self { server, client, taken: Mutex::default(), targets: AtomicU32::new(0) })
    }

    async fn link(&self) -> Result<Proxy, BoxError> {
        Ok(Proxy::to(self.server.address()).await?)
    }

    fn publisher(&self, link: &Proxy, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = support::options(link.port());
        (options.timeout, options.max_body) = (timeout, MAX_BODY);
        Ok(Arc::new(RabbitMqPublisher::new(options)?))
    }

    fn intruder(&self, link: &Proxy, timeout: Duration, secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = RabbitMqOptions::new(format!("amqp://127.0.0.1:{}", link.port()));
        (options.username, options.password) = (Some("guest".to_owned()), Some(secret.into()));
        options.timeout = timeout;
        Ok(Arc::new(RabbitMqPublisher::new(options)?))
    }

    async fn target(&self, _link: &Proxy) -> Result<String, BoxError> {
        let number = self.next();
        self.client.exchange(&format!("exchange-{number}")).await?;
        let queue = format!("queue-{number}");
        self.client.bound(&queue, &format!("exchange-{number}"), &queue).await?;
        Ok(format!("exchange-{number}/{queue}"))
    }

    fn missing_target(&self, _link: &Proxy) -> String {
        format!("missing-{}/order.placed", self.next())
    }

    fn commands(&self) -> &'static [&'static str] {
        &["CC", "BCC", "cc"]
    }

    fn oversize(&self) -> Option<usize> {
        Some(MAX_BODY + 1)
    }

    async fn arrived(&self, target: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
        let queue = target.split_once('/').map_or(target, |(_, queue)| queue);
        let began = Instant::now();
        loop {
            let mut taken = self.taken.lock().await;
            let all = taken.entry(target.to_owned()).or_default();
            all.extend(self.client.drain(queue).await?);
            if all.len() >= least || began.elapsed() > Duration::from_secs(5) {
                return Ok(all.clone());
            }
            drop(taken);
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn main() -> ExitCode {
    pillarbox_testkit::publishers::run::<RabbitMq>()
}
