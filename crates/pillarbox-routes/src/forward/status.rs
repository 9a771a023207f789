use std::time::Duration;

use serde::Serialize;

/// How a route is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RouteStatus {
    /// Its name.
    pub route: String,
    /// The kind of broker, or `none` for a route that drops what it takes.
    pub publisher: &'static str,
    /// Where the broker is, without credentials.
    pub address: String,
    /// Whether it sends.
    #[serde(flatten)]
    pub way: Way,
}

/// Whether a route sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Shown")]
pub enum Way {
    /// It does.
    Open,
    /// It does not, until the destination takes something again.
    Paused {
        /// Until it is tried out again; `None` once the pause is over: the next event tries it out, or a check, or does so now.
        next_probe: Option<Duration>,
        /// What the destination said last.
        problem: String,
    },
}

/// As it is written. Its keys are a contract.
#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Shown {
    Open,
    Paused { next_probe_ms: u64, problem: String },
    Probing { problem: String },
}

impl From<Way> for Shown {
    fn from(way: Way) -> Self {
        match way {
            Way::Open => Self::Open,
            Way::Paused { next_probe: Some(pause), problem } => {
                Self::Paused { next_probe_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), problem }
            }
            Way::Paused { next_probe: None, problem } => Self::Probing { problem },
        }
    }
}
