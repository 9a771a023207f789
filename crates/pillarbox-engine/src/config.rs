mod modes;
pub mod notation;
mod unroutable;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::ownership::NodeName;
use pillarbox_core::retry::{ErrorFilter, ExponentialBackoff, RetryPolicy};
use pillarbox_core::row::Change;
use pillarbox_core::store::Heads;
use serde::{Deserialize, Serialize};

pub use modes::{Mode, applies, why_ignored};
use notation::{bytes, or_never, span};
pub use unroutable::Unroutable;
pub(crate) use validate::time_limit;

const HOUR: Duration = Duration::from_secs(3600);

/// All settings of an outbox, one struct per stage. The defaults are meant for production.
///
/// Each section but `retry`, whose policy is code, reads itself from a file by serde: durations as `200ms` or `never`, bytes as `64MiB`.
/// A field that is missing has its default, and one that does not exist is refused.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Reading the table.
    pub claim: ClaimConfig,
    /// Calling handlers.
    pub dispatch: DispatchConfig,
    /// Trying again.
    pub retry: RetryConfig,
    /// Recording verdicts.
    pub settle: SettleConfig,
    /// Being a node.
    pub ownership: OwnershipConfig,
    /// Deleting what is over.
    pub purge: PurgeConfig,
    /// Stopping.
    pub shutdown: ShutdownConfig,
    /// Waking other processes, and being woken by them.
    pub wake_up: WakeUpConfig,
    /// Being watched.
    pub metrics: MetricsConfig,
}

/// Reading the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaimConfig {
    /// Rows read at once, 1 to 10,000. Default 1000. Large payloads are bounded by `dispatch.payload_memory`.
    pub batch: usize,
    /// Shortest time between two polls while there is work, 1 ms to `max_interval`. Default 50 ms. Polls that are asked for (a
    /// write, a due time, a full batch) do not wait for it.
    #[serde(with = "span")]
    pub min_interval: Duration,
    /// Longest time between two polls, up to one hour. Default 5 s. It is how long a row inserted by another process may
    /// wait on an idle system.
    #[serde(with = "span")]
    pub max_interval: Duration,
}

impl Default for ClaimConfig {
    fn default() -> Self {
        Self { batch: 1000, min_interval: Duration::from_millis(50), max_interval: Duration::from_secs(5) }
    }
}

/// Calling handlers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatchConfig {
    /// Handlers running at once, 1 to 10,000. Default 8. Raise it for handlers that wait on other services. Where there are several
    /// handlers, none has more than half of them, rounded up, so that one that does not answer stops no other.
    pub workers: usize,
    /// Events waiting in memory after their commit, 1 to 1,000,000. Default 2000. Beyond it events wait in the table.
    pub hot_capacity: usize,
    /// Events waiting in memory after being read from the table, 1 to 1,000,000. Default 4000: enough that reading goes on
    /// while they are delivered, with the half that each handler has at most where there are several.
    pub cold_capacity: usize,
    /// Bytes of payloads and headers in memory, of events that wait and of events that are being handled, at least 1 KiB. Default 64 MiB. Beyond it
    /// events wait in the table; a single one always gets through.
    #[serde(with = "bytes")]
    pub payload_memory: usize,
    /// The fate of an event that no handler takes. Default: it stays pending and is looked at again every 30 seconds, since
    /// in a rolling deployment a newer release may know it.
    pub unroutable: Unroutable,
    /// An event that no handler takes goes DEAD once it is this old, by the database's clock, and its type has been met for
    /// that long by the process, an hour at most. `None`: never. Default one day. One millisecond to 100 years. It has no
    /// effect with [`Unroutable::Dead`].
    #[serde(with = "or_never")]
    pub unroutable_dead_after: Option<Duration>,
    /// The time limit of a call of a handler, 1 ms to 100 years; then the call is dropped, and the attempt has failed. `None`:
    /// no limit. Default 5 minutes. A handler may have [its own](crate::handlers::Registration::timeout).
    #[serde(with = "or_never")]
    pub handler_timeout: Option<Duration>,
    /// A call that runs longer is named in the log, and if all workers are in such calls the outbox is not ready; 1 ms to
    /// one day. Default 60 s. Raise it where calls take that long as a rule.
    #[serde(with = "span")]
    pub slow_after: Duration,
}

