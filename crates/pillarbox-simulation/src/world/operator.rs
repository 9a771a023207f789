use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::store::{Purge, Purgeable, Upkeep as _};

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
