use std::time::Duration;

use pillarbox_core::error::ConfigError;

use super::modes::{ignored, why_ignored};
use super::notation::written;
use super::{Config, FailingHead, HOUR, Mode, RetryConfig, Unroutable};

const MIN_DURATION: Duration = Duration::from_millis(1);
const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Config {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first one that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Self { claim, dispatch, retry, settle, ownership, purge, shutdown, wake_up: _, metrics } = self;
        count("purge.batch", purge.batch, 10_000)?;
        duration("purge.interval", purge.interval, Duration::from_secs(1), 24 * HOUR)?;
        for (field, kept) in [("purge.done_after", purge.done_after), ("purge.dead_after", purge.dead_after)] {
            duration(field, kept.unwrap_or_default(), Duration::ZERO, MAX_DURATION)?;
        }
        count("claim.batch", claim.batch, 10_000)?;
        count("settle.batch", settle.batch, 10_000)?;
        count("dispatch.workers", dispatch.workers, 10_000)?;
        count("dispatch.hot_capacity", dispatch.hot_capacity, 1_000_000)?;
        count("dispatch.cold_capacity", dispatch.cold_capacity, 1_000_000)?;
        if dispatch.payload_memory < 1024 {
            let problem = format!("is {} bytes", dispatch.payload_memory);
            return Err(ConfigError::new("dispatch.payload_memory", problem, "set at least 1 KiB"));
        }
        duration("claim.max_interval", claim.max_interval, MIN_DURATION, HOUR)?;
        duration("claim.min_interval", claim.min_interval, MIN_DURATION, claim.max_interval)?;
        duration("ownership.lease", ownership.lease, Duration::from_millis(100), HOUR)?;
        let minute = Duration::from_secs(60);
        duration("ownership.standby_interval", ownership.standby_interval, Duration::from_millis(10), minute)?;
        duration("shutdown.drain_timeout", shutdown.drain_timeout, Duration::ZERO, HOUR)?;
        duration("metrics.interval", metrics.interval, Duration::from_secs(1), HOUR)?;
        prefix("metrics.prefix", &metrics.prefix)?;
        if let Unroutable::Park(delay) = dispatch.unroutable {
            duration("dispatch.unroutable", delay, MIN_DURATION, 365 * 24 * HOUR)?;
        }
        for (field, after) in [
            // Zero would delete what nobody has read, or forget what may come again.
            ("purge.all_after", purge.all_after),
            ("purge.inbox_after", purge.inbox_after),
            ("purge.audit_after", purge.audit_after),
            ("dispatch.unroutable_dead_after", dispatch.unroutable_dead_after),
        ] {
            duration(field, after.unwrap_or(MIN_DURATION), MIN_DURATION, MAX_DURATION)?;
        }
        time_limit("dispatch.handler_timeout", dispatch.handler_timeout)?;
        duration("dispatch.slow_after", dispatch.slow_after, MIN_DURATION, 24 * HOUR)?;
        if retry.max_attempts == 0 {
            return Err(ConfigError::new("retry.max_attempts", "is zero", "set at least 1: the first call counts"));
        }
        Ok(())
    }

    /// Checks every setting, and that none was changed that `mode` would ignore.
    ///
    /// # Errors
    /// The first one that is out of its range or does not apply.
    pub fn validate_for(&self, mode: Mode) -> Result<(), ConfigError> {
        self.validate()?;
        if let Some(field) = ignored(self, mode) {
            let (problem, remedy) = (format!("does not apply to mode {mode}"), "leave it at its default");
            return Err(match why_ignored(field, mode) {
                Some((why, instead)) => {
                    ConfigError::new(field, format!("{problem}, {why}"), format!("{remedy}, {instead}"))
                }
                None => ConfigError::new(field, problem, remedy),
            });
        }
        if self.retry.failing_head == FailingHead::DeadAndContinue { self.validate_single_attempt() } else { Ok(()) }
    }

    /// Checks that no setting contradicts [`FailingHead::DeadAndContinue`], which leaves a head one attempt.
    fn validate_single_attempt(&self) -> Result<(), ConfigError> {
        let attempts = [1, RetryConfig::default().max_attempts].contains(&self.retry.max_attempts);
        let unroutable = [Unroutable::Dead, Unroutable::default()].contains(&self.dispatch.unroutable);
        match [("retry.max_attempts", attempts), ("dispatch.unroutable", unroutable)].into_iter().find(|(_, ok)| !ok) {
            Some((field, _)) => {
                let problem = "does not apply to mode ordered with `retry.failing_head` at `DeadAndContinue`";
                Err(ConfigError::new(field, problem, "leave it at its default"))
            }
            None => Ok(()),
        }
    }
}

