use std::fmt;
use std::time::Duration;

use pillarbox_core::store::operation::CALL_LIMIT;
use tokio::time::Instant;

use super::Loops;
use super::calls::Busy;
use super::loops::{LoopHealth, Phase, State};
use crate::observe::Role;

/// The shortest time after which a task counts as stuck, however short the lease is.
const MIN_STUCK_AFTER: Duration = Duration::from_secs(5);

/// The time by which a wait for the database may be longer. Stores end each call by themselves within half of it, so one that lasts longer is
/// not the database's fault.
const MAX_CALL_TIME: Duration = CALL_LIMIT.saturating_mul(2);

/// A call that runs for less is not displayed.
const MIN_CALL_SHOWN: Duration = Duration::from_secs(1);

/// The health of an outbox, by the progress of its own tasks. Asking for it costs no query and never waits.
///
/// | The outbox … | [`is_alive`](Self::is_alive) | [`is_ready`](Self::is_ready) |
/// |---|---|---|
/// | delivers, stands by, or only writes | yes | yes |
/// | joins, for the first time or anew after its lease was lost | yes | no |
/// | gets errors from the database, or no answer, and tries again | yes | no |
/// | has all its workers in slow calls: see [`Problem::Stalled`] | yes | no |
/// | is shutting down | yes | no |
/// | is stuck: see [`Problem::Stuck`] | no | no |
/// | has stopped | no | no |
///
/// Answer a liveness probe with the first and a readiness probe with the second. A process that is stuck may be helped by a
/// restart; one whose database fails is not.
///
/// Events that fail have no part in it; they are the business of their [metrics](super). A handler that hangs has: see
/// [`Problem::Stalled`]. The relay's endpoint and yours can show what it displays, one line that holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The role of the outbox at the moment.
    pub role: Role,
    /// The time since it last completed a poll of the table. An idle node polls every `claim.max_interval`; a node whose handlers
    /// are all busy does not poll. `None` if it does not deliver, or has not polled yet.
    pub last_poll: Option<Duration>,
    /// The time since its lease was last renewed, or first given: counted from before it was asked for. `None` if it has none.
    pub last_renewal: Option<Duration>,
    /// The age of the verdicts that are being recorded now, repeated tries included. `None` if there are none.
    pub oldest_verdict: Option<Duration>,
    /// Workers that are in a call of a handler.
    pub busy_workers: usize,
    /// The age of the oldest running handler call. `None` if none runs.
    pub oldest_call: Option<Duration>,
    /// Blocking handlers that were abandoned while their threads go on.
    pub abandoned_calls: usize,
    /// The problems that it has; empty if it has none.
    pub problems: Vec<Problem>,
    /// The last answer of the database to a task that gets errors from it, at most 500 characters; `None` if none does. It holds no
    /// credentials, but names of servers, tables and users: it is not displayed.
    pub last_error: Option<String>,
}

/// A problem of an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// It was shut down.
    Stopped,
    /// It is being shut down.
    Stopping,
    /// It has no valid registration in the database and is trying to get one.
    NotJoined,
    /// Joining, or asking whether it is its turn to deliver, failed. It is tried again.
    CannotJoin,
    /// The last poll of the table failed. It is tried again.
    CannotRead,
    /// Verdicts could not be recorded. It is tried again.
    CannotSettle,
    /// The lease could not be renewed. It is tried again until the lease is lost.
    CannotRenew,
    /// The partitions could not be rebalanced with the other nodes. It is tried again.
    CannotRebalance,
    /// Operators' pauses and changes of pending rows could not be read. It is tried again. Pauses known before stay in force; later changes
    /// are not noticed meanwhile.
    CannotReadPauses,
    /// Every worker is in a call that has been running for longer than
    /// [`slow_after`](crate::config::DispatchConfig::slow_after), a minute by default: no other event is delivered meanwhile. The
    /// log names handler, event type and id of each such call.
    Stalled,
    /// A task has been waiting for an answer of the database for longer than a lease, and at least five seconds: a lock on its tables, or
    /// a server that says nothing. The call ends by itself with an error, and is tried again.
    Unanswered,
    /// A task has overslept by more than a lease, and at least five seconds, or has been waiting for the database for a minute more than
    /// that, though each call ends before: the process has no time for its tasks.
    Stuck,
}

