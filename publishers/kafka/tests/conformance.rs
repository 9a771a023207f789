//! The publisher to Kafka against its port, on librdkafka's cluster in memory.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher;
use pillarbox_kafka::{KafkaOptions, KafkaPublisher};
use pillarbox_testkit::publishers::{self, Arrived, PublisherCapabilities, PublisherHarness};
use support::{Cluster, Way};

struct Kafka(Cluster);

impl PublisherHarness for Kafka {
    type Link = Way;

    const CAPABILITIES: PublisherCapabilities = PublisherCapabilities {
        // Only in the header `event-id`.
        ids: false,
        // What the producer itself repeats, it does; not what is published a second time.
        deduplicates: false,
        // The cluster in memory asks for none: tests/ground/broker.rs.
        credentials: false,
        ..PublisherCapabilities::ALL
    };

    async fn start() -> Result<Self, BoxError> {
        Ok(Self(Cluster::start()))
    }

    async fn link(&self) -> Result<Way, BoxError> {
        Ok(Way::to(self.0.address).await?)
    }

    fn publisher(&self, link: &Way, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = KafkaOptions::new(link.url());
        options.timeout = timeout;
        Ok(Arc::new(KafkaPublisher::new(options)?))
    }

    async fn target(&self, _link: &Way) -> Result<String, BoxError> {
        Ok(self.0.topic())
    }

    fn missing_target(&self, _link: &Way) -> String {
        self.0.name()
    }

    fn commands(&self) -> &'static [&'static str] {
        &["Content-Type"]
    }

    fn oversize(&self) -> Option<usize> {
        Some(1_100_000)
    }

    async fn arrived(&self, target: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
        self.0.arrived(target, least).await
    }
}

fn main() -> ExitCode {
    publishers::run::<Kafka>()
}
