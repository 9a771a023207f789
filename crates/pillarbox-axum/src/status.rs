use std::time::Duration;

use pillarbox_core::store::Backlog;
use pillarbox_engine::handlers::HandlerLimit;
use pillarbox_engine::observe::{Health, Stats};
use pillarbox_engine::run::{Outbox, Role};
use serde::Serialize;

use crate::backlog::Reading;
use crate::paused::Paused;

/// `/status`. Its keys are a contract. It holds nothing of an event: no id, no key, no header, no payload and no error of a handler.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    database: String,
    table: String,
    mode: &'static str,
    /// `active`, `standby`, `joining`, `writing` or `stopped`.
    role: &'static str,
    /// This node's id while it delivers, or that of the node for which it stands by.
    node: Option<String>,
    alive: bool,
    ready: bool,
    problems: Vec<String>,
    /// The last answer of the database to what fails now.
    last_error: Option<String>,
    last_poll_seconds: Option<f64>,
    last_renewal_seconds: Option<f64>,
    busy_workers: usize,
    oldest_call_seconds: Option<f64>,
    /// The handlers that have limits of their own.
    limits: Vec<Limit>,
    /// Of the whole table; `null` if it could not be counted.
    backlog: Option<Counted>,
    backlog_problem: Option<String>,
    /// The event types and handlers that operators have paused, as this process last knew.
    paused: Vec<Paused>,
    /// Of this process, since its start.
    totals: Totals,
}

/// A handler with limits of its own.
#[derive(Debug, Serialize)]
struct Limit {
    /// `null` if it takes all events that have no other handler.
    event_type: Option<String>,
    handler: Option<String>,
    running: usize,
    concurrency: Option<usize>,
    /// A text, such as `100/s`.
    rate: Option<String>,
    /// Its events wait for the limit.
    reached: bool,
}

/// The rows that are not delivered.
#[derive(Debug, Serialize)]
struct Counted {
    due: u64,
    delayed: u64,
    dead: u64,
    /// The lag: for how long the oldest due row has been due; `null` if none is.
    oldest_due_seconds: Option<f64>,
    /// The age of these numbers.
    age_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Totals {
    done: u64,
    retried: u64,
    deferred: u64,
    dead: u64,
    in_memory: usize,
}

impl Status {
    pub(crate) fn of(outbox: &Outbox, reading: Reading) -> Self {
        let (info, health) = (outbox.store().info(), outbox.health());
        let (role, node) = role(&health.role);
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let age = reading.at.elapsed();
        let (backlog, backlog_problem) = match reading.backlog {
            Ok(backlog) => (Some(Counted::new(backlog, age)), None),
            Err(problem) => (None, Some(problem)),
        };
        Self {
            database: info.address.clone(),
            table: info.table.clone(),
            mode: outbox.mode().name(),
            role,
            node,
            alive: health.is_alive(),
            ready: health.is_ready(),
            problems: problems(&health),
            last_error: health.last_error.clone(),
            last_poll_seconds: seconds(health.last_poll),
            last_renewal_seconds: seconds(health.last_renewal),
            busy_workers: health.busy_workers,
            oldest_call_seconds: seconds(health.oldest_call),
            limits: outbox.limits().into_iter().map(Limit::from).collect(),
            backlog,
            backlog_problem,
            paused: outbox.known_pauses().into_iter().map(Paused::from).collect(),
            totals: Totals::from(outbox.stats()),
        }
    }
}

impl From<HandlerLimit> for Limit {
    fn from(limit: HandlerLimit) -> Self {
        let HandlerLimit { event_type, handler, running, concurrency, rate, is_reached, .. } = limit;
        Self { event_type, handler, running, concurrency, rate: rate.map(|rate| rate.to_string()), reached: is_reached }
    }
}

impl Counted {
    fn new(backlog: Backlog, age: Duration) -> Self {
        let Backlog { due, delayed, dead, oldest_due } = backlog;
        let oldest_due_seconds = oldest_due.map(|time| time.as_secs_f64());
        Self { due, delayed, dead, oldest_due_seconds, age_seconds: age.as_secs_f64() }
    }
}

impl From<Stats> for Totals {
    fn from(stats: Stats) -> Self {
        let Stats { done, retried, deferred, dead, in_memory, .. } = stats;
        Self { done, retried, deferred, dead, in_memory }
    }
}

/// The problems of an outbox, a text each; none if all is well.
pub(crate) fn problems(health: &Health) -> Vec<String> {
    health.problems.iter().map(ToString::to_string).collect()
}

fn role(role: &Role) -> (&'static str, Option<String>) {
    match role {
        Role::Active { node } => ("active", Some(node.to_string())),
        Role::Standby { owner } => ("standby", Some(owner.to_string())),
        Role::Joining => ("joining", None),
        Role::Writing => ("writing", None),
        Role::Stopped => ("stopped", None),
    }
}
