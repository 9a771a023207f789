//! Checks that settings fit together, and makes the engine's configuration from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use pillarbox_core::error::ConfigError;
use pillarbox_core::retry::{
    ErrorFilter, ExponentialBackoff, FixedBackoff, JitteredBackoff, LinearBackoff, RetryPolicy,
};
use pillarbox_engine::run::{Config, RetryConfig};

use crate::keys::Keys;
use crate::modes::{remedy, why_ignored};
use crate::settings::RetrySettings;
use crate::value::RetryPolicyKind;
use crate::{Error, Settings};

impl Settings {
    /// Checks every setting, and that none was given or changed that the mode or the database would ignore.
    ///
    /// # Errors
    /// All settings that are wrong, each with the place where it was given and a remedy.
    pub fn check(&self) -> Result<(), Error> {
        self.config().map(drop)
    }

    /// The engine's settings, checked.
    pub(crate) fn config(&self) -> Result<Config, Error> {
        let (values, defaults) = (Keys::of(self), Keys::known());
        let mut wrong = Vec::new();
        let keys: BTreeSet<&str> = values.changed(&defaults).chain(self.origins.keys()).collect();
        for key in keys {
            let why = why_ignored(self, key).or_else(|| self.store.why_ignored(key));
            if let Some(why) = why {
                wrong.push(Error::invalid(key.to_owned(), &self.origins, why, remedy(key, self.mode)));
            }
        }
        wrong.extend(self.store.check(&self.origins).err());
        wrong.extend(self.check_handlers().err());
        Error::if_any(wrong)?;
        let read = self.convert().and_then(|config| config.validate_for(self.mode).map(|()| config));
        read.map_err(|error| Error::refused(&error, &self.origins))
    }

    fn convert(&self) -> Result<Config, ConfigError> {
        // No field is left to its default: a section that the engine gains has to get a key here.
        Ok(Config {
            claim: self.claim.clone(),
            dispatch: self.dispatch.clone(),
            retry: self.retry.convert()?,
            settle: self.settle.clone(),
            ownership: self.ownership.clone(),
            purge: self.purge.clone(),
            shutdown: self.shutdown.clone(),
            wake_up: self.wake_up,
            metrics: self.metrics.clone(),
        })
    }
}

impl RetrySettings {
    fn convert(&self) -> Result<RetryConfig, ConfigError> {
        Ok(RetryConfig {
            max_attempts: self.max_attempts,
            policy: self.policy()?,
            errors: self.errors()?,
            failing_head: self.failing_head,
            failing_key: self.failing_key,
        })
    }

    /// The filter of errors by their names. Which names there are is known to the handlers alone.
    pub(crate) fn errors(&self) -> Result<ErrorFilter, ConfigError> {
        for (field, names) in [("retry.retry_on", &self.retry_on), ("retry.never_retry_on", &self.never_retry_on)] {
            let is_wrong =
                |name: &&String| name.is_empty() || name.contains(|c: char| c.is_whitespace() || "<>,".contains(c));
            if let Some(wrong) = names.iter().find(is_wrong) {
                let remedy = "write the name of a type, such as `MailError` or `mail::MailError`, or one that the handler gives its errors";
                return Err(ConfigError::new(field, format!("has `{wrong}`, which is no name of an error"), remedy));
            }
        }
        let only = self.retry_on.iter().fold(ErrorFilter::default(), |errors, name| errors.retry_on_named(&**name));
        Ok(self.never_retry_on.iter().fold(only, |errors, name| errors.never_retry_on_named(&**name)))
    }

    pub(crate) fn policy(&self) -> Result<Arc<dyn RetryPolicy>, ConfigError> {
        let plain: Arc<dyn RetryPolicy> = match self.policy {
            RetryPolicyKind::Exponential => {
                let varied = ExponentialBackoff::new(self.base, self.cap)?.with_multiplier(self.multiplier)?;
                Arc::new(if self.jitter.is_some() { varied.without_jitter() } else { varied })
            }
            RetryPolicyKind::Linear => Arc::new(LinearBackoff::new(self.base, self.step, self.cap)?),
            RetryPolicyKind::Fixed => Arc::new(FixedBackoff::new(self.base)?),
        };
        match self.jitter {
            Some(by) if !by.is_zero() => Ok(Arc::new(JitteredBackoff::new(plain, by)?)),
            _ => Ok(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::clock::SystemRandom;
    use pillarbox_core::handle::HandlerError;

    use super::*;
    use crate::Loader;

    type Given<'a> = &'a [(&'a str, &'a str)];

    /// The first three delays in milliseconds under these settings.
    fn delays(settings: Given<'_>) -> Vec<u128> {
        let loader = settings.iter().fold(Loader::new(), |loader, (key, value)| loader.set(*key, *value));
        let policy = loader.load().and_then(|settings| settings.config()).expect("valid").retry.policy;
        (1..=3).map(|failures| policy.delay(failures, &SystemRandom).as_millis()).collect()
    }

    #[test]
    fn delays_grow_as_the_policy_says() {
        let exact = ("retry.jitter", "0s");
        let table: [(Given<'_>, [u128; 3]); 5] = [
            (&[exact], [200, 400, 800]),
            (&[exact, ("retry.multiplier", "1.5")], [200, 300, 450]),
            (&[exact, ("retry.multiplier", "3"), ("retry.cap", "1s")], [200, 600, 1000]),
            (&[("retry.policy", "linear"), ("retry.step", "50ms")], [200, 250, 300]),
            (&[("retry.policy", "fixed"), ("retry.base", "5s")], [5000, 5000, 5000]),
        ];
        for (settings, expected) in table {
            assert_eq!(delays(settings), expected, "{settings:?}");
        }
    }

    #[test]
    fn errors_are_selected_by_name_from_a_file_and_from_the_environment() {
        let error = |name| HandlerError::retryable("it fails").named(name);
        let passes =
            |filter: &ErrorFilter, error: &HandlerError| filter.passes(error.causes(), |name| error.is_named(name));
        let variable = |names| [("PILLARBOX_RETRY__RETRY_ON", names), ("PILLARBOX_RETRY__NEVER_RETRY_ON", "full")];
        let load = |loader: Loader| loader.load().and_then(|settings| settings.config()).expect("valid").retry.errors;
        let all = load(Loader::new());
        assert!(passes(&all, &error("busy")) && passes(&all, &HandlerError::classify(std::fmt::Error)));
        let some = load(Loader::new().environment().variables(variable("busy, fmt::Error")));
        assert!(passes(&some, &error("busy")) && passes(&some, &HandlerError::classify(std::fmt::Error)));
        assert!(!passes(&some, &error("full")) && !passes(&some, &error("other")));
        let never_wins = load(Loader::new().environment().variables(variable("busy,full")));
        assert!(passes(&never_wins, &error("busy")) && !passes(&never_wins, &error("full")));
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("outbox.toml");
        std::fs::write(&path, "[retry]\nretry_on = ['busy', 'fmt::Error']\n").expect("written");
        let of_file = load(Loader::new().file(&path));
        assert!(passes(&of_file, &error("busy")) && !passes(&of_file, &error("full")));
    }

    #[test]
    fn jitter_changes_a_delay_by_no_more_than_it_says() {
        let settings = [("retry.policy", "fixed"), ("retry.base", "1s"), ("retry.jitter", "100ms")];
        let seen: Vec<u128> = (0..20).flat_map(|_| delays(&settings)).collect();
        assert!(seen.iter().all(|delay| (900..=1100).contains(delay)), "{seen:?}");
        assert!(seen.iter().any(|delay| delay != &seen[0]), "{seen:?}");
    }
}
