use std::time::Duration;

use pillarbox_core::error::ConfigError;
use pillarbox_core::retry::Retry;

use super::Rate;
use crate::config::time_limit;

/// The settings of a handler. What is `None` or not set is as the outbox has it, or without a limit.
///
/// [`Registration`](super::Registration) has a method for each. A program that reads them from elsewhere lays them over a registration with
/// [`configured`](super::Registration::configured).
#[derive(Debug, Clone, Default)]
pub struct HandlerConfig {
    /// The time limit of a call, 1 ms to 100 years; `Some(None)`: no limit.
    pub timeout: Option<Option<Duration>>,
    /// The number of calls that run at once on a node, at least 1.
    pub concurrency: Option<usize>,
    /// The number of events that begin in a time on a node.
    pub rate: Option<Rate>,
    /// The retry rules.
    pub retry: Retry,
}

impl HandlerConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first one that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        time_limit("handler.timeout", self.timeout.flatten())?;
        if self.concurrency == Some(0) {
            return Err(ConfigError::new("handler.concurrency", "is zero", "set at least 1"));
        }
        if let Some(rate) = self.rate {
            rate.check()?;
        }
        self.retry.check()
    }

    /// True if it limits how much its handler does at once or in a time.
    pub(super) fn is_limited(&self) -> bool {
        self.concurrency.is_some() || self.rate.is_some()
    }

    /// Lays `other` over it: what `other` sets replaces what is set here.
    pub(super) fn overlay(&mut self, other: &Self) {
        self.timeout = other.timeout.or(self.timeout);
        self.concurrency = other.concurrency.or(self.concurrency);
        self.rate = other.rate.or(self.rate);
        self.retry = other.retry.clone().or(std::mem::take(&mut self.retry));
    }
}
