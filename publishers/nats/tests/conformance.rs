//! The NATS publisher against its port, on a server of the run's own.

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher;
use pillarbox_nats::{NatsOptions, NatsPublisher};
use pillarbox_testkit::publishers::{self, Arrived, Proxy, PublisherCapabilities, PublisherHarness, Server};

use support::{PASSWORD, USER};

fn main() -> ExitCode {
    publishers::run::<NatsHarness>()
}

struct NatsHarness {
    server: Server,
    client: jetstream::Context,
    names: AtomicUsize,
}

impl NatsHarness {
    fn name(&self) -> String {
        format!("orders-{}", self.names.fetch_add(1, Ordering::SeqCst))
    }
}

fn publisher(link: &Proxy, timeout: Duration, password: &str) -> Result<Arc<dyn Publisher>, BoxError> {
    let mut options = NatsOptions::new(format!("nats://127.0.0.1:{}", link.port()));
    options.username = Some(USER.to_owned());
    options.password = Some(password.into());
    options.timeout = timeout;
    Ok(Arc::new(NatsPublisher::new(options)?))
}

impl PublisherHarness for NatsHarness {
    type Link = Proxy;

    // The key has the header `event-key` alone.
    const CAPABILITIES: PublisherCapabilities = PublisherCapabilities { keys: false, ..PublisherCapabilities::ALL };

    async fn start() -> Result<Self, BoxError> {
        let server = support::start().await?;
        let client = support::client(&server).await?;
        Ok(Self { server, client, names: AtomicUsize::new(0) })
    }

    async fn link(&self) -> Result<Proxy, BoxError> {
        Ok(Proxy::to(self.server.address()).await?)
    }

    fn publisher(&self, link: &Proxy, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        publisher(link, timeout, PASSWORD)
    }

    fn intruder(&self, link: &Proxy, timeout: Duration, secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        publisher(link, timeout, secret)
    }

    async fn target(&self, _link: &Proxy) -> Result<String, BoxError> {
        // A stream for each, of the subject's own name but for the dot.
        let name = self.name();
        support::stream(&self.client, &name, &[&format!("{name}.placed")]).await?;
        Ok(format!("{name}.placed"))
    }

    fn missing_target(&self, _link: &Proxy) -> String {
        format!("{}.missing", self.name())
    }

    fn invalid_target(&self) -> String {
        "orders.*".to_owned()
    }

    fn commands(&self) -> &'static [&'static str] {
        &["NATS-Msg-Id", "Nats-Rollup", "Content-Type"]
    }

    fn oversize(&self) -> Option<usize> {
        // What a server takes is a mebibyte, headers included, unless it is told otherwise.
        Some(1024 * 1024)
    }

    async fn arrived(&self, target: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
        let stream = target.strip_suffix(".placed").ok_or("no target of this harness")?;
        support::stored(&self.client, stream, least).await
    }
}
