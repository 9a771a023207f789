use std::borrow::Cow;
use std::time::Duration;

use pillarbox_engine::{handlers, run};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::duration;

/// The nodes that deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One node; further ones wait as standbys.
    #[default]
    SingleNode,
    /// Any number of nodes, without order.
    MultiNode,
    /// Any number of nodes, the events of a key in their order.
    Partitioned,
    /// One node, one event after the other, in the order of the table.
    Ordered,
    /// Nobody here.
    WriterOnly,
}

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SingleNode => "single_node",
            Self::MultiNode => "multi_node",
            Self::Partitioned => "partitioned",
            Self::Ordered => "ordered",
            Self::WriterOnly => "writer_only",
        }
    }
}

/// The growth of the pauses between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryPolicyKind {
    /// Each pause is `retry.multiplier` times as long as the one before, up to `retry.cap`.
    #[default]
    Exponential,
    /// Each pause is longer by `retry.step` than the one before, up to `retry.cap`.
    Linear,
    /// Every pause is `retry.base`.
    Fixed,
}

impl RetryPolicyKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Linear => "linear",
            Self::Fixed => "fixed",
        }
    }
}

/// In mode `ordered`, what becomes of the events behind one that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailingHead {
    /// They wait while it is tried again.
    #[default]
    RetryInPlace,
    /// It goes DEAD at its first failure, and they go on.
    DeadAndContinue,
}

impl From<FailingHead> for run::FailingHead {
    fn from(head: FailingHead) -> Self {
        match head {
            FailingHead::RetryInPlace => Self::RetryInPlace,
            FailingHead::DeadAndContinue => Self::DeadAndContinue,
        }
    }
}

impl From<run::FailingHead> for FailingHead {
    fn from(head: run::FailingHead) -> Self {
        match head {
            run::FailingHead::RetryInPlace => Self::RetryInPlace,
            run::FailingHead::DeadAndContinue => Self::DeadAndContinue,
        }
    }
}

/// In mode `partitioned`, what becomes of the later events of a key when one of them fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailingKey {
    /// They wait while it is tried again, and if it goes DEAD until it is replayed or discarded.
    #[default]
    Wait,
    /// They wait while it is tried again. If it goes DEAD, they go on.
    SkipDead,
    /// They go on at once; it is tried again beside them.
    Continue,
}

impl From<FailingKey> for run::FailingKey {
    fn from(key: FailingKey) -> Self {
        match key {
            FailingKey::Wait => Self::Wait,
            FailingKey::SkipDead => Self::SkipDead,
            FailingKey::Continue => Self::Continue,
        }
    }
}

impl From<run::FailingKey> for FailingKey {
    fn from(key: run::FailingKey) -> Self {
        match key {
            run::FailingKey::Wait => Self::Wait,
            run::FailingKey::SkipDead => Self::SkipDead,
            run::FailingKey::Continue => Self::Continue,
        }
    }
}

/// The moment at which a commit of SQLite is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// Before it returns.
    #[default]
    Full,
    /// Soon: a loss of power may take back the last ones.
    Normal,
}

/// The outcome for an event that no handler takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unroutable {
    /// It goes DEAD at once.
    #[default]
    Dead,
    /// It is looked at again after this long.
    Park(Duration),
}

impl From<Unroutable> for handlers::Unroutable {
    fn from(policy: Unroutable) -> Self {
        match policy {
            Unroutable::Dead => Self::Dead,
            Unroutable::Park(delay) => Self::Park(delay),
        }
    }
}

impl From<handlers::Unroutable> for Unroutable {
    fn from(policy: handlers::Unroutable) -> Self {
        match policy {
            handlers::Unroutable::Dead => Self::Dead,
            handlers::Unroutable::Park(delay) => Self::Park(delay),
        }
    }
}

impl Serialize for Unroutable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Dead => serializer.serialize_str("dead"),
            Self::Park(delay) => serializer.collect_str(&format_args!("park {}", humantime::format_duration(*delay))),
        }
    }
}

impl<'de> Deserialize<'de> for Unroutable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        match text.split_once(' ') {
            None if text == "dead" => Ok(Self::Dead),
            Some(("park", delay)) => duration::parse(delay.trim()).map(Self::Park).map_err(D::Error::custom),
            _ => Err(D::Error::custom(format!(
                "is {text:?}; write `dead`, or `park` and for how long, such as `park 30s`"
            ))),
        }
    }
}
