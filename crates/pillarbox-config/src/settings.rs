//! The tree. Its fields are the keys, their documentation is what `docs/configuration.md` tells at length, and their
//! defaults are taken from the library's, so that they cannot drift.

use std::path::PathBuf;
use std::time::Duration;

use pillarbox_core::store::TableName;
use pillarbox_engine::run::{
    ClaimConfig, DispatchConfig, MetricsConfig, OwnershipConfig, PurgeConfig, RetryConfig, SettleConfig,
    ShutdownConfig, WakeUpConfig,
};
use serde::{Deserialize, Serialize};

use crate::Setup;
use crate::origin::Origins;
use crate::value::{
    ByteSize, DatabaseUrl, FailingHead, FailingKey, Mode, RetryPolicyKind, Synchronous, Unroutable, if_given, or_never,
    span,
};

/// All settings of an outbox: where its table is, who delivers, and one struct per stage.
///
/// Read it with [`load`](crate::load) or a [`Loader`](crate::Loader), or begin with the defaults; change what the program
/// knows better; then call [`outbox`](Self::outbox).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// True if this process delivers. Default `true`. Without it, it only writes, whatever the mode.
    pub enabled: bool,
    /// The nodes that deliver. Default `single_node`.
    pub mode: Mode,
    /// The database and its table.
    pub store: StoreSettings,
    /// Reading the table.
    pub claim: ClaimSettings,
    /// Calling handlers.
    pub dispatch: DispatchSettings,
    /// Trying again.
    pub retry: RetrySettings,
    /// Recording verdicts.
    pub settle: SettleSettings,
    /// Being a node.
    pub ownership: OwnershipSettings,
    /// Deleting what is over.
    pub purge: PurgeSettings,
    /// Waking other processes.
    pub wake_up: WakeUpSettings,
    /// Stopping.
    pub shutdown: ShutdownSettings,
    /// Being watched.
    pub metrics: MetricsSettings,
    /// The origins of the settings, for errors.
    #[serde(skip)]
    pub(crate) origins: Origins,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: Mode::default(),
            store: StoreSettings::default(),
            claim: ClaimSettings::default(),
            dispatch: DispatchSettings::default(),
            retry: RetrySettings::default(),
            settle: SettleSettings::default(),
            ownership: OwnershipSettings::default(),
            purge: PurgeSettings::default(),
            wake_up: WakeUpSettings::default(),
            shutdown: ShutdownSettings::default(),
            metrics: MetricsSettings::default(),
            origins: Origins::default(),
        }
    }
}

impl Settings {
    /// True if both say the same, wherever it was given.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let alone = |settings: &Self| Self { origins: Origins::default(), ..settings.clone() };
        alone(self) == alone(other)
    }

    /// Begins to set up an outbox with these settings.
    pub fn outbox(self) -> Setup {
        Setup::new(self)
    }
}

/// The database and its table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The database. It is a secret: better given by the environment or by `url_file`.
    pub url: Option<DatabaseUrl>,
    /// A file that holds the URL and nothing else, such as a mounted secret.
    pub url_file: Option<PathBuf>,
    /// The event table, such as `billing.outbox_event`. Default `outbox_event`.
    pub table: String,
    /// The prefix of the names of all the tables, such as `shop_` for `shop_outbox_event`. Default: nothing.
    pub table_prefix: Option<String>,
    /// Creates or upgrades the tables at the start. Default `false`.
    pub migrate: bool,
    /// PostgreSQL and MySQL: connections for events, at least 1; there is one more for the lease. Default 4.
    pub pool_size: usize,
    /// PostgreSQL: waits for the disk when it records that an event was handled. Default `false`.
    pub durable_marks: bool,
    /// SQLite: `full` if a commit waits for the disk, else `normal`. Default `full`.
    pub synchronous: Synchronous,
    /// SQLite: how long a call waits for its turn to write. Default `5s`.
    #[serde(with = "span")]
    pub busy_timeout: Duration,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            url: None,
            url_file: None,
            table: TableName::default().to_string(),
            table_prefix: None,
            migrate: false,
            pool_size: 4,
            durable_marks: false,
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
        }
    }
}

/// Reading the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaimSettings {
    /// Rows read at once, 1 to 10,000. Default 1000.
    pub batch: usize,
    /// Pause between looks while there is work. Default `50ms`.
    #[serde(with = "span")]
    pub min_interval: Duration,
    /// Longest pause between looks. Default `5s`.
    #[serde(with = "span")]
    pub max_interval: Duration,
}

impl Default for ClaimSettings {
    fn default() -> Self {
        let ClaimConfig { batch, min_interval, max_interval } = ClaimConfig::default();
        Self { batch, min_interval, max_interval }
    }
}

/// Calling handlers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatchSettings {
    /// Handlers running at once, 1 to 10,000. Default 8.
    pub workers: usize,
    /// Events waiting in memory after their commit, 1 to 1,000,000. Default 2000.
    pub hot_capacity: usize,
    /// Events waiting in memory after being read from the table, 1 to 1,000,000. Default 4000.
    pub cold_capacity: usize,
    /// Payload in memory, of events that wait and of events that are being handled, at least `1KiB`. Default `64MiB`.
    pub payload_memory: ByteSize,
    /// The fate of an event that no handler takes: `park 30s`, or `dead`. Default `park 30s`.
    pub unroutable: Unroutable,
    /// The age at which an event that no handler takes goes DEAD, or `never`. Default `1d`.
    #[serde(with = "or_never")]
    pub unroutable_dead_after: Option<Duration>,
    /// The time limit of a call of a handler, or `never`. Default `5m`.
    #[serde(with = "or_never")]
    pub handler_timeout: Option<Duration>,
    /// A call that runs longer is named in the log. Default `60s`.
    #[serde(with = "span")]
    pub slow_after: Duration,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        let DispatchConfig {
            workers,
            hot_capacity,
            cold_capacity,
            payload_memory,
            unroutable,
            unroutable_dead_after,
            handler_timeout,
            slow_after,
        } = DispatchConfig::default();
        let (unroutable, payload_memory) = (unroutable.into(), ByteSize(payload_memory));
        Self {
            workers,
            hot_capacity,
            cold_capacity,
            payload_memory,
            unroutable,
            unroutable_dead_after,
            handler_timeout,
            slow_after,
        }
    }
}

