//! Publishes the events of [Pillarbox](https://docs.rs/pillarbox), a transactional outbox, to HTTP endpoints, as
//! [Standard Webhooks](https://www.standardwebhooks.com).
//!
//! # What is guaranteed
//! A message is confirmed when its endpoint has answered with a status of 200 to 299, never before. One whose answer was lost is
//! sent again: receivers deduplicate by `webhook-id`, which is the event's id, or by the header `event-id`. Messages of one key
//! are sent one after the other, each after the answer to the one before; behind one that was not taken and may be later, those of its key wait.
//!
//! # Targets
//! A target is an absolute URL, or, with the option `url`, a path below that. With the option, nothing is sent to any other
//! place, whatever the target says.
//!
//! # Where it does not go
//! A target may come out of an event, so an attacker may choose it, to reach hosts that only this machine can reach.
//! Private, loopback, link-local and other special addresses are refused, unless `allow_private` is set; it is the address
//! connected to that is checked, whatever name led there. Redirects are not followed and proxies not used.
//!
//! ```
//! use pillarbox_core::publisher::Publisher as _;
//! use pillarbox_webhook::{WebhookOptions, WebhookPublisher};
//!
//! let mut options = WebhookOptions::new("https://hooks.example.com/shop");
//! options.secrets = vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()];
//! let publisher = WebhookPublisher::new(options)?;
//! // Of a URL the host is shown, and a fingerprint of the whole: the rest may be secret.
//! assert!(publisher.info().address.starts_with("https://hooks.example.com/<"));
//! # Ok::<(), pillarbox_core::error::ConfigError>(())
//! ```

mod options;

mod address;
mod target;

mod connect;
mod names;

mod headers;
mod sign;

mod answer;
mod call;
mod cut_off;
mod error;
mod key_groups;
mod permits;
mod publish;
mod servers;

mod check;

pub use options::WebhookOptions;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::{Clock, SystemClock};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt, Secret, TargetSyntax};
use reqwest::Client;
use reqwest::header::HeaderValue;
use tokio::sync::Semaphore;

use cut_off::CutOffHistory;
use servers::Servers;
use sign::{Signing, SigningKeys};
use target::Targets;

/// The `kind` of this publisher in a configuration.
const KIND: &str = "webhook";

/// Sends each message by a POST, and takes a status of 200 to 299 as its confirmation.
#[derive(Debug)]
pub struct WebhookPublisher {
    info: PublisherInfo,
    client: Client,
    /// Makes a connection for each request.
    on_new_connections: Client,
    clock: Arc<dyn Clock>,
    targets: Targets,
    signing: Signing,
    authorization: Option<HeaderValue>,
    /// Secrets that a quoted answer in an error must not show.
    secrets: Vec<Secret>,
    concurrency: usize,
    timeout: Duration,
    servers: Servers,
    cut_offs: CutOffHistory,
    /// For requests that make room for others.
    slow: Semaphore,
    closed: AtomicBool,
}

impl WebhookPublisher {
    /// A publisher on the operating system's clock. Nothing is sent, and no name is looked up.
    ///
    /// # Errors
    /// When an option cannot be used; it says which, and what to write instead.
    pub fn new(options: WebhookOptions) -> Result<Self, ConfigError> {
        Self::with_clock(options, Arc::new(SystemClock))
    }

    /// The same on another clock, which gives signatures their time.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(options: WebhookOptions, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        options.check()?;
        let targets = Targets::new(&options)?;
        let (client, on_new_connections) = connect::clients(&options)?;
        let authorization = connect::authorization(&options, &targets)?;
        let credentials = authorization.as_ref().and_then(connect::credentials);
        let info = PublisherInfo::new(KIND, targets.address()).with_targets(TargetSyntax::Url);
        let by_tenant = options.secrets_by_tenant.is_some();
        Ok(Self {
            info: if by_tenant { info.with_credentials_by_tenant() } else { info },
            client,
            on_new_connections,
            clock,
            authorization,
            signing: Signing::new(&options)?,
            secrets: targets.secrets().chain(options.token).chain(options.password).chain(credentials).collect(),
            targets,
            concurrency: options.concurrency,
            timeout: options.timeout,
            servers: Servers::default(),
            cut_offs: CutOffHistory::default(),
            slow: Semaphore::new(publish::MAX_SLOW),
            closed: AtomicBool::new(false),
        })
    }

    /// Fails if it is closed.
    fn open(&self) -> Result<(), PublishError> {
        let closed = self.closed.load(Ordering::Acquire);
        if closed { Err(PublishError::unavailable("the publisher is closed")) } else { Ok(()) }
    }
}

#[async_trait]
impl Publisher for WebhookPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.check_each(targets).await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        self.publish_all(messages).await
    }

    fn refusal(&self, sample: &Message, is_constant: bool) -> Option<PublishError> {
        let url = if is_constant { self.targets.url(&sample.target).err() } else { None };
        url.or_else(|| headers::of(sample, &SigningKeys::default(), 0).err())
    }

    async fn check_prefix(&self, prefix: &str) -> Result<bool, PublishError> {
        match self.targets.server_of_prefix(prefix) {
            Some(server) => self.check_each(&[server]).await.map(|()| true),
            None => Ok(false),
        }
    }

    fn server(&self, target: &str) -> Option<String> {
        self.targets.server(target)
    }

    fn shown<'a>(&self, target: &'a str) -> Cow<'a, str> {
        Cow::Owned(self.targets.shown(target))
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}
