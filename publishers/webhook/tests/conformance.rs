//! The publisher to HTTP endpoints against its port.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher;
use pillarbox_testkit::publishers::{self, Arrived, Proxy, PublisherCapabilities, PublisherHarness};
use pillarbox_webhook::WebhookPublisher;
use support::{Endpoint, LARGEST, Received, options};

struct Webhook {
    endpoint: Endpoint,
    names: AtomicUsize,
}

impl Webhook {
    fn to(link: &Proxy, timeout: Duration, token: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        let mut options = options();
        options.url = Some(format!("http://127.0.0.1:{}/guarded", link.port()).into());
        options.token = Some(token.into());
        options.timeout = timeout;
        Ok(Arc::new(WebhookPublisher::new(options)?))
    }
}

impl PublisherHarness for Webhook {
    type Link = Proxy;

    const CAPABILITIES: PublisherCapabilities = PublisherCapabilities {
        keys: false,
        deduplicates: false,
        // Whether a path is there shows only in the answer to a message: tests/ground/answers.rs.
        missing_targets: false,
        // HTTP has no name for the id of what was taken.
        positions: false,
        ..PublisherCapabilities::ALL
    };

    async fn start() -> Result<Self, BoxError> {
        Ok(Self { endpoint: Endpoint::start().await, names: AtomicUsize::new(0) })
    }

    async fn link(&self) -> Result<Proxy, BoxError> {
        Ok(Proxy::to(self.endpoint.address).await?)
    }

    fn publisher(&self, link: &Proxy, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError> {
        Self::to(link, timeout, "open-sesame")
    }

    fn intruder(&self, link: &Proxy, timeout: Duration, secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        Self::to(link, timeout, secret)
    }

    async fn target(&self, _link: &Proxy) -> Result<String, BoxError> {
        Ok(format!("target-{}", self.names.fetch_add(1, Ordering::SeqCst)))
    }

    fn commands(&self) -> &'static [&'static str] {
        &["Host", "Content-Length", "Webhook-Id", "webhook-signature", "Authorization"]
    }

    fn oversize(&self) -> Option<usize> {
        Some(LARGEST + 1)
    }

    async fn arrived(&self, target: &str, _least: usize) -> Result<Vec<Arrived>, BoxError> {
        // What is confirmed is here: there is nothing to wait for. What was refused is no arrival.
        let path = format!("/guarded/{target}");
        let requests = self.endpoint.requests();
        let taken = requests
            .iter()
            .filter(|request| request.uri.path() == path && request.method == "POST" && request.body.len() <= LARGEST);
        Ok(taken.map(arrived).collect())
    }
}

fn arrived(request: &Received) -> Arrived {
    let decode = |value: &str| percent_decode_str(value).decode_utf8_lossy().into_owned();
    let decoded = |name: &str| decode(request.header(name));
    // Each value, so that a name that is there twice shows.
    let headers =
        request.headers.iter().map(|(name, value)| (name.to_string(), decode(value.to_str().unwrap_or_default())));
    Arrived {
        id: Some(decoded("webhook-id")),
        key: None,
        content_type: Some(request.header("content-type").to_owned()),
        headers: headers.collect(),
        body: request.body.to_vec(),
    }
}

fn main() -> ExitCode {
    publishers::run::<Webhook>()
}
