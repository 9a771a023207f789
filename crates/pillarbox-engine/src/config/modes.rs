//! The one table of which setting applies to which mode. Code, files, the environment and the command line read it.

use std::fmt;
use std::str::FromStr;

use Mode::{MultiNode, Ordered, Partitioned, SingleNode, WriterOnly};
use pillarbox_core::error::ConfigError;
use pillarbox_core::ownership;
use serde::{Deserialize, Serialize};

use super::Config;

/// The mode of an outbox as a value, for programs that learn it when they run.
///
/// It is written as in files, `multi_node`. [`Outbox::builder`](crate::run::Outbox::builder) takes it.
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
    /// No node: the events are delivered elsewhere.
    WriterOnly,
}

impl Mode {
    /// The mode of the nodes that deliver; `None` if nobody does.
    #[must_use]
    pub const fn of_nodes(self) -> Option<ownership::NodeMode> {
        match self {
            SingleNode => Some(ownership::NodeMode::SingleNode),
            MultiNode => Some(ownership::NodeMode::MultiNode),
            Partitioned => Some(ownership::NodeMode::Partitioned),
            Ordered => Some(ownership::NodeMode::Ordered),
            WriterOnly => None,
        }
    }

    /// Its name in files and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.of_nodes().map_or("writer_only", ownership::NodeMode::name)
    }
}

impl FromStr for Mode {
    type Err = ConfigError;

    /// The mode of a [name](Self::name).
    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let all = [SingleNode, MultiNode, Partitioned, Ordered, WriterOnly];
        all.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names = all.map(|mode| format!("`{mode}`")).join(", ");
            ConfigError::new("mode", format!("is `{}`", name.escape_debug()), format!("set one of {names}"))
        })
    }
}

