use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use super::{ErrorFilter, ExponentialBackoff, FixedBackoff, JitteredBackoff, LinearBackoff, RetryPolicy};
use crate::error::ConfigError;

/// The rules for retries: the wait, the number of attempts, and the errors that are worth a retry. For one handler, or as the
/// default of an outbox, which also fills in the settings that a handler's rules leave open.
///
/// A setting that cannot be is reported when the outbox starts, with the name of the setting.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use pillarbox_core::retry::Retry;
///
/// let patient = Retry::exponential(Duration::from_millis(200), Duration::from_secs(60)).max_retries(20);
/// let only_the_network = Retry::fixed(Duration::from_secs(5)).retry_on_error::<io::Error>();
/// # assert!(patient.check().is_ok() && only_the_network.check().is_ok());
/// assert!(Retry::fixed(Duration::ZERO).check().is_err());
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "it does nothing until a handler or an outbox is given it"]
pub struct Retry {
    policy: Option<Arc<dyn RetryPolicy>>,
    max_attempts: Option<u32>,
    errors: Option<ErrorFilter>,
    /// The first setting that cannot be.
    failure: Option<ConfigError>,
}

impl Retry {
    /// Nothing set: all as the outbox has it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits `delay` after every failure; above zero, at most 365 days.
    pub fn fixed(delay: Duration) -> Self {
        Self::of(FixedBackoff::new(delay))
    }

    /// Waits `base` after the first failure and `step` longer after each further one, at most `cap`.
    pub fn linear(base: Duration, step: Duration, cap: Duration) -> Self {
        Self::of(LinearBackoff::new(base, step, cap))
    }

    /// Waits `base` after the first failure and twice as long after each further one, at most `cap`, times a random factor
    /// from 0.5 to 1.5; see [`ExponentialBackoff`].
    pub fn exponential(base: Duration, cap: Duration) -> Self {
        Self::of(ExponentialBackoff::new(base, cap))
    }

    /// Waits as `policy` says.
    pub fn custom(policy: impl RetryPolicy) -> Self {
        Self::of(Ok(policy))
    }

    /// Moves every wait at random by up to `by` in either direction, but not below zero; above zero, at most 365 days. One
    /// that has no policy of its own gets [`ExponentialBackoff`] at its defaults, without its random factor.
    pub fn jitter(mut self, by: Duration) -> Self {
        let plain = || -> Arc<dyn RetryPolicy> { Arc::new(ExponentialBackoff::default().without_jitter()) };
        let jittered = JitteredBackoff::new(self.policy.take().unwrap_or_else(plain), by);
        self.keep(jittered);
        self
    }