impl Default for DispatchConfig {
    fn default() -> Self {
        Self {
            workers: 8,
            hot_capacity: 2000,
            cold_capacity: 4000,
            payload_memory: 64 << 20,
            unroutable: Unroutable::default(),
            unroutable_dead_after: Some(24 * HOUR),
            handler_timeout: Some(Duration::from_secs(5 * 60)),
            slow_after: Duration::from_secs(60),
        }
    }
}

/// Trying again.
#[derive(Debug, Clone)]
pub struct RetryConfig {
    /// Handler calls in total before an event goes DEAD, at least 1. Default 10.
    pub max_attempts: u32,
    /// The policy for the time between attempts. Default: exponential from 200 ms to 60 s.
    pub policy: Arc<dyn RetryPolicy>,
    /// The errors after which an event is tried again. Default: all that do not say otherwise themselves.
    pub errors: ErrorFilter,
    /// The fate of the events behind one that fails. Mode `ordered` only. Default: they wait.
    pub failing_head: FailingHead,
    /// The fate of the later events of a key when one of them fails. Mode `partitioned` only. Default: they wait.
    pub failing_key: FailingKey,
}

/// The treatment of a key's later events after a failure, in mode `partitioned`.
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

impl FailingKey {
    /// True if an event for which `change` is to be recorded keeps the later events of its key waiting.
    pub(crate) fn blocks(self, change: &Change) -> bool {
        match change {
            Change::Done | Change::DeliveredAs(_) | Change::Rescued { .. } | Change::Remove => false,
            Change::Retry { .. } | Change::RetryInPlace { .. } => self != Self::Continue,
            Change::Dead { .. } => self == Self::Wait,
        }
    }

    /// The rows of a key behind which a fetch leaves the later ones out.
    pub(crate) fn heads(self) -> Heads {
        match self {
            Self::Wait => Heads::RetryAndDead,
            Self::SkipDead => Heads::Retry,
            Self::Continue => Heads::None,
        }
    }
}

/// The treatment of the events behind a failing one, in mode `ordered`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailingHead {
    /// They wait while it is tried again, until it is delivered or DEAD.
    #[default]
    RetryInPlace,
    /// It goes DEAD at its first failure, or at once if no handler takes it, and they go on. `retry.max_attempts` and
    /// `dispatch.unroutable` do not apply then, and are refused if they say otherwise.
    DeadAndContinue,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 10,
            policy: Arc::new(ExponentialBackoff::default()),
            errors: ErrorFilter::default(),
            failing_head: FailingHead::default(),
            failing_key: FailingKey::default(),
        }
    }
}

/// Recording verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettleConfig {
    /// Verdicts recorded in one transaction at most, 1 to 10,000. Default 1000.
    pub batch: usize,
    /// True if the rows of delivered events are deleted at once, instead of being kept as DONE until they are purged. Default:
    /// false. It is the faster way, and leaves no trace.
    pub delete_done: bool,
    /// True if a row keeps the position that its handler has reported: the offset or the id that its event has at the broker. Default: true. It
    /// makes the rows of handlers that report one longer, and recording them dearer; those of other handlers cost the same. It has no
    /// effect with `delete_done`.
    pub keep_positions: bool,
}

impl Default for SettleConfig {
    fn default() -> Self {
        Self { batch: 1000, delete_done: false, keep_positions: true }
    }
}

