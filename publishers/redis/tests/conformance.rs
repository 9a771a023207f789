//! The suite of all publishers, on Redis.

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{Publisher, Secret};
use pillarbox_redis::RedisPublisher;
use pillarbox_testkit::publishers::{Arrived, Proxy, PublisherCapabilities, PublisherHarness, Server};
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep};

const PASSWORD: &str = "s3cret-of-the-suite";
const MAX_BODY: usize = 2 * 1024 * 1024;

/// A Redis that wants a password; streams are made beforehand, so that one can be missing.
struct Redis {
    server: Server,
    client: MultiplexedConnection,
    targets: AtomicU32,
}

impl Redis {
    fn connect(&self, link: &Proxy, timeout: Duration, password: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = support::options(link.port());
        options.password = Some(Secret::new(password));
        (options.timeout, options.create_streams, options.max_body) = (timeout, false, MAX_BODY);
        Ok(Arc::new(RedisPublisher::new(options)?))
    }

    fn next(&self) -> u32 {
        self.targets.fetch_add(1, Ordering::Relaxed)
    }
}

impl PublisherHarness for Redis {
    type Link = Proxy;

    const CAPABILITIES: PublisherCapabilities =
        PublisherCapabilities { deduplicates: false, ..PublisherCapabilities::ALL };

    async fn start() -> Result<Self, BoxError> {
        let server = support::start(&["--requirepass", PASSWORD]).await?;
        let client = support::client(server.address().port(), Some(PASSWORD)).await?;
        Ok(Self { server, client, targets: AtomicU32::new(0) })
    }

    async fn link(&self) -> Result<Proxy, BoxError> {
        Ok(Proxy::to(self.server.address()).await?)
    }

    fn publisher(&self, link: &Proxy, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        self.connect(link, timeout, PASSWORD)
    }

    fn intruder(&self, link: &Proxy, timeout: Duration, secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        self.connect(link, timeout, secret)
    }

    async fn target(&self, _link: &Proxy) -> Result<String, BoxError> {
        let stream = format!("stream-{}", self.next());
        let mut create = redis::cmd("XGROUP");
        create.arg("CREATE").arg(&stream).arg("readers").arg("$").arg("MKSTREAM");
        create.exec_async(&mut self.client.clone()).await?;
        Ok(stream)
    }

    fn missing_target(&self, _link: &Proxy) -> String {
        format!("missing-{}", self.next())
    }

    fn oversize(&self) -> Option<usize> {
        Some(MAX_BODY + 1)
    }

    async fn arrived(&self, target: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
        let began = Instant::now();
        loop {
            let entries = support::entries(&mut self.client.clone(), target).await?;
            if entries.len() >= least || began.elapsed() > Duration::from_secs(5) {
                return Ok(entries);
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn main() -> ExitCode {
    pillarbox_testkit::publishers::run::<Redis>()
}
