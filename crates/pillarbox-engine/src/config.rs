mod modes;

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::ConfigError;
use pillarbox_core::ownership::{Mode, NodeName};
use pillarbox_core::retry::{ErrorFilter, ExponentialBackoff, RetryPolicy};
use pillarbox_core::row::Change;
use pillarbox_core::store::Heads;

pub use modes::applies;

/// All settings of an outbox, one struct per stage. The defaults are meant for production.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimConfig {
    /// Rows read at once, 1 to 10,000. Default 1000. Large payloads are bounded by `dispatch.payload_memory`.
    pub batch: usize,
    /// Pause between looks while there is work, 1 ms to `max_interval`. Default 50 ms. Looks that are asked for (a write,
    /// a due time, a full batch) do not wait for it.
    pub min_interval: Duration,
    /// Longest pause between looks, up to one hour. Default 5 s. It is how long a row inserted by another process may
    /// wait on an idle system.
    pub max_interval: Duration,
}

impl Default for ClaimConfig {
    fn default() -> Self {
        Self { batch: 1000, min_interval: Duration::from_millis(50), max_interval: Duration::from_secs(5) }
    }
}

/// Calling handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchConfig {
    /// Handlers running at once, 1 to 10,000. Default 8. Raise it for handlers that wait on other services. Where there are several
    /// handlers, none has more than half of them, rounded up, so that one that does not answer stops no other.
    pub workers: usize,
    /// Events waiting in memory after their commit, 1 to 1,000,000. Default 2000. Beyond it events wait in the table.
    pub hot_capacity: usize,
    /// Events waiting in memory after being read from the table, 1 to 1,000,000. Default 4000: enough that reading goes on
    /// while they are delivered, with the half that each handler has at most where there are several.
    pub cold_capacity: usize,
    /// Bytes of payload in memory, of events that wait and of events that are being handled, at least 1 KiB. Default 64 MiB. Beyond it
    /// events wait in the table; a single one always gets through.
    pub payload_memory: usize,
    /// The fate of an event that no handler takes. Default: it stays pending and is looked at again every 30 seconds, since
    /// in a rolling deployment a newer release may know it.
    pub unroutable: Unroutable,
    /// An event that no handler takes goes DEAD once it is this old, by the database's clock, and its type has been met for
    /// that long by the process, an hour at most. `None`: never. Default one day. One millisecond to 100 years. It has no
    /// effect with [`Unroutable::Dead`].
    pub unroutable_dead_after: Option<Duration>,
    /// The time limit of a call of a handler, 1 ms to 100 years; then the call is dropped, and the attempt has failed. `None`:
    /// no limit. Default 5 minutes. A handler may have [its own](crate::handlers::Registration::timeout).
    pub handler_timeout: Option<Duration>,
    /// A call that runs longer is named in the log, and if all workers are in such calls the outbox is not ready; 1 ms to
    /// one day. Default 60 s. Raise it where calls take that long as a rule.
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

/// In mode `partitioned`, what becomes of the later events of a key when one of them fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
            Change::Done | Change::Rescued { .. } | Change::Remove => false,
            Change::Retry { .. } | Change::Hold { .. } => self != Self::Continue,
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

/// In mode `ordered`, what becomes of the events behind one that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleConfig {
    /// Verdicts recorded in one transaction at most, 1 to 10,000. Default 1000.
    pub batch: usize,
    /// True if the rows of delivered events are deleted at once, instead of being kept as DONE until they are purged. Default:
    /// false. It is the faster way, and leaves no trace.
    pub delete_done: bool,
}

impl Default for SettleConfig {
    fn default() -> Self {
        Self { batch: 1000, delete_done: false }
    }
}

/// Being a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipConfig {
    /// The node's name in the database and in logs. Default: the host's name.
    pub node_name: NodeName,
    /// The time for which ownership holds without renewal, 100 ms to one hour. Default 15 s. The events of a crashed node wait
    /// that long for the next one. A node renews its ownership every third of it.
    pub lease: Duration,
    /// The interval at which a standby checks if it can take over, 10 ms to one minute. Modes `single_node` and `ordered` only.
    /// Default 900 ms.
    pub standby_interval: Duration,
}

impl Default for OwnershipConfig {
    fn default() -> Self {
        Self {
            node_name: NodeName::of_host(),
            lease: Duration::from_secs(15),
            standby_interval: Duration::from_millis(900),
        }
    }
}

