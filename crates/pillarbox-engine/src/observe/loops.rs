use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::lock::Mutex;
use tokio::time::Instant;

/// The characters of an error that are kept.
const MAX_REASON_CHARACTERS: usize = 500;

/// The state of the engine's loops, as far as the health of an outbox depends on it.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    /// Joining, and waiting for the right to deliver.
    pub(crate) join: LoopHealth,
    /// Polling the table.
    pub(crate) poll: LoopHealth,
    /// Recording verdicts.
    pub(crate) settle: LoopHealth,
    /// Renewing the lease.
    pub(crate) lease: LoopHealth,
    /// Rebalancing the partitions.
    pub(crate) rebalance: LoopHealth,
    /// Noticing what operators have changed and paused.
    pub(crate) notice: LoopHealth,
}

/// The state of one loop. The loop records each wait when it begins, so that nobody has to ask it later.
#[derive(Debug, Default)]
pub(crate) struct LoopHealth(Mutex<State>);

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// The time at which the database last answered with success.
    pub(super) answered: Option<Instant>,
    /// Since when there is something that it has not done yet, in however many tries.
    pub(super) wanted: Option<Instant>,
    /// The error of the last try, and when it failed, if it did.
    pub(super) error: Option<(Instant, Arc<str>)>,
}

/// An error of a loop's call, in words.
pub(crate) trait Reason {
    /// The error as text, without secrets.
    fn reason(&self) -> String;
}

impl Reason for StoreError {
    fn reason(&self) -> String {
        self.to_string()
    }
}

/// Of two calls at once, one of which has failed.
impl<A, B, E: Reason> Reason for (Result<A, E>, Result<B, E>) {
    fn reason(&self) -> String {
        let error = self.0.as_ref().err().or(self.1.as_ref().err());
        error.map(Reason::reason).unwrap_or_default()
    }
}

/// The kind of wait that a loop is in.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Phase {
    /// For others, who may take as long as they like: busy handlers, a verdict to record. Or it does not run.
    #[default]
    Resting,
    /// For the database, asked then.
    Asking(Instant),
    /// For nothing but this moment, at the latest.
    Sleeping(Instant),
}

/// A wait. It ends when it is dropped, so that a loop that is ended while it waits is not taken for one that hangs.
struct Wait<'a>(&'a LoopHealth);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.lock().phase = Phase::Resting;
    }
}

impl LoopHealth {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    pub(super) fn state(&self) -> State {
        self.lock().clone()
    }

    /// Forgets everything: the loop begins, has ended, or has done all there was to do.
    pub(crate) fn clear(&self) {
        *self.lock() = State::default();
    }

    /// Resets the state, with the last success at `answered`.
    pub(crate) fn begin(&self, answered: Instant) {
        *self.lock() = State { answered: Some(answered), ..State::default() };
    }

    /// Waits for an answer of the database, with which all is done that the loop wanted.
    pub(crate) async fn ask<T, E: Reason>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let answer = self.ask_part(call).await;
        if answer.is_ok() {
            self.done();
        }
        answer
    }

    /// Waits for one of several answers of the database. Only with the last is all [done](Self::done) that the loop wanted: until then an
    /// earlier error stands, or a loop whose second call always fails would look well after each first one.
    pub(crate) async fn ask_part<T, E: Reason>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let _wait = {
            let (mut state, now) = (self.lock(), Instant::now());
            state.phase = Phase::Asking(now);
            state.wanted.get_or_insert(now);
            Wait(self)
        };
        let answer = call.await;
        let mut state = self.lock();
        if let Err(error) = &answer {
            state.error =
                Some((Instant::now(), error.reason().chars().take(MAX_REASON_CHARACTERS).collect::<String>().into()));
        }
        drop(state);
        answer
    }

    /// The database has answered all that the loop wanted of it.
    pub(crate) fn done(&self) {
        let mut state = self.lock();
        (state.answered, state.wanted, state.error) = (Some(Instant::now()), None, None);
    }

    /// True if the last try has failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.lock().error.is_some()
    }

    /// Waits for so long before another try.
    pub(crate) async fn sleep(&self, pause: Duration) {
        let latest = Instant::now() + pause;
        self.until(latest, tokio::time::sleep_until(latest)).await;
    }

    /// Waits for something that comes at `latest` at the latest.
    pub(crate) async fn until<T>(&self, latest: Instant, event: impl Future<Output = T>) -> T {
        self.lock().phase = Phase::Sleeping(latest);
        let _wait = Wait(self);
        event.await
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::error::StoreErrorKind;

    use super::*;

    fn failed() -> StoreError {
        StoreError::new(StoreErrorKind::Unavailable, "fetch", "é".repeat(600))
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_remembers_answers_failures_and_since_when_one_is_wanted() {
        let health = LoopHealth::default();
        let began = Instant::now();
        let second = Duration::from_secs(1);
        for _ in 0..2 {
            let late = async {
                tokio::time::sleep(second).await;
                Err(failed())
            };
            let failure: Result<(), StoreError> = health.ask(late).await;
            assert!(failure.is_err() && health.state().answered.is_none());
            assert_eq!(health.state().error.map(|(_, error)| error.chars().count()), Some(MAX_REASON_CHARACTERS));
        }
        assert_eq!(health.state().wanted, Some(began), "since the first try");
        let answer: Result<(), StoreError> = health.ask(async { Ok(()) }).await;
        assert!(answer.is_ok() && health.state().error.is_none());
        assert_eq!((health.state().answered, health.state().wanted), (Some(began + 2 * second), None));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_stands_until_all_is_done() {
        let health = LoopHealth::default();
        let failure: Result<(), StoreError> = health.ask_part(async { Err(failed()) }).await;
        let part: Result<(), StoreError> = health.ask_part(async { Ok(()) }).await;
        assert!(failure.is_err() && part.is_ok() && health.is_failing());
        assert!(health.state().answered.is_none(), "it is still wanted");
        health.done();
        assert!(!health.is_failing() && health.state().answered.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_dropped_is_over() {
        let health = LoopHealth::default();
        {
            let ask = health.ask(std::future::pending::<Result<(), StoreError>>());
            let given_up = tokio::time::timeout(Duration::from_secs(1), ask).await;
            assert!(given_up.is_err());
        }
        assert!(matches!(health.state().phase, Phase::Resting));
    }
}