/// Trying again, unless [`Setup::retry_policy`] sets another policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// Handler calls in total before an event goes DEAD, at least 1. Default 10.
    pub max_attempts: u32,
    /// The growth of the pauses from failure to failure. Default `exponential`.
    pub policy: RetryPolicyKind,
    /// The pause after the first failure. Default `200ms`.
    #[serde(with = "span")]
    pub base: Duration,
    /// The longest pause, before jitter. Policies `exponential` and `linear`. Default `60s`.
    #[serde(with = "span")]
    pub cap: Duration,
    /// The factor by which each further pause is longer, 1 to 1000. Policy `exponential`. Default `2.0`.
    pub multiplier: f64,
    /// The time by which each further pause is longer. Policy `linear`. Default `200ms`.
    #[serde(with = "span")]
    pub step: Duration,
    /// The largest random change of a pause, in both directions; `0s` for none. Default: pauses of policy `exponential` vary
    /// by half, the others not at all.
    #[serde(with = "if_given")]
    pub jitter: Option<Duration>,
    /// Mode `ordered`: what becomes of the events behind one that fails. Default `retry_in_place`.
    pub failing_head: FailingHead,
    /// Mode `partitioned`: what becomes of the later events of a key when one of them fails. Default `wait`.
    pub failing_key: FailingKey,
}

impl Default for RetrySettings {
    fn default() -> Self {
        // The policy is behind a trait, which shows no numbers; a test compares them.
        let RetryConfig { max_attempts, policy: _, errors: _, failing_head, failing_key } = RetryConfig::default();
        let base = Duration::from_millis(200);
        Self {
            max_attempts,
            policy: RetryPolicyKind::default(),
            base,
            cap: Duration::from_secs(60),
            multiplier: 2.0,
            step: base,
            jitter: None,
            failing_head: failing_head.into(),
            failing_key: failing_key.into(),
        }
    }
}

/// Recording verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettleSettings {
    /// Verdicts recorded in one transaction at most, 1 to 10,000. Default 1000.
    pub batch: usize,
    /// Deletes the rows of delivered events at once. Default `false`: they are kept as DONE until they are purged.
    pub delete_done: bool,
}

impl Default for SettleSettings {
    fn default() -> Self {
        let SettleConfig { batch, delete_done } = SettleConfig::default();
        Self { batch, delete_done }
    }
}

/// Being a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnershipSettings {
    /// The node's name in the database and in logs. Default: the host's name.
    pub node_name: Option<String>,
    /// The time for which ownership holds without renewal. Default `15s`.
    #[serde(with = "span")]
    pub lease: Duration,
    /// The interval at which a standby checks whether it can take over. Default `900ms`.
    #[serde(with = "span")]
    pub standby_interval: Duration,
}

impl Default for OwnershipSettings {
    fn default() -> Self {
        let OwnershipConfig { node_name: _, lease, standby_interval } = OwnershipConfig::default();
        Self { node_name: None, lease, standby_interval }
    }
}

/// Deleting what is over. Every duration may be `never`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PurgeSettings {
    /// The time for which DONE events are kept. Default `7d`.
    #[serde(with = "or_never")]
    pub done_after: Option<Duration>,
    /// The time for which DEAD events are kept. Default `never`: until they are replayed or discarded.
    #[serde(with = "or_never")]
    pub dead_after: Option<Duration>,
    /// Mode `writer_only`: the time for which any event is kept. Default `never`: nothing is deleted.
    #[serde(with = "or_never")]
    pub all_after: Option<Duration>,
    /// The interval between two searches for events to purge. Default `1h`.
    #[serde(with = "span")]
    pub interval: Duration,
    /// Rows deleted in one transaction at most, 1 to 10,000. Default 500.
    pub batch: usize,
}

impl Default for PurgeSettings {
    fn default() -> Self {
        let PurgeConfig { done_after, dead_after, interval, batch } = PurgeConfig::default();
        Self { done_after, dead_after, all_after: None, interval, batch }
    }
}

/// Waking other processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WakeUpSettings {
    /// Lets processes on the same table wake each other. PostgreSQL only. Default `false`.
    pub enabled: bool,
}

impl Default for WakeUpSettings {
    fn default() -> Self {
        let WakeUpConfig { enabled } = WakeUpConfig::default();
        Self { enabled }
    }
}

/// Stopping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShutdownSettings {
    /// The time in which queued and running events may finish. Default `5s`.
    #[serde(with = "span")]
    pub drain_timeout: Duration,
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        let ShutdownConfig { drain_timeout } = ShutdownConfig::default();
        Self { drain_timeout }
    }
}

/// Being watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsSettings {
    /// The prefix of the names of metrics, before a dot. Default `pillarbox`.
    pub prefix: String,
    /// The interval at which the gauges are brought up to date. Default `15s`.
    #[serde(with = "span")]
    pub interval: Duration,
}

impl Default for MetricsSettings {
    fn default() -> Self {
        let MetricsConfig { prefix, interval } = MetricsConfig::default();
        Self { prefix, interval }
    }
}
