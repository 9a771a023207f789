use std::time::Duration;

use pillarbox_core::error::ConfigError;
use pillarbox_core::retry::Retry;
use pillarbox_engine::handlers::{HandlerConfig, Rate};
use pillarbox_engine::run::notation::{if_given, never_if_given};
use serde::{Deserialize, Serialize};

use super::RetrySettings;
use crate::RetryPolicyKind;

/// Settings of the handlers of one name: the section `handler.NAME`. What is set here replaces what the program sets for the handler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandlerSettings {
    /// The time limit of a call; `Some(None)`: no limit.
    #[serde(with = "never_if_given", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Option<Duration>>,
    /// The number of calls that run at once on a node, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// The number of events that begin in a time on a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The number of events that may follow each other at once. It needs a `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Trying again. What is `None` is as in [`RetrySettings`].
    pub retry: HandlerRetrySettings,
}

/// The [`RetrySettings`] that a handler has for itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandlerRetrySettings {
    /// Handler calls in total before an event goes DEAD, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The growth of the delays from failure to failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<RetryPolicyKind>,
    /// The delay after the first failure.
    #[serde(with = "if_given", skip_serializing_if = "Option::is_none")]
    pub base: Option<Duration>,
    /// The longest delay, before jitter. Policies `exponential` and `linear`.
    #[serde(with = "if_given", skip_serializing_if = "Option::is_none")]
    pub cap: Option<Duration>,
    /// The factor by which each further delay is longer, 1 to 1000. Policy `exponential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
    /// The time by which each further delay is longer. Policy `linear`.
    #[serde(with = "if_given", skip_serializing_if = "Option::is_none")]
    pub step: Option<Duration>,
    /// The largest random change of a delay, in both directions; `0s` for none.
    #[serde(with = "if_given", skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// The names of errors that are tried again, and no others; none: every error is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<Vec<String>>,
    /// The names of errors that are never tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_retry_on: Option<Vec<String>>,
}

impl HandlerSettings {
    /// All settings with a value that shows how each is written.
    pub(crate) fn example() -> Self {
        let RetrySettings { max_attempts, policy, base, cap, multiplier, step, .. } = RetrySettings::default();
        Self {
            timeout: Some(Some(Duration::from_secs(30))),
            concurrency: Some(4),
            rate: Some(Rate::per_second(100)),
            burst: Some(20),
            retry: HandlerRetrySettings {
                max_attempts: Some(max_attempts),
                policy: Some(policy),
                base: Some(base),
                cap: Some(cap),
                multiplier: Some(multiplier),
                step: Some(step),
                jitter: Some(base),
                retry_on: Some(Vec::new()),
                never_retry_on: Some(Vec::new()),
            },
        }
    }

    /// The engine's settings of the handler, in an outbox with these retries.
    pub(crate) fn convert(&self, outbox: &RetrySettings) -> Result<HandlerConfig, ConfigError> {
        if self.burst.is_some() && self.rate.is_none() {
            let remedy = "set the rate beside it, such as `100/s`";
            return Err(ConfigError::new("handler.rate.burst", "stands without `rate`", remedy));
        }
        let rate = self.rate.map(|rate| self.burst.map_or(rate, |events| rate.burst(events)));
        let Self { timeout, concurrency, .. } = *self;
        let config = HandlerConfig { timeout, concurrency, rate, retry: self.retry.convert(outbox)? };
        config.validate()?;
        Ok(config)
    }
}

impl HandlerRetrySettings {
    /// The retry settings of the handler: those of the outbox, but for what is set here.
    pub(crate) fn within(&self, outbox: &RetrySettings) -> RetrySettings {
        RetrySettings {
            max_attempts: self.max_attempts.unwrap_or(outbox.max_attempts),
            policy: self.policy.unwrap_or(outbox.policy),
            base: self.base.unwrap_or(outbox.base),
            cap: self.cap.unwrap_or(outbox.cap),
            multiplier: self.multiplier.unwrap_or(outbox.multiplier),
            step: self.step.unwrap_or(outbox.step),
            jitter: self.jitter.or(outbox.jitter),
            retry_on: self.retry_on.as_ref().unwrap_or(&outbox.retry_on).clone(),
            never_retry_on: self.never_retry_on.as_ref().unwrap_or(&outbox.never_retry_on).clone(),
            failing_head: outbox.failing_head,
            failing_key: outbox.failing_key,
        }
    }

    /// The rules of which something is set here; what the program sets for the handler stays in the others.
    fn convert(&self, outbox: &RetrySettings) -> Result<Retry, ConfigError> {
        let Self { max_attempts, policy, base, cap, multiplier, step, jitter, retry_on, never_retry_on } = self;
        let all = self.within(outbox);
        let has_delays =
            policy.is_some() || multiplier.is_some() || [base, cap, step, jitter].into_iter().any(Option::is_some);
        let has_errors = retry_on.is_some() || never_retry_on.is_some();
        let delays = if has_delays { Retry::custom(all.policy()?) } else { Retry::new() };
        let limited = match *max_attempts {
            Some(most) => delays.max_attempts(most),
            None => delays,
        };
        Ok(if has_errors { limited.error_filter(all.errors()?) } else { limited })
    }
}
