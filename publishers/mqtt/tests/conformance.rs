//! The suite of all publishers, on Mosquitto.

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher;
use pillarbox_mqtt::MqttPublisher;
use pillarbox_testkit::publishers::{Arrived, Proxy, PublisherCapabilities, PublisherHarness, Server};
use support::Listener;

const MAX_BODY: usize = 2 * 1024 * 1024;

/// Topics of a broker whose listener hears all of them.
struct Mosquitto {
    server: Server,
    listener: Listener,
    targets: AtomicU32,
}

impl PublisherHarness for Mosquitto {
    type Link = Proxy;

    const CAPABILITIES: PublisherCapabilities = PublisherCapabilities {
        deduplicates: false,
        ids: false,
        keys: false,
        missing_targets: false,
        positions: false,
        ..PublisherCapabilities::ALL
    };

    async fn start() -> Result<Self, BoxError> {
        let server = support::start("").await?;
        let listener = Listener::start(server.address().port()).await?;
        Ok(Self { server, listener, targets: AtomicU32::new(0) })
    }

    async fn link(&self) -> Result<Proxy, BoxError> {
        Ok(Proxy::to(self.server.address()).await?)
    }

    fn publisher(&self, link: &Proxy, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = support::options(link.port());
        (options.timeout, options.max_body) = (timeout, MAX_BODY);
        Ok(Arc::new(MqttPublisher::new(options)?))
    }

    fn intruder(&self, link: &Proxy, timeout: Duration, secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = support::options(link.port());
        (options.timeout, options.password) = (timeout, Some(secret.into()));
        Ok(Arc::new(MqttPublisher::new(options)?))
    }

    async fn target(&self, _link: &Proxy) -> Result<String, BoxError> {
        Ok(format!("suite/{}", self.targets.fetch_add(1, Ordering::Relaxed)))
    }

    fn invalid_target(&self) -> String {
        "suite/+".to_owned()
    }

    fn oversize(&self) -> Option<usize> {
        Some(MAX_BODY + 1)
    }

    async fn arrived(&self, target: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
        Ok(self.listener.arrived(target, least).await)
    }
}

fn main() -> ExitCode {
    pillarbox_testkit::publishers::run::<Mosquitto>()
}
