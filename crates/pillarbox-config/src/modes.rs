//! Which settings which mode would ignore. They are refused: a setting that does nothing is a mistake.

use crate::Settings;
use crate::value::{FailingHead, Mode};

/// Why `key` means nothing with these settings; `None` if it does mean something.
pub(crate) fn why_ignored(settings: &Settings, key: &str) -> Option<String> {
    let by_mode = match settings.mode {
        Mode::SingleNode => matches!(key, "retry.failing_head" | "retry.failing_key" | "purge.all_after"),
        // There is no standby where all nodes deliver.
        Mode::MultiNode => {
            matches!(key, "retry.failing_head" | "retry.failing_key" | "purge.all_after" | "ownership.standby_interval")
        }
        Mode::Partitioned => matches!(
            key,
            "dispatch.hot_capacity" | "retry.failing_head" | "purge.all_after" | "ownership.standby_interval"
        ),
        Mode::Ordered => {
            matches!(key, "dispatch.workers" | "dispatch.hot_capacity" | "retry.failing_key" | "purge.all_after")
        }
        Mode::WriterOnly => {
            let applies = key == "mode"
                || key.starts_with("store.")
                || matches!(
                    key,
                    "purge.all_after" | "purge.interval" | "purge.batch" | "wake_up.enabled" | "metrics.prefix"
                );
            !applies
        }
    };
    if by_mode {
        return Some(format!("does not apply to mode {}", settings.mode.name()));
    }
    let never_retried = settings.mode == Mode::Ordered && settings.retry.failing_head == FailingHead::DeadAndContinue;
    (never_retried && matches!(key, "retry.max_attempts" | "retry.base" | "retry.cap"))
        .then(|| "means nothing while `retry.failing_head` is `dead_and_continue`".to_owned())
}