/// Being a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnershipConfig {
    /// The node's name in the database and in logs. `None`, the default: the host's name.
    pub node_name: Option<NodeName>,
    /// The time for which ownership holds without renewal, 100 ms to one hour. Default 15 s. The events of a crashed node wait
    /// that long for the next one. A node renews its ownership every third of it.
    #[serde(with = "span")]
    pub lease: Duration,
    /// The interval at which a standby checks if it can take over, 10 ms to one minute. Modes `single_node` and `ordered` only.
    /// Default 900 ms.
    #[serde(with = "span")]
    pub standby_interval: Duration,
}

impl Default for OwnershipConfig {
    fn default() -> Self {
        Self { node_name: None, lease: Duration::from_secs(15), standby_interval: Duration::from_millis(900) }
    }
}

/// Stopping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShutdownConfig {
    /// The time that queued and running events may take to finish, up to one hour. Default 5 s. Events that are not done by then
    /// are left to the next owner. In mode `partitioned`, also the time that a handler may run while another node waits for its
    /// partition before it is [told](pillarbox_core::handle::Delivery::stop_requested); the partition waits for it in any case.
    #[serde(with = "span")]
    pub drain_timeout: Duration,
}

impl Default for ShutdownConfig {
    fn default() -> Self {
        Self { drain_timeout: Duration::from_secs(5) }
    }
}

/// Deleting what is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PurgeConfig {
    /// The time for which DONE events are kept, up to 100 years. `None` keeps them for ever. Default 7 days.
    #[serde(with = "or_never")]
    pub done_after: Option<Duration>,
    /// The time for which DEAD events are kept, up to 100 years. `None`, the default, keeps them until they are replayed or discarded.
    #[serde(with = "or_never")]
    pub dead_after: Option<Duration>,
    /// The time for which the [inbox](pillarbox_core::inbox) remembers messages that consumers have received, up to 100 years: longer than
    /// any of them may come again. `None` keeps them for ever. Default 30 days.
    #[serde(with = "or_never")]
    pub inbox_after: Option<Duration>,
    /// The time for which the audit table keeps what operators have done, up to 100 years. `None` keeps it for ever. Default 90 days.
    #[serde(with = "or_never")]
    pub audit_after: Option<Duration>,
    /// The time for which any event is kept, whatever its state, up to 100 years. Mode `writer_only` only. `None`, the default,
    /// deletes nothing.
    #[serde(with = "or_never")]
    pub all_after: Option<Duration>,
    /// The interval between searches for events to delete, one second to one day. Default one hour.
    #[serde(with = "span")]
    pub interval: Duration,
    /// Rows deleted in one transaction at most, 1 to 10,000. Default 2,000.
    pub batch: usize,
}

impl Default for PurgeConfig {
    fn default() -> Self {
        Self {
            done_after: Some(7 * 24 * HOUR),
            dead_after: None,
            inbox_after: Some(30 * 24 * HOUR),
            audit_after: Some(90 * 24 * HOUR),
            all_after: None,
            interval: HOUR,
            batch: 2000,
        }
    }
}

/// Waking other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WakeUpConfig {
    /// True if processes on the same table wake each other, so that events committed by another one are delivered within
    /// milliseconds and not at the next poll. Off by default. PostgreSQL only (`NOTIFY`, outside of the writers' transactions);
    /// every process that writes or delivers has to turn it on.
    pub enabled: bool,
}

/// Being watched. `docs/metrics.md` lists the metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// The prefix of the names of metrics, before a dot: 1 to 64 letters, digits, underscores and dots, of which the first is a
    /// letter. Default `pillarbox`.
    pub prefix: String,
    /// The interval at which the gauges are brought up to date, for which a node that delivers counts the pending rows; one second
    /// to one hour, doubled while nothing is due, and shortened by up to a quarter at random. Default 15 s. Raise it with a backlog of many millions of rows.
    #[serde(with = "span")]
    pub interval: Duration,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { prefix: "pillarbox".to_owned(), interval: Duration::from_secs(15) }
    }
}
