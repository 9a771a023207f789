//! The publisher to SQS against its port, with FIFO queues, which can do the most.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_aws::SqsPublisher;
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher;
use pillarbox_testkit::publishers::{self, Arrived, Proxy, PublisherCapabilities, PublisherHarness};
use support::{Received, Service, options};

struct Sqs(Service);

impl PublisherHarness for Sqs {
    type Link = Proxy;

    const CAPABILITIES: PublisherCapabilities =
        PublisherCapabilities { ids: false, keys: false, ..PublisherCapabilities::ALL };

    async fn start() -> Result<Self, BoxError> {
        Ok(Self(Service::start().await))
    }

    async fn link(&self) -> Result<Proxy, BoxError> {
        Ok(Proxy::to(self.0.address).await?)
    }

    fn publisher(&self, link: &Proxy, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = options(link.port());
        options.timeout = timeout;
        Ok(Arc::new(SqsPublisher::new(options)?))
    }

    fn intruder(&self, link: &Proxy, timeout: Duration, secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = options(link.port());
        options.timeout = timeout;
        options.access_key_id = Some("AKIDWRONG".to_owned());
        options.secret_access_key = Some(secret.into());
        Ok(Arc::new(SqsPublisher::new(options)?))
    }

    async fn target(&self, _link: &Proxy) -> Result<String, BoxError> {
        Ok(self.0.make(format!("{}.fifo", self.0.name())))
    }

    fn missing_target(&self, _link: &Proxy) -> String {
        format!("{}.fifo", self.0.name())
    }

    fn oversize(&self) -> Option<usize> {
        Some(1_100_000)
    }

    async fn arrived(&self, target: &str, _least: usize) -> Result<Vec<Arrived>, BoxError> {
        // What is confirmed is here: there is nothing to wait for.
        let name = target.rsplit(':').next().unwrap_or_default();
        Ok(self.0.received(name).iter().map(Received::decoded).collect())
    }
}

fn main() -> ExitCode {
    publishers::run::<Sqs>()
}
