//! The settings that a mode would ignore. They are refused: a setting that does nothing is a mistake.

use pillarbox_engine::run::{FailingHead, Mode, applies};

use crate::Settings;
use crate::value::RetryPolicyKind;

/// The reason why `key` means nothing with these settings; `None` if it applies.
pub(crate) fn why_ignored(settings: &Settings, key: &str) -> Option<String> {
    if !applies(key, settings.mode) {
        return Some(format!("does not apply to mode {}", settings.mode));
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
