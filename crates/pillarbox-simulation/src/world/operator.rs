use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::store::{Admin as _, NewPause, Pause, PauseKind, Purge, Purgeable};

use super::World;
use crate::check::Op;

impl World {
    /// Replays some DEAD events, discards others.
    pub(super) async fn operate(&self, all: bool) {
        let dead = self.database.checker().dead();
        let chosen: Vec<i64> = dead.into_iter().filter(|_| all || self.chance.one_in(2)).collect();
        if chosen.is_empty() || !self.database.is_up() {
            return;
        }
        let store = &self.database.store;
        let done: Result<Vec<i64>, StoreError> = if self.chance.one_in(3) {
            self.database.story.tell("operator", format_args!("discards {chosen:?}"));
            self.database.execute(Some(&Op::Discard(chosen.clone())), store.discard(&chosen)).await
        } else {
            self.database.story.tell("operator", format_args!("replays {chosen:?}"));
            self.database.execute(Some(&Op::Replay(chosen.clone())), store.replay(&chosen)).await
        };
        drop(done);
    }

    /// Cancels some pending events, or wants some that wait to be tried now.
    pub(super) async fn control(&self) {
        let pending: Vec<i64> = self.database.checker().pending().map(|line| line.seq).collect();
        let chosen: Vec<i64> = pending.into_iter().filter(|_| self.chance.one_in(3)).collect();
        if chosen.is_empty() || !self.database.is_up() {
            return;
        }
        let store = &self.database.store;
        let done: Result<Vec<i64>, StoreError> = if self.chance.one_in(2) {
            self.database.story.tell("operator", format_args!("cancels {chosen:?}"));
            self.database.execute(Some(&Op::Cancel(chosen.clone())), store.cancel(&chosen)).await
        } else {
            self.database.story.tell("operator", format_args!("wants {chosen:?} to be tried now"));
            self.database.execute(Some(&Op::RetryNow(chosen.clone())), store.retry_now(&chosen)).await
        };
        drop(done);
    }

    /// Pauses an event type or a handler, some for a time, or resumes one.
    pub(super) async fn pause(&self) {
        let store = &self.database.store;
        let paused = store.pauses().await.unwrap_or_default();
        if !self.database.is_up() {
            return;
        }
        if !paused.is_empty() && self.chance.one_in(2) {
            let Some(Pause { kind, name, .. }) = paused.get(self.chance.size(0, paused.len() - 1)) else { return };
            self.resume(*kind, name).await;
            return;
        }
        let (kind, name) = self.chance.pick([
            (PauseKind::Type, "split"),
            (PauseKind::Type, "batch"),
            (PauseKind::Type, "booked"),
            (PauseKind::Type, "plain"),
            (PauseKind::Type, "plain"),
            (PauseKind::Type, "test.foreign"),
            (PauseKind::Handler, "a"),
            (PauseKind::Handler, "b"),
        ]);
        // By a clock that does not jump.
        let is_even = self.plan.faults.clock == 0 && self.plan.faults.go_back == 0;
        let length = (is_even && self.chance.one_in(3)).then(|| self.chance.millis(50, 4000));
        self.database.story.tell("operator", format_args!("pauses the {kind} {name} for {length:?}"));
        let pause = NewPause { length, ..NewPause::new(kind, name) };
        if store.pause(&pause).await.is_ok() {
            self.database.checker().paused(kind, name, length);
        }
    }

    /// Resumes everything.
    pub(super) async fn resume_all(&self) {
        for Pause { kind, name, .. } in self.database.store.pauses().await.unwrap_or_default() {
            self.resume(kind, &name).await;
        }
    }

    async fn resume(&self, kind: PauseKind, name: &str) {
        self.database.story.tell("operator", format_args!("resumes the {kind} {name}"));
        drop(self.database.store.resume(kind, name).await);
        self.database.checker().resumed(kind, name);
    }

    /// Deletes what ended a while ago.
    pub(super) async fn purge(&self) {
        let what = self.chance.pick([Purgeable::Done, Purgeable::Done, Purgeable::Dead]);
        let purge = Purge::new(what, Duration::from_millis(self.chance.between(0, 2000)), 50);
        if self.database.is_up() {
            self.database.story.tell("operator", format_args!("purges {what:?}"));
            drop(self.database.execute(Some(&Op::Purge(what)), self.database.store.purge(&purge)).await);
        }
    }

    /// Ends a prepared transaction.
    pub(super) async fn resolve_prepared(&self) -> bool {
        use std::sync::PoisonError;
        let Some(prepared) = self.database.take_prepared() else { return false };
        let Some(transaction) = prepared.held.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return true;
        };
        if self.chance.one_in(3) {
            self.database.story.tell("operator", format_args!("rolls back the prepared {:?}", prepared.rows));
            transaction.rollback();
        } else {
            self.database.story.tell("operator", format_args!("commits the prepared {:?}", prepared.rows));
            transaction.commit();
            self.database.executed(&Op::Commit(prepared.rows, Vec::new()));
        }
        true
    }
}
