//! The settings that a mode would ignore. They are refused: a setting that does nothing is a mistake.

use std::borrow::Cow;

use pillarbox_engine::handlers::Unroutable;
use pillarbox_engine::run::{self, FailingHead, Mode, applies};

use crate::Settings;
use crate::keys::of_handler;
use crate::value::RetryPolicyKind;

/// The reason why `key` means nothing with these settings; `None` if it applies.
pub(crate) fn why_ignored(settings: &Settings, key: &str) -> Option<String> {
    let (handler, setting) = of_handler(key).map_or((None, key), |(name, setting)| (Some(name), setting));
    let is_ignored = match handler {
        // Where one call runs at a time, no handler can have more.
        Some(_) => settings.mode == Mode::WriterOnly || (setting == "concurrency" && settings.mode == Mode::Ordered),
        None => !applies(key, settings.mode),
    };
    if is_ignored {
        let why = run::why_ignored(key, settings.mode).map(|(why, _)| format!(", {why}")).unwrap_or_default();
        return Some(format!("does not apply to mode {}{why}", settings.mode));
    }
    by_policy(settings, handler, setting)
        .or_else(|| by_failing_head(settings, setting))
        .or_else(|| by_another(settings, setting))
}

/// The remedy for a setting that means nothing in a mode.
pub(crate) fn remedy(key: &str, mode: Mode) -> Cow<'static, str> {
    match run::why_ignored(key, mode) {
        Some((_, instead)) => format!("remove it, {instead}").into(),
        None => "remove it".into(),
    }
}

/// Each policy has settings of its own.
fn by_policy(settings: &Settings, handler: Option<&str>, key: &str) -> Option<String> {
    let of_handler = handler.and_then(|name| Some((name, settings.handler.get(name)?.retry.policy?)));
    let (policy, of_handler) = match of_handler {
        Some((name, policy)) => (policy, format!("handler.{name}.")),
        None => (settings.retry.policy, String::new()),
    };
    let ignored = match policy {
        RetryPolicyKind::Exponential => key == "retry.step",
        RetryPolicyKind::Linear => key == "retry.multiplier",
        RetryPolicyKind::Fixed => matches!(key, "retry.step" | "retry.multiplier" | "retry.cap"),
    };
    ignored.then(|| format!("does not apply to `{of_handler}retry.policy = \"{}\"`", policy.name()))
}

fn by_failing_head(settings: &Settings, key: &str) -> Option<String> {
    let never_retried = settings.mode == Mode::Ordered && settings.retry.failing_head == FailingHead::DeadAndContinue;
    let of_retries = key.starts_with("retry.") && key != "retry.failing_head";
    // What nobody takes goes DEAD at once, as what fails does.
    let of_unroutable = matches!(key, "dispatch.unroutable" | "dispatch.unroutable_dead_after");
    (never_retried && (of_retries || of_unroutable))
        .then(|| "means nothing while `retry.failing_head` is `dead_and_continue`".to_owned())
}

/// Some settings only say how, where another one says whether.
fn by_another(settings: &Settings, key: &str) -> Option<String> {
    let (is_ignored, why) = match key {
        "purge.interval" | "purge.batch" => (
            settings.mode == Mode::WriterOnly && settings.purge.all_after.is_none(),
            "does nothing in mode writer_only without `purge.all_after`",
        ),
        "dispatch.unroutable_dead_after" => {
            (settings.dispatch.unroutable == Unroutable::Dead, "means nothing while `dispatch.unroutable` is `dead`")
        }
        _ => return None,
    };
    is_ignored.then(|| why.to_owned())
}
