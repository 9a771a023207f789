//! Whether settings fit together, and what the engine is given.

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::ownership::{self, NodeName};
use pillarbox_core::retry::{ErrorFilter, ExponentialBackoff};
use pillarbox_core::run::{
    ClaimConfig, Config, DispatchConfig, MetricsConfig, OwnershipConfig, PurgeConfig, RetryConfig, SettleConfig,
    ShutdownConfig, WakeUpConfig,
};

use crate::keys::Keys;
use crate::modes::why_ignored;
use crate::value::Mode;
use crate::{Error, Settings};

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Settings {
    /// Checks every setting, and that none was given or changed that the mode or the database would ignore.
    ///
    /// # Errors
    /// The first one, where it was given, and what to do about it.
    pub fn check(&self) -> Result<(), Error> {
        self.config().map(drop)
    }

    /// The engine's settings, checked.
    pub(crate) fn config(&self) -> Result<Config, Error> {
        let (values, defaults) = (Keys::of(self), Keys::known());
        for key in values.changed(&defaults).chain(self.origins.keys()) {
            let why = why_ignored(self, key).or_else(|| self.store.why_ignored(key));
            if let Some(why) = why {
                return Err(Error::invalid(key.to_owned(), &self.origins, why, "remove it"));
            }
        }
        if self.purge.all_after.is_some_and(|kept| kept.is_zero() || kept > CENTURY) {
            let remedy = "set a duration above zero, up to 100 years";
            return Err(Error::invalid("purge.all_after", &self.origins, "is out of range", remedy));
        }
        self.store.check(&self.origins)?;
        let config = self.convert().map_err(|error| Error::refused(&error, &self.origins))?;
        match self.engine_mode() {
            Some(mode) => config.validate_for(mode),
            None => config.validate(),
        }
        .map_err(|error| Error::refused(&error, &self.origins))?;
        Ok(config)
    }

    fn engine_mode(&self) -> Option<ownership::Mode> {
        match self.mode {
            Mode::SingleNode => Some(ownership::Mode::SingleNode),
            Mode::MultiNode => Some(ownership::Mode::MultiNode),
            Mode::Partitioned => Some(ownership::Mode::Partitioned),
            Mode::Ordered => Some(ownership::Mode::Ordered),
            Mode::WriterOnly => None,
        }
    }

    fn convert(&self) -> Result<Config, pillarbox_core::error::ConfigError> {
        // No field is left to its default: a setting that the engine gains has to get a key here.
        let Self {
            enabled: _,
            mode: _,
            store: _,
            claim,
            dispatch,
            retry,
            settle,
            ownership,
            purge,
            wake_up,
            shutdown,
            metrics,
            origins: _,
        } = self;
        let node_name = match &ownership.node_name {
            Some(name) => NodeName::new(name)?,
            None => NodeName::of_host(),
        };
        Ok(Config {
            claim: ClaimConfig {
                batch: claim.batch,
                min_interval: claim.min_interval,
                max_interval: claim.max_interval,
            },
            dispatch: DispatchConfig {
                workers: dispatch.workers,
                hot_capacity: dispatch.hot_capacity,
                cold_capacity: dispatch.cold_capacity,
                unroutable: dispatch.unroutable.into(),
            },
            retry: RetryConfig {
                max_attempts: retry.max_attempts,
                policy: Arc::new(ExponentialBackoff::new(retry.base, retry.cap)?),
                // What errors are is known to code only: `Setup::retry`.
                errors: ErrorFilter::default(),
                failing_head: retry.failing_head.into(),
                failing_key: retry.failing_key.into(),
            },
            settle: SettleConfig { batch: settle.batch, delete_done: settle.delete_done },
            ownership: OwnershipConfig {
                node_name,
                lease: ownership.lease,
                standby_interval: ownership.standby_interval,
            },
            purge: PurgeConfig {
                done_after: purge.done_after,
                dead_after: purge.dead_after,
                interval: purge.interval,
                batch: purge.batch,
            },
            shutdown: ShutdownConfig { drain_timeout: shutdown.drain_timeout },
            wake_up: WakeUpConfig { enabled: wake_up.enabled },
            metrics: MetricsConfig { prefix: metrics.prefix.clone(), interval: metrics.interval },
        })
    }
}
