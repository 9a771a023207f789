//! The one table of which setting applies to which mode. Code, files, the environment and the command line read it.

use pillarbox_core::ownership::Mode::{self, MultiNode, Ordered, Partitioned, SingleNode};

/// The settings that some modes lack, with the modes that have them. All others are of every mode that delivers.
const OF_SOME_MODES: [(&str, &[Mode]); 6] = [
    // One worker keeps the order of the table.
    ("dispatch.workers", &[SingleNode, MultiNode, Partitioned]),
    // Events that have an order go through the table.
    ("dispatch.hot_capacity", &[SingleNode, MultiNode]),
    ("retry.failing_head", &[Ordered]),
    ("retry.failing_key", &[Partitioned]),
    // There is no standby where all nodes deliver.
    ("ownership.standby_interval", &[SingleNode, Ordered]),
    // Where events are delivered, rows end by themselves.
    ("purge.all_after", &[]),
];

/// The settings of a program that only writes.
const OF_WRITERS: [&str; 6] =
    ["metrics.prefix", "mode", "purge.all_after", "purge.batch", "purge.interval", "wake_up.enabled"];

/// True if the setting `key`, such as `dispatch.workers`, means something in `mode`; `None` is `writer_only`.
///
/// ```
/// use pillarbox_core::ownership::Mode;
/// use pillarbox_engine::run::applies;
///
/// assert!(!applies("dispatch.workers", Some(Mode::Ordered)));
/// assert!(applies("purge.all_after", None));
/// ```
#[must_use]
pub fn applies(key: &str, mode: Option<Mode>) -> bool {
    let Some(mode) = mode else { return OF_WRITERS.contains(&key) || key.starts_with("store.") };
    OF_SOME_MODES.iter().find(|(setting, _)| *setting == key).is_none_or(|(_, modes)| modes.contains(&mode))
}