    /// Handler calls in total before an event is given up, at least 1.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        if attempts == 0 {
            let problem = ConfigError::new("retry.max_attempts", "is zero", "set at least 1: the first call counts");
            self.failure.get_or_insert(problem);
        }
        self.max_attempts = Some(attempts);
        self
    }

    /// Handler calls after the first one: `max_retries(3)` is `max_attempts(4)`.
    pub fn max_retries(self, retries: u32) -> Self {
        self.max_attempts(retries.saturating_add(1))
    }

    /// Tries errors again that `predicate` matches, or one of whose causes it matches. Given several times, any of them
    /// does. Errors that none of them matches are given up at once.
    ///
    /// It is asked about errors that do not say themselves what should follow; a
    /// [`HandlerError`](crate::handle::HandlerError) that asks for a delay, or for none, has its way. A panic is always
    /// tried again.
    pub fn retry_on(mut self, predicate: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static) -> Self {
        self.errors = Some(self.errors.unwrap_or_default().retry_on(predicate));
        self
    }

    /// Gives errors up at once that `predicate` matches, or one of whose causes it matches, whatever
    /// [`retry_on`](Self::retry_on) says.
    pub fn never_retry_on(
        mut self,
        predicate: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.errors = Some(self.errors.unwrap_or_default().never_retry_on(predicate));
        self
    }

    /// [`retry_on`](Self::retry_on) for errors that are an `E` or are caused by one.
    pub fn retry_on_error<E: Error + 'static>(self) -> Self {
        self.retry_on(|error| error.is::<E>())
    }

    /// [`never_retry_on`](Self::never_retry_on) for errors that are an `E` or are caused by one.
    pub fn never_retry_on_error<E: Error + 'static>(self) -> Self {
        self.never_retry_on(|error| error.is::<E>())
    }

    /// [`retry_on`](Self::retry_on) for errors of this name: one that the handler [gives](crate::handle::HandlerError::named), or the
    /// type of its error, such as `MailError` or `mail::MailError`. For rules from configuration: code that has the type says
    /// `retry_on_error`, which finds it among the causes, too.
    pub fn retry_on_named(mut self, name: impl Into<Box<str>>) -> Self {
        self.errors = Some(self.errors.unwrap_or_default().retry_on_named(name));
        self
    }

    /// [`never_retry_on`](Self::never_retry_on) for errors of this name, as [`retry_on_named`](Self::retry_on_named) knows them.
    pub fn never_retry_on_named(mut self, name: impl Into<Box<str>>) -> Self {
        self.errors = Some(self.errors.unwrap_or_default().never_retry_on_named(name));
        self
    }

    /// Selects the errors that are tried again by `filter`, in place of all that was said of errors before.
    pub fn error_filter(mut self, filter: ErrorFilter) -> Self {
        self.errors = Some(filter);
        self
    }

    /// These rules, and those of `other` for what is not set here: the policy, the limit of attempts, the filter of errors.
    pub fn or(self, other: Self) -> Self {
        Self {
            policy: self.policy.or(other.policy),
            max_attempts: self.max_attempts.or(other.max_attempts),
            errors: self.errors.or(other.errors),
            failure: self.failure.or(other.failure),
        }
    }

    /// Checks that every setting is valid.
    ///
    /// # Errors
    /// The first setting that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// The policy, if one is set.
    #[must_use]
    pub fn policy(&self) -> Option<&dyn RetryPolicy> {
        self.policy.as_deref()
    }

    /// The limit of attempts, if one is set.
    #[must_use]
    pub fn attempts(&self) -> Option<u32> {
        self.max_attempts
    }

    /// The filter of errors, if one is set.
    #[must_use]
    pub fn errors(&self) -> Option<&ErrorFilter> {
        self.errors.as_ref()
    }

    /// Takes it apart: the policy, the limit of attempts and the filter, where they are set.
    pub fn into_parts(self) -> (Option<Arc<dyn RetryPolicy>>, Option<u32>, Option<ErrorFilter>) {
        (self.policy, self.max_attempts, self.errors)
    }

    /// Leaves the limit of attempts to the outbox.
    pub fn forget_limit(&mut self) {
        self.max_attempts = None;
    }

    fn of(policy: Result<impl RetryPolicy, ConfigError>) -> Self {
        let mut retry = Self::default();
        retry.keep(policy);
        retry
    }

    fn keep(&mut self, policy: Result<impl RetryPolicy, ConfigError>) {
        match policy {
            Ok(policy) => self.policy = Some(Arc::new(policy)),
            Err(error) => {
                self.failure.get_or_insert(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandom;

    #[test]
    fn unset_retry_settings_are_left_to_the_outbox() {
        let open = Retry::new();
        assert!(open.policy().is_none() && open.attempts().is_none() && open.errors().is_none());
        let set = Retry::fixed(Duration::from_secs(7)).max_retries(3).retry_on_error::<std::fmt::Error>();
        assert_eq!(set.policy().map(|policy| policy.delay(2, &SystemRandom)), Some(Duration::from_secs(7)));
        assert_eq!(set.attempts(), Some(4));
        assert!(set.errors().is_some_and(|errors| errors.passes(std::iter::once(&std::fmt::Error as _), |_| false)));
    }

    #[test]
    fn rules_are_laid_over_others_one_by_one() {
        let second = Duration::from_secs(1);
        let below = Retry::fixed(second).max_attempts(2).retry_on_named("busy");
        let pause = |retry: &Retry| retry.policy().map(|policy| policy.delay(1, &SystemRandom));
        let attempts = Retry::new().max_attempts(5).or(below.clone());
        assert_eq!((pause(&attempts), attempts.attempts()), (Some(second), Some(5)));
        assert!(attempts.errors().is_some_and(|errors| !errors.passes(std::iter::empty(), |_| false)));
        let policy = Retry::fixed(3 * second).or(below);
        assert_eq!((pause(&policy), policy.attempts()), (Some(3 * second), Some(2)));
        assert!(Retry::new().or(Retry::fixed(Duration::ZERO)).check().is_err());
    }

    #[test]
    fn the_first_setting_that_cannot_be_is_named() {
        let (zero, second) = (Duration::ZERO, Duration::from_secs(1));
        let table = [
            (Retry::fixed(zero).max_attempts(0), "retry.base"),
            (Retry::linear(second, zero, second), "retry.step"),
            (Retry::exponential(second, zero), "retry.cap"),
            (Retry::fixed(second).jitter(zero), "retry.jitter"),
            (Retry::new().max_attempts(0), "retry.max_attempts"),
        ];
        for (retry, field) in table {
            assert_eq!(retry.check().map_err(|error| error.field()), Err(field));
        }
        assert_eq!(Retry::new().max_retries(u32::MAX).jitter(second).check(), Ok(()));
    }
}
