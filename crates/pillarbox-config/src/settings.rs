//! The tree. Its fields are the keys. The sections that are the engine's are its own types, which know how they are written.

mod handler;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pillarbox_core::store::TableName;
use pillarbox_engine::run::notation::{if_given, span};
use pillarbox_engine::run::{
    ClaimConfig, DispatchConfig, FailingHead, FailingKey, MetricsConfig, Mode, OwnershipConfig, PurgeConfig,
    RetryConfig, SettleConfig, ShutdownConfig, WakeUpConfig,
};
use serde::{Deserialize, Serialize};

use crate::Setup;
use crate::modes::why_ignored;
use crate::origin::{Origin, Origins};
use crate::value::{DatabaseUrl, RetryPolicyKind, Synchronous};
pub use handler::{HandlerRetrySettings, HandlerSettings};

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
    pub claim: ClaimConfig,
    /// Calling handlers.
    pub dispatch: DispatchConfig,
    /// Trying again.
    pub retry: RetrySettings,
    /// Handlers by their names: what is set here replaces what the program sets for a handler.
    pub handler: BTreeMap<String, HandlerSettings>,
    /// Recording verdicts.
    pub settle: SettleConfig,
    /// Being a node.
    pub ownership: OwnershipConfig,
    /// Deleting what is over.
    pub purge: PurgeConfig,
    /// Waking other processes.
    pub wake_up: WakeUpConfig,
    /// Stopping.
    pub shutdown: ShutdownConfig,
    /// Being watched.
    pub metrics: MetricsConfig,
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
            claim: ClaimConfig::default(),
            dispatch: DispatchConfig::default(),
            retry: RetrySettings::default(),
            handler: BTreeMap::new(),
            settle: SettleConfig::default(),
            ownership: OwnershipConfig::default(),
            purge: PurgeConfig::default(),
            wake_up: WakeUpConfig::default(),
            shutdown: ShutdownConfig::default(),
            metrics: MetricsConfig::default(),
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

    /// The settings in force, for people: in the order of their keys, without the URL of the database, and without those that mean nothing
    /// in this mode, to this database or beside other settings.
    #[must_use]
    pub fn in_force(&self) -> Vec<InForce> {
        let mut all = Vec::new();
        // Settings can always be written: they are what a file holds.
        collect("", &serde_json::to_value(self).unwrap_or_default(), &mut all);
        let is_of_no_use = |key: &str| why_ignored(self, key).or_else(|| self.store.why_ignored(key)).is_some();
        all.retain(|setting| !is_of_no_use(&setting.key));
        for setting in &mut all {
            setting.origin = self.origins.get(&setting.key).cloned();
        }
        all
    }

    /// Begins to set up an outbox with these settings.
    pub fn outbox(self) -> Setup {
        Setup::new(self)
    }
}

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InForce {
    /// Its key, such as `claim.max_interval`.
    pub key: String,
    /// Its value as text; `–` if it has none.
    pub value: String,
    /// The place where it was given; `None` for a default.
    pub origin: Option<Origin>,
}

/// Adds the settings of a section to `all`.
fn collect(key: &str, value: &serde_json::Value, all: &mut Vec<InForce>) {
    use serde_json::Value;

    let value = match value {
        Value::Object(members) => {
            for (name, value) in members {
                collect(&if key.is_empty() { name.clone() } else { format!("{key}.{name}") }, value, all);
            }
            return;
        }
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    all.push(InForce { key: key.to_owned(), value, origin: None });
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
    pub durable_settles: bool,
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
            durable_settles: false,
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
        }
    }
}

/// Trying again, unless [`Setup::retry_policy`] sets another policy. It is a [`RetryConfig`] whose policy is given by numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// Handler calls in total before an event goes DEAD, at least 1. Default 10.
    pub max_attempts: u32,
    /// The growth of the delays from failure to failure. Default `exponential`.
    pub policy: RetryPolicyKind,
    /// The delay after the first failure. Default `200ms`.
    #[serde(with = "span")]
    pub base: Duration,
    /// The longest delay, before jitter. Policies `exponential` and `linear`. Default `60s`.
    #[serde(with = "span")]
    pub cap: Duration,
    /// The factor by which each further delay is longer, 1 to 1000. Policy `exponential`. Default `2.0`.
    pub multiplier: f64,
    /// The time by which each further delay is longer. Policy `linear`. Default `200ms`.
    #[serde(with = "span")]
    pub step: Duration,
    /// The largest random change of a delay, in both directions; `0s` for none. Default: delays of policy `exponential` vary
    /// by half, the others not at all.
    #[serde(with = "if_given")]
    pub jitter: Option<Duration>,
    /// The names of errors that are tried again, and no others; none: every error is. A name is one that the handler gives, or
    /// the type of its error. Default: none.
    pub retry_on: Vec<String>,
    /// The names of errors that are never tried again, whatever `retry_on` says. Default: none.
    pub never_retry_on: Vec<String>,
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
            retry_on: Vec::new(),
            never_retry_on: Vec::new(),
            failing_head,
            failing_key,
        }
    }
}
