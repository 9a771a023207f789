use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::route::{Line, Sending};

/// The status of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RouteStatus {
    /// Its name.
    pub route: String,
    /// The kind of broker, or `none` for a route that drops what it takes.
    pub publisher: &'static str,
    /// The address of the broker, without credentials.
    pub address: String,
    /// The state of the route.
    #[serde(flatten)]
    pub way: Way,
    /// The number of targets and servers that are paused by themselves, where the target depends on the event.
    #[serde(skip_serializing_if = "is_none")]
    pub paused_targets: usize,
    /// Some of them: those that are tried out first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetStatus>,
}

/// A target, or a server, that is paused by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TargetStatus {
    /// The target as it may be shown.
    pub target: String,
    /// Its state.
    #[serde(flatten)]
    pub way: Way,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_none(paused: &usize) -> bool {
    *paused == 0
}

/// Targets that a status shows.
const SHOWN: usize = 20;

impl RouteStatus {
    pub(super) fn of(line: &Line, now: Instant) -> Self {
        let sending = line.sending.as_ref();
        let info = sending.map(|sending| sending.publisher.info());
        let paused = sending.and_then(|sending| sending.circuit().paused());
        let (paused_targets, targets) = sending.map(|sending| targets(sending, now)).unwrap_or_default();
        Self {
            route: line.name.to_string(),
            publisher: info.map_or("none", |info| info.kind),
            address: info.map(|info| info.address.clone()).unwrap_or_default(),
            way: paused.map_or(Way::Open, |(until, problem)| Way::paused(until, now, &problem)),
            paused_targets,
            targets,
        }
    }
}

/// The number of paused targets, and the first of them.
fn targets(sending: &Sending, now: Instant) -> (usize, Vec<TargetStatus>) {
    let targets = sending.targets();
    let mut paused: Vec<_> = targets.all_paused().collect();
    paused.sort_by_key(|(_, until, _)| *until);
    let count = paused.len();
    let shown = paused.into_iter().take(SHOWN).map(|(part, until, problem)| TargetStatus {
        target: sending.shown(part),
        way: Way::paused(until, now, &problem),
    });
    (count, shown.collect())
}

/// The state of a route: open or paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Shown")]
pub enum Way {
    /// It does.
    Open,
    /// It does not, until the destination takes something again.
    Paused {
        /// Until it is tried out again; `None` once the pause is over: the next event tries it out, or a check, or does so now.
        next_probe: Option<Duration>,
        /// The last problem of the destination.
        problem: String,
    },
}

impl Way {
    fn paused(until: Instant, now: Instant, problem: &str) -> Self {
        let next_probe = Some(until.saturating_duration_since(now)).filter(|pause| !pause.is_zero());
        Self::Paused { next_probe, problem: problem.to_owned() }
    }
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