impl Health {
    /// True if its tasks make progress, or would if the database let them.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.problems.iter().any(|problem| matches!(problem, Problem::Stopped | Problem::Stuck))
    }

    /// True if it does its work, without any [`Problem`].
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.problems.is_empty()
    }

    /// Reads the loops at `now`.
    pub(crate) fn read(loops: &Loops, busy: Busy, role: Role, stopping: bool, lease: Duration, now: Instant) -> Self {
        let Loops { join, poll, settle, lease: renewal, rebalance, notice } = loops;
        let states = [
            (join, Problem::CannotJoin),
            (poll, Problem::CannotRead),
            (settle, Problem::CannotSettle),
            (renewal, Problem::CannotRenew),
            (rebalance, Problem::CannotRebalance),
            (notice, Problem::CannotReadPauses),
        ];
        let states = states.map(|(each, problem)| (LoopHealth::state(each), problem));
        let [_, (poll, _), (settle, _), (renewal, _), ..] = &states;
        let errors = states.iter().filter_map(|(state, _)| state.error.as_ref());
        let last_error = errors.max_by_key(|(at, _)| *at).map(|(_, error)| (**error).to_owned());
        let own = match role {
            Role::Stopped => Some(Problem::Stopped),
            _ if stopping => Some(Problem::Stopping),
            Role::Joining => Some(Problem::NotJoined),
            Role::Standby { .. } | Role::Active { .. } | Role::Writing => None,
        };
        let failing = states.iter().filter(|(state, _)| state.error.is_some()).map(|(_, problem)| *problem);
        let patience = lease.max(MIN_STUCK_AFTER);
        let stuck = states.iter().any(|(state, _)| state.is_stuck(now, patience)).then_some(Problem::Stuck);
        let unanswered =
            states.iter().any(|(state, _)| state.is_unanswered(now, patience)).then_some(Problem::Unanswered);
        let stalled = busy.is_stalled.then_some(Problem::Stalled);
        let ago = |at: Instant| now.saturating_duration_since(at);
        Self {
            problems: own.into_iter().chain(failing).chain(stalled).chain(unanswered).chain(stuck).collect(),
            last_error,
            last_poll: poll.answered.map(ago),
            last_renewal: renewal.answered.map(ago),
            oldest_verdict: settle.wanted.map(ago),
            busy_workers: busy.workers,
            oldest_call: busy.oldest,
            abandoned_calls: busy.abandoned,
            role,
        }
    }
}

impl State {
    fn is_stuck(&self, now: Instant, patience: Duration) -> bool {
        match self.phase {
            Phase::Resting => false,
            Phase::Asking(since) => now.saturating_duration_since(since) > patience + MAX_CALL_TIME,
            Phase::Sleeping(latest) => now.saturating_duration_since(latest) > patience,
        }
    }

