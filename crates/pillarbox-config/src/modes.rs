//! The settings that a mode would ignore. They are refused: a setting that does nothing is a mistake.

use crate::Settings;
use crate::value::{FailingHead, Mode, RetryPolicyKind};

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
    by_policy(settings, key).or_else(|| by_failing_head(settings, key))
}

/// Each policy has settings of its own.
fn by_policy(settings: &Settings, key: &str) -> Option<String> {
    let policy = settings.retry.policy;
    let ignored = match policy {
        RetryPolicyKind::Exponential => key == "retry.step",
        RetryPolicyKind::Linear => key == "retry.multiplier",
        RetryPolicyKind::Fixed => matches!(key, "retry.step" | "retry.multiplier" | "retry.cap"),
    };
    ignored.then(|| format!("does not apply to `retry.policy = \"{}\"`", policy.name()))
}

fn by_failing_head(settings: &Settings, key: &str) -> Option<String> {
    let never_retried = settings.mode == Mode::Ordered && settings.retry.failing_head == FailingHead::DeadAndContinue;
    (never_retried && key.starts_with("retry.") && key != "retry.failing_head")
        .then(|| "means nothing while `retry.failing_head` is `dead_and_continue`".to_owned())
}