impl From<ownership::NodeMode> for Mode {
    fn from(mode: ownership::NodeMode) -> Self {
        match mode {
            ownership::NodeMode::SingleNode => SingleNode,
            ownership::NodeMode::MultiNode => MultiNode,
            ownership::NodeMode::Partitioned => Partitioned,
            ownership::NodeMode::Ordered => Ordered,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// True if two configurations differ in a setting.
type Differs = fn(&Config, &Config) -> bool;

/// The settings that some modes lack, with the modes that have them. All others are of every mode that delivers.
const OF_SOME_MODES: [(&str, &[Mode], Differs); 6] = [
    // One worker keeps the order of the table.
    ("dispatch.workers", &[SingleNode, MultiNode, Partitioned], |a, b| a.dispatch.workers != b.dispatch.workers),
    // Events that have an order go through the table.
    ("dispatch.hot_capacity", &[SingleNode, MultiNode], |a, b| a.dispatch.hot_capacity != b.dispatch.hot_capacity),
    ("retry.failing_head", &[Ordered], |a, b| a.retry.failing_head != b.retry.failing_head),
    ("retry.failing_key", &[Partitioned], |a, b| a.retry.failing_key != b.retry.failing_key),
    // There is no standby where all nodes deliver.
    ("ownership.standby_interval", &[SingleNode, Ordered], |a, b| {
        a.ownership.standby_interval != b.ownership.standby_interval
    }),
    // Delivered rows end by themselves.
    ("purge.all_after", &[], |a, b| a.purge.all_after != b.purge.all_after),
];

/// All other settings of nodes, which a program that only writes lacks.
const OF_NODES: [(&str, Differs); 23] = [
    ("claim.batch", |a, b| a.claim.batch != b.claim.batch),
    ("claim.min_interval", |a, b| a.claim.min_interval != b.claim.min_interval),
    ("claim.max_interval", |a, b| a.claim.max_interval != b.claim.max_interval),
    ("dispatch.cold_capacity", |a, b| a.dispatch.cold_capacity != b.dispatch.cold_capacity),
    ("dispatch.payload_memory", |a, b| a.dispatch.payload_memory != b.dispatch.payload_memory),
    ("dispatch.unroutable", |a, b| a.dispatch.unroutable != b.dispatch.unroutable),
    ("dispatch.unroutable_dead_after", |a, b| a.dispatch.unroutable_dead_after != b.dispatch.unroutable_dead_after),
    ("dispatch.handler_timeout", |a, b| a.dispatch.handler_timeout != b.dispatch.handler_timeout),
    ("dispatch.slow_after", |a, b| a.dispatch.slow_after != b.dispatch.slow_after),
    ("retry.max_attempts", |a, b| a.retry.max_attempts != b.retry.max_attempts),
    // A policy of any type can be compared by what it says of itself alone.
    ("retry.policy", |a, b| format!("{:?}", a.retry.policy) != format!("{:?}", b.retry.policy)),
    ("retry.errors", |a, b| a.retry.errors.is_empty() != b.retry.errors.is_empty()),
    ("settle.batch", |a, b| a.settle.batch != b.settle.batch),
    ("settle.delete_done", |a, b| a.settle.delete_done != b.settle.delete_done),
    ("settle.keep_positions", |a, b| a.settle.keep_positions != b.settle.keep_positions),
    ("ownership.node_name", |a, b| a.ownership.node_name != b.ownership.node_name),
    ("ownership.lease", |a, b| a.ownership.lease != b.ownership.lease),
    ("purge.done_after", |a, b| a.purge.done_after != b.purge.done_after),
    ("purge.dead_after", |a, b| a.purge.dead_after != b.purge.dead_after),
    ("purge.inbox_after", |a, b| a.purge.inbox_after != b.purge.inbox_after),
    ("purge.audit_after", |a, b| a.purge.audit_after != b.purge.audit_after),
    ("shutdown.drain_timeout", |a, b| a.shutdown.drain_timeout != b.shutdown.drain_timeout),
    ("metrics.interval", |a, b| a.metrics.interval != b.metrics.interval),
];

/// The settings of a program that only writes.
const OF_WRITERS: [&str; 6] =
    ["metrics.prefix", "mode", "purge.all_after", "purge.batch", "purge.interval", "wake_up.enabled"];

/// True if the setting `key`, such as `dispatch.workers`, means something in `mode`.
///
/// ```
/// use pillarbox_engine::run::{Mode, applies};
///
/// assert!(!applies("dispatch.workers", Mode::Ordered));
/// assert!(applies("purge.all_after", Mode::WriterOnly));
/// ```
#[must_use]
pub fn applies(key: &str, mode: Mode) -> bool {
    if mode == WriterOnly {
        return OF_WRITERS.contains(&key) || key.starts_with("store.");
    }
    OF_SOME_MODES.iter().find(|(setting, ..)| *setting == key).is_none_or(|(_, modes, _)| modes.contains(&mode))
}

/// The reason why the setting `key` means nothing in `mode`, and what to do instead, where more can be said than that. Both continue a
/// sentence.
///
/// ```
/// use pillarbox_engine::run::{Mode, why_ignored};
///
/// let (why, instead) = why_ignored("dispatch.workers", Mode::Ordered).expect("more can be said");
/// assert!(why.contains("one event at a time") && instead.contains("partitioned"));
/// ```
#[must_use]
pub fn why_ignored(key: &str, mode: Mode) -> Option<(&'static str, &'static str)> {
    (key == "dispatch.workers" && mode == Ordered).then_some((
        "which handles one event at a time, in the order of the table",
        "or choose mode partitioned, where events of different keys are handled at once and those of a key in order",
    ))
}

/// The first setting that was changed and that `mode` lacks.
pub(super) fn ignored(config: &Config, mode: Mode) -> Option<&'static str> {
    let defaults = Config::default();
    let ignored = |(key, _, differs): &&(&str, &[Mode], Differs)| !applies(key, mode) && differs(config, &defaults);
    let found = OF_SOME_MODES.iter().find(ignored).map(|(key, ..)| *key);
    if mode != WriterOnly {
        return found;
    }
    found.or_else(|| OF_NODES.iter().find(|(_, differs)| differs(config, &defaults)).map(|(key, _)| *key))
}
