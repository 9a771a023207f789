use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::route::{RouteOutput, RouteRuntime};

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
    /// The events that it takes, in words, as far as no earlier route does: `type order.*, tenant acme`.
    pub takes: String,
    /// The target there, with places for what an event says of itself, as it may be shown; `None` for a route that drops what it takes.
    pub to: Option<String>,
    /// The state of the route.
    #[serde(flatten)]
    pub state: RouteState,
    /// The number of targets and servers that are paused by themselves, where the target depends on the event.
    #[serde(skip_serializing_if = "is_zero")]
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
    pub state: RouteState,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(paused: &usize) -> bool {
    *paused == 0
}

/// Targets that a status shows.
const MAX_TARGETS_SHOWN: usize = 20;

impl RouteStatus {
    pub(super) fn of(route: &RouteRuntime, now: Instant) -> Self {
        let output = route.output.as_ref();
        let info = output.map(|output| output.publisher.info());
        let paused = output.and_then(|output| output.circuit.lock().paused());
        let operator_pause = output.and_then(|output| output.operator_pause.lock().clone());
        let state = match (operator_pause, paused) {
            (Some(reason), paused) => {
                let problem = paused.map(|(_, problem)| problem.to_string());
                RouteState::PausedByOperator { reason: reason.to_string(), problem }
            }
            (None, Some((until, problem))) => RouteState::paused(until, now, &problem),
            (None, None) => RouteState::Delivering,
        };
        let (paused_targets, targets) = output.map(|output| targets(output, now)).unwrap_or_default();
        Self {
            route: route.name.to_string(),
            publisher: info.map_or("none", |info| info.kind),
            address: info.map(|info| info.address.clone()).unwrap_or_default(),
            takes: route.selector.to_string(),
            to: output.map(|output| output.publisher.shown(output.target.text()).into_owned()),
            state,
            paused_targets,
            targets,
        }
    }
}

/// The number of paused targets, and the first of them.
fn targets(output: &RouteOutput, now: Instant) -> (usize, Vec<TargetStatus>) {
    let targets = output.targets.lock();
    let mut paused: Vec<_> = targets.all_paused().collect();
    paused.sort_by_key(|(_, until, _)| *until);
    let count = paused.len();
    let shown = paused.into_iter().take(MAX_TARGETS_SHOWN).map(|(part, until, problem)| TargetStatus {
        target: output.shown(part),
        state: RouteState::paused(until, now, &problem),
    });
    (count, shown.collect())
}

/// The state of a route: it delivers, or is paused, of itself or by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Shown")]
pub enum RouteState {
    /// It sends the events that it takes.
    Delivering,
    /// It sends nothing until the destination takes something again.
    Paused {
        /// The time until it is probed again; `None` once the pause is over: the next event or a check probes it, or does so now.
        next_probe: Option<Duration>,
        /// The last problem of the destination.
        problem: String,
    },
    /// It sends nothing until an operator [resumes](super::Forwarder::resume) it.
    PausedByOperator {
        /// The reason that was given.
        reason: String,
        /// The last problem of the destination, if it was in trouble when it was paused.
        problem: Option<String>,
    },
}

impl RouteState {
    fn paused(until: Instant, now: Instant, problem: &str) -> Self {
        let next_probe = Some(until.saturating_duration_since(now)).filter(|pause| !pause.is_zero());
        Self::Paused { next_probe, problem: problem.to_owned() }
    }
}

/// As it is written. Its keys are a contract.
#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Shown {
    Delivering,
    Paused {
        next_probe_ms: u64,
        problem: String,
    },
    Probing {
        problem: String,
    },
    PausedByOperator {
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
}

impl From<RouteState> for Shown {
    fn from(state: RouteState) -> Self {
        match state {
            RouteState::Delivering => Self::Delivering,
            RouteState::Paused { next_probe: Some(pause), problem } => {
                Self::Paused { next_probe_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), problem }
            }
            RouteState::Paused { next_probe: None, problem } => Self::Probing { problem },
            RouteState::PausedByOperator { reason, problem } => Self::PausedByOperator { reason, problem },
        }
    }
}
