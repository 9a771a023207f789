use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher;

use super::Link;

/// The capabilities of a broker beyond the port. One that it lacks shows up as an ignored test, never as a missing one; fields of
/// a message that it cannot carry are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherCapabilities {
    /// Messages of one key arrive in the order in which they were published.
    pub order: bool,
    /// Headers arrive byte for byte.
    pub headers: bool,
    /// The broker has a field for the key, beside the header `event-key`.
    pub keys: bool,
    /// The broker has a field for the id, beside the header `event-id`.
    pub ids: bool,
    /// The content type arrives.
    pub content_types: bool,
    /// The broker drops a message whose id it has seen a moment ago, and confirms it.
    pub deduplicates: bool,
    /// A target can be missing; where a broker makes what is missing, or knows no targets, none can.
    pub missing_targets: bool,
    /// The broker asks for credentials.
    pub credentials: bool,
    /// The broker's confirmation tells the position of a message.
    pub positions: bool,
}

impl PublisherCapabilities {
    /// Everything; a harness says what its broker lacks: `PublisherCapabilities { keys: false, ..ALL }`.
    pub const ALL: Self = Self {
        order: true,
        headers: true,
        keys: true,
        ids: true,
        content_types: true,
        deduplicates: true,
        missing_targets: true,
        credentials: true,
        positions: true,
    };
}

/// Gives the suite access to one publisher and its broker. One value is one broker, shared by all tests of a run, which may run
/// at the same time.
pub trait PublisherHarness: Sized + Send + Sync + 'static {
    /// The link through which publishers reach the broker: [`Proxy`](super::Proxy) for all that speak TCP.
    type Link: Link;

    /// The capabilities of the broker.
    const CAPABILITIES: PublisherCapabilities;

    /// Starts a broker of the run's own: see [`Server`](super::Server). Fails with the remedy where its program is missing.
    fn start() -> impl Future<Output = Result<Self, BoxError>> + Send;

    /// Stops the broker. Called after failures too.
    fn stop(self) -> impl Future<Output = Result<(), BoxError>> + Send {
        async { Ok(()) }
    }

    /// A new way to the broker, shared with no other test, that lets everything pass.
    fn link(&self) -> impl Future<Output = Result<Self::Link, BoxError>> + Send;

    /// A new publisher with the right credentials, that reaches the broker through `link` and waits for `timeout` at most.
    ///
    /// # Errors
    /// The refusal of the publisher's `new`.
    fn publisher(&self, link: &Self::Link, timeout: Duration) -> Result<Arc<dyn Publisher>, BoxError>;

    /// The same, with credentials that the broker refuses, of which `secret` is the secret part. Never called without the
    /// capability `credentials`.
    ///
    /// # Errors
    /// The refusal of the publisher's `new`.
    fn intruder(&self, link: &Self::Link, timeout: Duration, secret: &str) -> Result<Arc<dyn Publisher>, BoxError> {
        let _ = secret;
        self.publisher(link, timeout)
    }

    /// Makes a target of the test's own, and returns it as a message names it. A broker that shows messages only while
    /// somebody listens begins to listen here.
    fn target(&self, link: &Self::Link) -> impl Future<Output = Result<String, BoxError>> + Send;

    /// A well-formed target that is not there, another at every call. Never called without the capability
    /// `missing_targets`.
    fn missing_target(&self, _link: &Self::Link) -> String {
        String::new()
    }

    /// A target that can never be one: a message to it is [`Permanent`](pillarbox_core::publisher::PublishErrorKind::Permanent),
    /// since its event made it so, and says what is wrong with it. The empty text, if nothing else.
    fn invalid_target(&self) -> String {
        String::new()
    }

    /// Names of headers that tell the broker, its client or its consumers what to do, spelled as an event might have them.
    fn commands(&self) -> &'static [&'static str] {
        &[]
    }

    /// Bytes of a body that the broker or its client refuses for its size; `None` if there is no limit worth meeting.
    fn oversize(&self) -> Option<usize> {
        None
    }

    /// Waits until at least `least` messages have arrived at a target of [`target`](Self::target), or for some seconds, and
    /// returns all that have ever arrived there, duplicates among them, in the order of the broker. Reads by the broker's
    /// own client and past the link, and may be called again.
    fn arrived(&self, target: &str, least: usize) -> impl Future<Output = Result<Vec<Arrived>, BoxError>> + Send;
}

/// A message as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrived {
    /// The id in the broker's own field, where the broker has one.
    pub id: Option<String>,
    /// The key in the broker's own field, where the broker has one.
    pub key: Option<String>,
    /// The content type, wherever the publisher puts it.
    pub content_type: Option<String>,
    /// The headers. What the publisher adds for the broker's sake may be among them or not.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Arrived {
    /// The value of a header. Names are compared without regard to case, as some protocols carry them in one of their own.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}