/// Stopping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutdownConfig {
    /// The time that queued and running events may take to finish, up to one hour. Default 5 s. Events that are not done by then
    /// are left to the next owner. In mode `partitioned`, also the time that a handler may run while another node waits for its
    /// partition before it is [told](pillarbox_core::handle::Delivery::cancelled); the partition waits for it in any case.
    pub drain_timeout: Duration,
}

impl Default for ShutdownConfig {
    fn default() -> Self {
        Self { drain_timeout: Duration::from_secs(5) }
    }
}

/// Deleting what is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeConfig {
    /// The time for which DONE events are kept, up to 100 years. `None` keeps them for ever. Default 7 days.
    pub done_after: Option<Duration>,
    /// The time for which DEAD events are kept, up to 100 years. `None`, the default, keeps them until they are replayed or discarded.
    pub dead_after: Option<Duration>,
    /// The interval between looks for events to delete, one second to one day. Default one hour.
    pub interval: Duration,
    /// Rows deleted in one transaction at most, 1 to 10,000. Default 500.
    pub batch: usize,
}

impl Default for PurgeConfig {
    fn default() -> Self {
        Self { done_after: Some(7 * 24 * HOUR), dead_after: None, interval: HOUR, batch: 500 }
    }
}

/// Waking other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WakeUpConfig {
    /// True if processes on the same table wake each other, so that events committed by another one are delivered within
    /// milliseconds and not at the next look. Off by default. PostgreSQL only (`NOTIFY`, outside of the writers' transactions);
    /// every process that writes or delivers has to turn it on.
    pub enabled: bool,
}

/// Being watched. What is measured is listed in `docs/metrics.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    /// The prefix of the names of metrics, before a dot: 1 to 64 letters, digits, underscores and dots, of which the first is a
    /// letter. Default `pillarbox`.
    pub prefix: String,
    /// The interval at which the gauges are brought up to date, for which a node that delivers counts the pending rows; one second
    /// to one hour, shortened by up to a quarter at random. Default 15 s. Raise it with a backlog of many millions of rows.
    pub interval: Duration,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { prefix: "pillarbox".to_owned(), interval: Duration::from_secs(15) }
    }
}

const HOUR: Duration = Duration::from_secs(3600);
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Config {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first one that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Self { claim, dispatch, retry, settle, ownership, purge, shutdown, wake_up: _, metrics } = self;
        count("purge.batch", purge.batch, 10_000)?;
        duration("purge.interval", purge.interval, Duration::from_secs(1), 24 * HOUR)?;
        for (field, kept) in [("purge.done_after", purge.done_after), ("purge.dead_after", purge.dead_after)] {
            duration(field, kept.unwrap_or_default(), Duration::ZERO, CENTURY)?;
        }
        count("claim.batch", claim.batch, 10_000)?;
        count("settle.batch", settle.batch, 10_000)?;
        count("dispatch.workers", dispatch.workers, 10_000)?;
        count("dispatch.hot_capacity", dispatch.hot_capacity, 1_000_000)?;
        count("dispatch.cold_capacity", dispatch.cold_capacity, 1_000_000)?;
        if dispatch.payload_memory < 1024 {
            let problem = format!("is {} bytes", dispatch.payload_memory);
            return Err(ConfigError::new("dispatch.payload_memory", problem, "set at least 1 KiB"));
        }
        duration("claim.max_interval", claim.max_interval, Duration::from_millis(1), HOUR)?;
        duration("claim.min_interval", claim.min_interval, Duration::from_millis(1), claim.max_interval)?;
        duration("ownership.lease", ownership.lease, Duration::from_millis(100), HOUR)?;
        let minute = Duration::from_secs(60);
        duration("ownership.standby_interval", ownership.standby_interval, Duration::from_millis(10), minute)?;
        duration("shutdown.drain_timeout", shutdown.drain_timeout, Duration::ZERO, HOUR)?;
        duration("metrics.interval", metrics.interval, Duration::from_secs(1), HOUR)?;
        prefix("metrics.prefix", &metrics.prefix)?;
        if let Unroutable::Park(delay) = dispatch.unroutable {
            duration("dispatch.unroutable", delay, Duration::from_millis(1), 365 * 24 * HOUR)?;
        }
        let ms = Duration::from_millis(1);
        for (field, after) in [
            ("dispatch.unroutable_dead_after", dispatch.unroutable_dead_after),
            ("dispatch.handler_timeout", dispatch.handler_timeout),
        ] {
            duration(field, after.unwrap_or(ms), ms, CENTURY)?;
        }
        duration("dispatch.slow_after", dispatch.slow_after, ms, 24 * HOUR)?;
        if retry.max_attempts == 0 {
            return Err(ConfigError::new("retry.max_attempts", "is zero", "set at least 1: the first call counts"));
        }
        Ok(())
    }
}