    fn is_unanswered(&self, now: Instant, patience: Duration) -> bool {
        matches!(self.phase, Phase::Asking(since) if now.saturating_duration_since(since) > patience)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.role)?;
        if let Some(ago) = self.last_poll {
            write!(f, "; last poll {ago:.1?} ago")?;
        }
        if let Some(ago) = self.last_renewal {
            write!(f, "; last renewal {ago:.1?} ago")?;
        }
        if let Some(time) = self.oldest_verdict {
            write!(f, "; recording verdicts for {time:.1?}")?;
        }
        if let Some(age) = self.oldest_call.filter(|age| *age >= MIN_CALL_SHOWN) {
            write!(f, "; {} busy workers, the oldest call for {age:.1?}", self.busy_workers)?;
        }
        if self.abandoned_calls > 0 {
            write!(f, "; {} abandoned blocking handlers whose threads go on", self.abandoned_calls)?;
        }
        self.problems.iter().try_for_each(|problem| write!(f, "; {problem}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Stopping => "shutting down",
            Self::NotJoined => "not joined",
            Self::CannotJoin => "cannot join",
            Self::CannotRead => "cannot read the table",
            Self::CannotSettle => "cannot record verdicts",
            Self::CannotRenew => "cannot renew the lease",
            Self::CannotRebalance => "cannot rebalance the partitions",
            Self::CannotReadPauses => "cannot read what operators have paused",
            Self::Stalled => "all workers are in slow calls",
            Self::Unanswered => "has had no answer of the database for longer than a lease",
            Self::Stuck => "stuck",
        })
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::error::{StoreError, StoreErrorKind};

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn health(loops: &Loops, role: Role) -> Health {
        Health::read(loops, Busy::default(), role, false, LEASE, Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_role_decides_where_nothing_else_is_wrong() {
        let loops = Loops::default();
        let table = [
            (Role::Writing, vec![], true, true),
            (Role::Joining, vec![Problem::NotJoined], true, false),
            (Role::Stopped, vec![Problem::Stopped], false, false),
        ];
        for (role, problems, alive, ready) in table {
            let health = health(&loops, role);
            assert_eq!((health.is_alive(), health.is_ready()), (alive, ready), "{health}");
            assert_eq!(health.problems, problems);
        }
        let stopping = Health::read(&loops, Busy::default(), Role::Writing, true, LEASE, Instant::now());
        assert_eq!((stopping.is_alive(), stopping.problems), (true, vec![Problem::Stopping]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_is_stuck_when_it_oversleeps_or_waits_for_longer_than_any_call() {
        let loops = Loops::default();
        let hour = Duration::from_secs(3600);
        let asking = loops.settle.ask(std::future::pending::<Result<(), StoreError>>());
        let sleeping = loops.poll.until(Instant::now() + hour, std::future::pending::<()>());
        tokio::pin!(asking, sleeping);
        let both = async { tokio::join!(asking, sleeping) };
        tokio::pin!(both);
        let mut wait = async |time| drop(tokio::time::timeout(time, &mut both).await);
        wait(LEASE).await;
        let now = health(&loops, Role::Writing);
        assert!(now.is_ready() && now.oldest_verdict == Some(LEASE), "{now}");
        wait(Duration::from_millis(1)).await;
        let now = health(&loops, Role::Writing);
        assert_eq!(now.problems, [Problem::Unanswered], "{now}");
        assert!(now.is_alive() && !now.is_ready(), "a restart makes no database answer: {now}");
        wait(MAX_CALL_TIME).await;
        let now = health(&loops, Role::Writing);
        assert_eq!(now.problems, [Problem::Unanswered, Problem::Stuck], "{now}");
        assert!(!now.is_alive());
        loops.settle.clear();
        assert!(health(&loops, Role::Writing).is_ready(), "the other sleeps for an hour");
        wait(hour).await;
        assert!(!health(&loops, Role::Writing).is_alive());
    }

    #[tokio::test(start_paused = true)]
    async fn an_outbox_whose_workers_are_all_in_slow_calls_is_alive_and_not_ready() {
        let busy = Busy { workers: 4, oldest: Some(3 * LEASE), is_stalled: true, abandoned: 0 };
        let health = Health::read(&Loops::default(), busy, Role::Writing, false, LEASE, Instant::now());
        assert_eq!(
            (health.is_alive(), health.is_ready(), health.problems.as_slice()),
            (true, false, &[Problem::Stalled][..])
        );
        let line = health.to_string();
        assert!(line.ends_with("; 4 busy workers, the oldest call for 45.0s; all workers are in slow calls"), "{line}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_of_several_errors_is_told() {
        let loops = Loops::default();
        let fails = async |of: &LoopHealth, why: &str| {
            let refused = StoreError::new(StoreErrorKind::Unavailable, "fetch", why.to_owned());
            let failed: Result<(), StoreError> = of.ask(async { Err(refused) }).await;
            assert!(failed.is_err());
            tokio::time::sleep(Duration::from_secs(1)).await;
            health(&loops, Role::Joining).last_error.unwrap_or_default()
        };
        assert!(fails(&loops.join, "connection refused").await.contains("connection refused"));
        assert!(fails(&loops.lease, "password").await.contains("password"));
        assert!(fails(&loops.poll, "too many").await.contains("too many"));
        assert!(fails(&loops.join, "password").await.contains("password"));
    }

    #[tokio::test(start_paused = true)]
    async fn it_displays_as_one_line() {
        let loops = Loops::default();
        loops.lease.begin(Instant::now());
        let refused = StoreError::new(StoreErrorKind::Unavailable, "fetch", "password authentication failed");
        let failed: Result<(), StoreError> = loops.poll.ask(async { Err(refused) }).await;
        assert!(failed.is_err());
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let health = health(&loops, Role::Joining);
        let line = "joining; last renewal 1.5s ago; not joined; cannot read the table";
        assert_eq!(health.to_string(), line, "a page for everybody tells no more");
        assert!(health.last_error.is_some_and(|error| error.contains("password authentication failed")));
    }
}
