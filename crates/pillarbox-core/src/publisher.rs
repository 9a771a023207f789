//! The port to a broker: the calls of routes on a message broker, a queue or an HTTP endpoint, and the contract of a publisher.
//!
//! Every bullet of a `# Behavior` list has a conformance test of the same name in `pillarbox-testkit`.

mod error;
pub mod header;
mod link;
mod message;
mod plaintext;
mod secret;
mod target;

pub use error::{FailureScope, PublishError, PublishErrorKind};
pub use link::{Link, Linked};
pub use message::Message;
pub use plaintext::is_this_host;
pub use secret::Secret;
pub use target::TargetSyntax;

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;

use crate::examine::Checked;

/// The result for one message: confirmed by the broker, with the position at which it keeps the message if it has told one, or the reason
/// why not. The position names the place and the number there, such as `STREAM/SEQUENCE`; it is a [`Position`](crate::row::Position), or else is
/// not kept.
pub type Receipt = Result<Option<String>, PublishError>;

/// A broker that messages are sent to.
///
/// A publisher is made without the broker being there: its options are checked, and it connects when it is first needed, and
/// again whenever the connection is lost. All methods may be called concurrently, and each may be dropped at any await:
/// messages sent by then may arrive or not, and nothing is left locked.
#[async_trait]
pub trait Publisher: fmt::Debug + Send + Sync + 'static {
    /// The kind of this publisher, the address of its broker and the syntax of its targets.
    fn info(&self) -> &PublisherInfo;

    /// Connects, and verifies that each of `targets` (streams, exchanges, topics, …) is there and may be published to, as far
    /// as the broker can tell. Nothing is published and nothing is created.
    ///
    /// # Errors
    /// [`Misconfigured`](PublishErrorKind::Misconfigured) where the broker answered and refuses: credentials, a target that
    /// is missing, which the error names; [`Unavailable`](PublishErrorKind::Unavailable) where it does not answer.
    ///
    /// # Behavior
    /// - `check_accepts_what_is_there`
    /// - `check_names_a_missing_target`
    /// - `check_refuses_wrong_credentials_and_shows_none`
    /// - `check_says_unavailable_when_nobody_answers`
    async fn check(&self, targets: &[String]) -> Result<(), PublishError>;

    /// Sends messages and waits for the broker's confirmation of each; returns one receipt for each, in their order. It
    /// returns within the publisher's time limit, even if the broker hangs: a message that was not confirmed by then is
    /// [`Unavailable`](PublishErrorKind::Unavailable), and may have arrived.
    ///
    /// Messages are sent all at once, not one after the other: the confirmations take the time. Messages with one key
    /// reach the broker in the order of the vector, as far as the broker keeps any.
    ///
    /// A header that [imitates](header::imitates) one of the outbox's is not sent, and none is sent under a name that is a
    /// [command](header::is_command) to the broker.
    ///
    /// # Behavior
    /// - `publish_confirms_each_message`
    /// - `publish_tells_each_message_its_position`
    /// - `publish_keeps_bytes_headers_and_key`
    /// - `publish_lets_no_header_of_an_event_pass_for_a_reserved_one`
    /// - `publish_keeps_the_order_within_a_key`
    /// - `publish_answers_for_each_message_of_a_mixed_batch`
    /// - `publish_to_a_missing_target_is_refused_for_that_message_alone`
    /// - `publish_the_same_message_again_is_confirmed_again`
    /// - `publish_concurrently_confirms_each_message`
    /// - `publish_goes_on_after_the_connection_was_cut`
    /// - `publish_while_the_broker_is_away_is_unavailable`
    /// - `publish_waits_for_a_silent_broker_no_longer_than_its_limit`
    /// - `publish_dropped_half_way_spoils_nothing`
    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt>;

    /// Verifies that the broker has a place for targets that begin with `prefix`, as far as it can tell: the constant part of a
    /// target that depends on the event. `false` if it was not asked, which is the default.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    async fn check_prefix(&self, prefix: &str) -> Result<bool, PublishError> {
        let _ = prefix;
        Ok(false)
    }

    /// The reason why no message with this target and these headers can ever be sent, as far as this process knows without asking anybody. It is
    /// asked once, about what a route gives all of its messages: a target that depends on the event has `x` in each of its places, and
    /// `is_constant` is false. Default: none is known.
    fn refusal(&self, sample: &Message, is_constant: bool) -> Option<PublishError> {
        let (_, _) = (sample, is_constant);
        None
    }

    /// Looks for conditions of the broker that may cost messages which it has confirmed, for `targets` where they have settings of their own.
    /// It opens one connection at most, publishes and changes nothing, and returns within the publisher's time limit for each question. A
    /// condition that cannot be asked about is reported as not checked. Default: nothing to look for.
    async fn examine(&self, targets: &[String]) -> Vec<Checked> {
        let _ = targets;
        Vec::new()
    }

    /// The server that a target names, where targets lead to servers of their own: the scheme, host and port of a URL. Default:
    /// `None`, since all targets are at one broker.
    fn server(&self, target: &str) -> Option<String> {
        let _ = target;
        None
    }

    /// A target, or a template of one, as it may be shown to people. Default: as it is, since it is no secret.
    fn shown<'a>(&self, target: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(target)
    }

    /// Closes the connection. A later publish is [`Unavailable`](PublishErrorKind::Unavailable). Closing twice is fine.
    ///
    /// # Behavior
    /// - `close_twice_is_fine`
    async fn close(&self);
}

/// The kind of a publisher, the address of its broker and the syntax of its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherInfo {
    /// The kind of broker, as a configuration names it: `nats`.
    pub kind: &'static str,
    /// The address of the broker, for people, without credentials: `nats://broker:4222`.
    pub address: String,
    /// The syntax by which values of an event are written into its targets.
    pub targets: TargetSyntax,
    /// The first character of targets that the broker keeps for itself, if there is one: no value of an event leads to them.
    pub reserved: Option<char>,
    /// True if it has credentials for each tenant, so that a target may refuse the events of one and take those of another.
    pub by_tenant: bool,
}

impl PublisherInfo {
    /// Describes a publisher. `address` holds no secret.
    #[must_use]
    pub fn new(kind: &'static str, address: impl Into<String>) -> Self {
        Self { kind, address: address.into(), targets: TargetSyntax::Name, reserved: None, by_tenant: false }
    }

    /// The syntax of its targets. Default: names.
    #[must_use]
    pub fn with_targets(mut self, targets: TargetSyntax) -> Self {
        self.targets = targets;
        self
    }

    /// The first character of targets that the broker keeps for itself. A route sends to one of them only where the text of its target
    /// begins so, before any place for a value. Default: none.
    #[must_use]
    pub fn with_reserved(mut self, first: char) -> Self {
        self.reserved = Some(first);
        self
    }

    /// It has credentials for each tenant. Default: for all.
    #[must_use]
    pub fn with_credentials_by_tenant(mut self) -> Self {
        self.by_tenant = true;
        self
    }
}