impl Config {
    /// Checks every setting, and that none was changed that `mode` would ignore.
    ///
    /// # Errors
    /// The first one that is out of its range or does not apply.
    pub fn validate_for(&self, mode: Mode) -> Result<(), ConfigError> {
        self.validate()?;
        use Mode::{MultiNode, Ordered, Partitioned, SingleNode};
        let dispatch = DispatchConfig::default();
        // The settings that some modes lack, whether each was changed, and the modes that have it.
        let standby = self.ownership.standby_interval != OwnershipConfig::default().standby_interval;
        let changed: [(&'static str, bool, &[Mode]); 5] = [
            ("dispatch.workers", self.dispatch.workers != dispatch.workers, &[SingleNode, MultiNode, Partitioned]),
            ("dispatch.hot_capacity", self.dispatch.hot_capacity != dispatch.hot_capacity, &[SingleNode, MultiNode]),
            ("retry.failing_head", self.retry.failing_head != FailingHead::default(), &[Ordered]),
            ("retry.failing_key", self.retry.failing_key != FailingKey::default(), &[Partitioned]),
            ("ownership.standby_interval", standby, &[SingleNode, Ordered]),
        ];
        if let Some((field, ..)) = changed.into_iter().find(|(_, changed, modes)| *changed && !modes.contains(&mode)) {
            return Err(ConfigError::new(field, format!("does not apply to mode {mode}"), "leave it at its default"));
        }
        if self.retry.failing_head == FailingHead::DeadAndContinue { self.validate_single_attempt() } else { Ok(()) }
    }

    /// Checks that no setting contradicts [`FailingHead::DeadAndContinue`], which leaves a head one attempt.
    fn validate_single_attempt(&self) -> Result<(), ConfigError> {
        let attempts = [1, RetryConfig::default().max_attempts].contains(&self.retry.max_attempts);
        let unroutable = [Unroutable::Dead, Unroutable::default()].contains(&self.dispatch.unroutable);
        match [("retry.max_attempts", attempts), ("dispatch.unroutable", unroutable)].into_iter().find(|(_, ok)| !ok) {
            Some((field, _)) => {
                let problem = "does not apply to mode ordered with `retry.failing_head` at `DeadAndContinue`";
                Err(ConfigError::new(field, problem, "leave it at its default"))
            }
            None => Ok(()),
        }
    }
}

fn count(field: &'static str, value: usize, max: usize) -> Result<(), ConfigError> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(field, format!("is {value}"), format!("set a number from 1 to {max}")))
}

fn duration(field: &'static str, value: Duration, min: Duration, max: Duration) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(field, format!("is {value:?}"), format!("set a duration from {min:?} to {max:?}")))
}

fn prefix(field: &'static str, value: &str) -> Result<(), ConfigError> {
    let may_follow = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if value.len() <= 64 && value.starts_with(|c: char| c.is_ascii_alphabetic()) && value.chars().all(may_follow) {
        return Ok(());
    }
    let remedy = "set 1 to 64 letters, digits, underscores and dots, beginning with a letter";
    Err(ConfigError::new(field, format!("is {value:?}"), remedy))
}

/// The fate of an event that no handler takes. Either way a warning or an error in the log names its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unroutable {
    /// It goes DEAD at once, with an error that names its types.
    Dead,
    /// It stays pending and is looked at again after this long, without counting an attempt: during a rolling deployment a
    /// newer node may know it. It goes DEAD when it is
    /// [too old](crate::config::DispatchConfig::unroutable_dead_after). The default, every 30 seconds.
    ///
    /// It waits as a failing event does: in mode `partitioned` the later events of its key wait with it, unless
    /// [`FailingKey::Continue`](crate::config::FailingKey) says otherwise, and in mode `ordered` all that is behind it.
    Park(Duration),
}

