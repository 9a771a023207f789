use std::fmt;

use pillarbox_core::store::{Pause, StoreInfo};
use pillarbox_engine::observe::Health;
use pillarbox_routes::RouteStatus;
use serde::{Deserialize, Serialize};

/// A process as it is now.
#[derive(Debug, Default)]
pub struct Report {
    /// Its configuration file, if it works by one.
    pub configuration: Option<ConfigurationReport>,
    /// Each source; `None` until the process has started.
    pub sources: Option<Vec<SourceReport>>,
}

/// The configuration file that a process works by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationReport {
    /// The time at which it was read.
    pub read_at: String,
    /// A digest of its text, by which a file can be compared with it.
    pub digest: String,
    /// The last file that was refused after it, if one was.
    pub refused: Option<RefusedConfiguration>,
}

/// A configuration file that a process could not use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedConfiguration {
    /// The time at which it was refused.
    pub at: String,
    /// The problem.
    pub problem: String,
}

/// The state of one source of a process, as its endpoint tells it.
#[derive(Debug)]
pub struct SourceReport {
    /// Its name.
    pub name: String,
    /// The database, without credentials; empty until it was opened.
    pub address: String,
    /// The table; empty until the database was opened.
    pub table: String,
    /// The health of its delivery.
    pub health: SourceHealth,
    /// Its routes, if it has any.
    pub routes: Vec<RouteStatus>,
    /// The event types and handlers that operators have paused, as this process last knew.
    pub paused: Vec<Pause>,
}

/// The health of a source's delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceHealth {
    /// Its brokers and its database are asked for the first time.
    Starting,
    /// Its database could not be delivered from, and is tried again.
    Waiting {
        /// The reason.
        problem: String,
    },
    /// It has an outbox.
    Started(Health),
}

impl SourceReport {
    /// A source that has started.
    #[must_use]
    pub fn started(name: impl Into<String>, info: &StoreInfo, health: Health, routes: Vec<RouteStatus>) -> Self {
        let (address, table) = (info.address.clone(), info.table.clone());
        let health = SourceHealth::Started(health);
        Self { name: name.into(), address, table, health, routes, paused: Vec::new() }
    }
}

impl SourceHealth {
    /// False if a restart of the process may help.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.outbox().is_none_or(Health::is_alive)
    }

    /// The health of its outbox, once it has one.
    #[must_use]
    pub fn outbox(&self) -> Option<&Health> {
        match self {
            Self::Starting | Self::Waiting { .. } => None,
            Self::Started(health) => Some(health),
        }
    }

    /// The problems of the source, a text each; empty if all is well.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Starting => vec!["is starting".to_owned()],
            Self::Waiting { problem } => vec![problem.clone()],
            Self::Started(health) => {
                health.problems.iter().map(ToString::to_string).chain(health.last_error.clone()).collect()
            }
        }
    }

    /// True if it does what it is there for.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.outbox().is_some_and(Health::is_ready)
    }
}

impl fmt::Display for SourceHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Waiting { problem } => write!(f, "cannot deliver yet, and tries again: {problem}"),
            Self::Started(health) => {
                health.fmt(f)?;
                health.last_error.as_ref().map_or(Ok(()), |error| write!(f, "; {error}"))
            }
        }
    }
}