fn count(field: &'static str, value: usize, max: usize) -> Result<(), ConfigError> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(field, format!("is {value}"), format!("set a number from 1 to {max}")))
}

fn duration(field: &'static str, value: Duration, min: Duration, max: Duration) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let remedy = format!("set a duration from {} to {}", written(min), written(max));
    Err(ConfigError::new(field, format!("is {}", written(value)), remedy))
}

/// Checks the time limit of a call; `None`: no limit.
pub(crate) fn time_limit(field: &'static str, limit: Option<Duration>) -> Result<(), ConfigError> {
    let checked = duration(field, limit.unwrap_or(MIN_DURATION), MIN_DURATION, MAX_DURATION);
    let or_none = |wrong: ConfigError| {
        ConfigError::new(field, wrong.problem().to_owned(), format!("{}, or no limit", wrong.remedy()))
    };
    checked.map_err(or_none)
}

fn prefix(field: &'static str, value: &str) -> Result<(), ConfigError> {
    let may_follow = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if value.len() <= 64 && value.starts_with(|c: char| c.is_ascii_alphabetic()) && value.chars().all(may_follow) {
        return Ok(());
    }
    let remedy = "set 1 to 64 letters, digits, underscores and dots, beginning with a letter";
    Err(ConfigError::new(field, format!("is {value:?}"), remedy))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pillarbox_core::retry::{ErrorFilter, ExponentialBackoff};

    use super::*;
    use crate::config::FailingKey;

    #[test]
    fn a_mode_is_read_by_its_name() {
        for mode in [Mode::SingleNode, Mode::MultiNode, Mode::Partitioned, Mode::Ordered, Mode::WriterOnly] {
            assert_eq!(mode.name().parse::<Mode>().expect("a mode"), mode);
        }
        let error = "single".parse::<Mode>().expect_err("none").to_string();
        assert!(error.contains("`single`") && error.contains("`writer_only`"), "{error}");
    }

    type Change = fn(&mut Config);

    fn changed(change: Change) -> Config {
        let mut config = Config::default();
        change(&mut config);
        config
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    #[test]
    fn every_setting_out_of_range_is_named() {
        let ms = Duration::from_millis;
        let table: [(&str, Change); 22] = [
            ("purge.all_after", |c| c.purge.all_after = Some(Duration::ZERO)),
            ("purge.inbox_after", |c| c.purge.inbox_after = Some(Duration::ZERO)),
            ("purge.audit_after", |c| c.purge.audit_after = Some(Duration::ZERO)),
            ("claim.batch", |c| c.claim.batch = 0),
            ("settle.batch", |c| c.settle.batch = 10_001),
            ("dispatch.workers", |c| c.dispatch.workers = 0),
            ("dispatch.hot_capacity", |c| c.dispatch.hot_capacity = 0),
            ("dispatch.cold_capacity", |c| c.dispatch.cold_capacity = usize::MAX),
            ("dispatch.payload_memory", |c| c.dispatch.payload_memory = 1023),
            ("claim.max_interval", |c| c.claim.max_interval = Duration::MAX),
            ("claim.min_interval", |c| c.claim.min_interval = Duration::from_secs(6)),
            ("ownership.lease", |c| c.ownership.lease = Duration::from_millis(99)),
            ("ownership.standby_interval", |c| c.ownership.standby_interval = Duration::ZERO),
            ("shutdown.drain_timeout", |c| c.shutdown.drain_timeout = Duration::MAX),
            ("dispatch.unroutable", |c| c.dispatch.unroutable = Unroutable::Park(Duration::ZERO)),
            ("dispatch.unroutable_dead_after", |c| c.dispatch.unroutable_dead_after = Some(Duration::ZERO)),
            ("dispatch.handler_timeout", |c| c.dispatch.handler_timeout = Some(Duration::ZERO)),
            ("dispatch.slow_after", |c| c.dispatch.slow_after = Duration::MAX),
            ("retry.max_attempts", |c| c.retry.max_attempts = 0),
            ("metrics.interval", |c| c.metrics.interval = Duration::ZERO),
            ("metrics.prefix", |c| c.metrics.prefix.clear()),
            ("metrics.prefix", |c| c.metrics.prefix = "shop outbox".to_owned()),
        ];
        for (field, spoil) in table {
            assert_eq!(changed(spoil).validate().map_err(|error| error.field()), Err(field));
        }
        assert!(count("x", 1, 1).is_ok() && duration("x", ms(1), ms(1), ms(1)).is_ok());
    }

    #[test]
    fn a_range_is_written_as_a_file_has_it() {
        let table: [(Change, &str); 3] = [
            (
                |c| c.purge.inbox_after = Some(Duration::ZERO),
                "setting `purge.inbox_after` is 0s; set a duration from 1ms to 36500d",
            ),
            (
                |c| c.dispatch.handler_timeout = Some(Duration::ZERO),
                "setting `dispatch.handler_timeout` is 0s; set a duration from 1ms to 36500d, or no limit",
            ),
            (|c| c.ownership.lease = 2 * HOUR, "setting `ownership.lease` is 2h; set a duration from 100ms to 1h"),
        ];
        for (spoil, expected) in table {
            assert_eq!(changed(spoil).validate().map_err(|error| error.to_string()), Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_setting_that_the_mode_lacks_is_refused() {
        use Mode::{MultiNode, Ordered, Partitioned, SingleNode};
        let table: [(&str, Change, &[Mode]); 8] = [
            ("purge.all_after", |c| c.purge.all_after = Some(HOUR), &[]),
            ("dispatch.workers", |c| c.dispatch.workers = 4, &[SingleNode, MultiNode, Partitioned]),
            ("dispatch.hot_capacity", |c| c.dispatch.hot_capacity = 4, &[SingleNode, MultiNode]),
            ("retry.failing_head", |c| c.retry.failing_head = FailingHead::DeadAndContinue, &[Ordered]),
            ("retry.failing_key", |c| c.retry.failing_key = FailingKey::SkipDead, &[Partitioned]),
            (
                "ownership.standby_interval",
                |c| c.ownership.standby_interval = Duration::from_millis(20),
                &[SingleNode, Ordered],
            ),
            ("retry.max_attempts", |c| c.retry.max_attempts = 3, &[SingleNode, MultiNode, Partitioned, Ordered]),
            (
                "dispatch.unroutable",
                |c| c.dispatch.unroutable = Unroutable::Park(Duration::from_secs(5)),
                &[SingleNode, MultiNode, Partitioned, Ordered],
            ),
        ];
        for (field, change, modes) in table {
            for mode in [SingleNode, MultiNode, Partitioned, Ordered] {
                let problem = changed(change).validate_for(mode).map_err(|error| error.to_string());
                let (why, instead) = why_ignored(field, mode).unwrap_or_default();
                let comma = if why.is_empty() { "" } else { ", " };
                let refused = format!(
                    "setting `{field}` does not apply to mode {mode}{comma}{why}; leave it at its default{comma}{instead}"
                );
                assert_eq!(problem, if modes.contains(&mode) { Ok(()) } else { Err(refused) });
            }
        }
        let of_writers: [(&str, Change); 4] = [
            ("purge.all_after", |c| c.purge.all_after = Some(HOUR)),
            ("purge.batch", |c| c.purge.batch = 7),
            ("metrics.prefix", |c| c.metrics.prefix = "shop".to_owned()),
            ("wake_up.enabled", |c| c.wake_up.enabled = true),
        ];
        let of_nodes: [(&str, Change); 13] = [
            ("claim.batch", |c| c.claim.batch = 7),
            ("dispatch.slow_after", |c| c.dispatch.slow_after = HOUR),
            ("retry.max_attempts", |c| c.retry.max_attempts = 3),
            ("retry.policy", |c| c.retry.policy = Arc::new(ExponentialBackoff::constant(HOUR, HOUR))),
            ("retry.errors", |c| c.retry.errors = ErrorFilter::default().never_retry_on_named("MailError")),
            ("settle.delete_done", |c| c.settle.delete_done = true),
            ("settle.keep_positions", |c| c.settle.keep_positions = false),
            ("ownership.lease", |c| c.ownership.lease = HOUR),
            ("purge.done_after", |c| c.purge.done_after = None),
            ("purge.inbox_after", |c| c.purge.inbox_after = None),
            ("purge.audit_after", |c| c.purge.audit_after = None),
            ("shutdown.drain_timeout", |c| c.shutdown.drain_timeout = HOUR),
            ("metrics.interval", |c| c.metrics.interval = HOUR),
        ];
        let refused = |change: Change| changed(change).validate_for(Mode::WriterOnly).err().map(|error| error.field());
        assert!(of_writers.into_iter().all(|(_, change)| refused(change).is_none()));
        for (field, change) in of_nodes {
            assert_eq!(refused(change), Some(field));
        }
        for (field, change, _) in table.iter().rev().take(2) {
            let mut config = changed(*change);
            config.retry.failing_head = FailingHead::DeadAndContinue;
            assert_eq!(config.validate_for(Ordered).map_err(|error| error.field()), Err(*field));
        }
    }
}