impl Default for Unroutable {
    fn default() -> Self {
        Self::Park(Duration::from_secs(30))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    #[test]
    fn every_setting_out_of_range_is_named() {
        let ms = Duration::from_millis;
        type Spoil = fn(&mut Config);
        let table: [(&str, Spoil); 19] = [
            ("claim.batch", |c| c.claim.batch = 0),
            ("settle.batch", |c| c.settle.batch = 10_001),
            ("dispatch.workers", |c| c.dispatch.workers = 0),
            ("dispatch.hot_capacity", |c| c.dispatch.hot_capacity = 0),
            ("dispatch.cold_capacity", |c| c.dispatch.cold_capacity = usize::MAX),
            ("dispatch.payload_memory", |c| c.dispatch.payload_memory = 1023),
            ("claim.max_interval", |c| c.claim.max_interval = Duration::MAX),
            ("claim.min_interval", |c| c.claim.min_interval = Duration::from_secs(6)),
            ("ownership.lease", |c| c.ownership.lease = Duration::from_millis(99)),
            ("ownership.standby_interval", |c| c.ownership.standby_interval = Duration::ZERO),
            ("shutdown.drain_timeout", |c| c.shutdown.drain_timeout = Duration::MAX),
            ("dispatch.unroutable", |c| c.dispatch.unroutable = Unroutable::Park(Duration::ZERO)),
            ("dispatch.unroutable_dead_after", |c| c.dispatch.unroutable_dead_after = Some(Duration::ZERO)),
            ("dispatch.handler_timeout", |c| c.dispatch.handler_timeout = Some(Duration::ZERO)),
            ("dispatch.slow_after", |c| c.dispatch.slow_after = Duration::MAX),
            ("retry.max_attempts", |c| c.retry.max_attempts = 0),
            ("metrics.interval", |c| c.metrics.interval = Duration::ZERO),
            ("metrics.prefix", |c| c.metrics.prefix.clear()),
            ("metrics.prefix", |c| c.metrics.prefix = "shop outbox".to_owned()),
        ];
        for (field, spoil) in table {
            let mut config = Config::default();
            spoil(&mut config);
            assert_eq!(config.validate().map_err(|error| error.field()), Err(field));
        }
        assert!(count("x", 1, 1).is_ok() && duration("x", ms(1), ms(1), ms(1)).is_ok());
    }

    #[test]
    fn a_setting_that_the_mode_lacks_is_refused() {
        use Mode::{MultiNode, Ordered, Partitioned, SingleNode};
        type Change = fn(&mut Config);
        let table: [(&str, Change, &[Mode]); 7] = [
            ("dispatch.workers", |c| c.dispatch.workers = 4, &[SingleNode, MultiNode, Partitioned]),
            ("dispatch.hot_capacity", |c| c.dispatch.hot_capacity = 4, &[SingleNode, MultiNode]),
            ("retry.failing_head", |c| c.retry.failing_head = FailingHead::DeadAndContinue, &[Ordered]),
            ("retry.failing_key", |c| c.retry.failing_key = FailingKey::SkipDead, &[Partitioned]),
            (
                "ownership.standby_interval",
                |c| c.ownership.standby_interval = Duration::from_millis(20),
                &[SingleNode, Ordered],
            ),
            ("retry.max_attempts", |c| c.retry.max_attempts = 3, &[SingleNode, MultiNode, Partitioned, Ordered]),
            (
                "dispatch.unroutable",
                |c| c.dispatch.unroutable = Unroutable::Park(Duration::from_secs(5)),
                &[SingleNode, MultiNode, Partitioned, Ordered],
            ),
        ];
        for (field, change, modes) in table {
            for mode in [SingleNode, MultiNode, Partitioned, Ordered] {
                let mut config = Config::default();
                change(&mut config);
                let problem = config.validate_for(mode).map_err(|error| error.to_string());
                let refused = format!("setting `{field}` does not apply to mode {mode}; leave it at its default");
                assert_eq!(problem, if modes.contains(&mode) { Ok(()) } else { Err(refused) });
            }
        }
        for (field, change, _) in table.iter().rev().take(2) {
            let mut config = Config::default();
            config.retry.failing_head = FailingHead::DeadAndContinue;
            change(&mut config);
            assert_eq!(config.validate_for(Ordered).map_err(|error| error.field()), Err(*field));
        }
    }
}
