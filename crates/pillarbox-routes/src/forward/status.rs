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
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Way {
    /// It does.
    Open,
    /// It does not, until the destination takes something again.
    Paused {
        /// Until it is tried out again, in milliseconds.
        #[serde(rename = "next_probe_ms", serialize_with = "millis")]
        next_probe: Duration,
        /// What the destination said last.
        problem: String,
    },
}

fn millis<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
