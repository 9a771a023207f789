//! Calls of handlers that work in the transaction in which their event becomes DONE.

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::handle::{BegunTransaction, Delivery, EventCompletion, Handling, Outcome, TransactionalHandler};
use pillarbox_core::hash::HashSet;
use pillarbox_core::planted_bug;
use pillarbox_core::row::Change;
use pillarbox_core::store::{Row, Store};
use pillarbox_core::throttle::Throttle;
use pillarbox_core::write::OpenTransactions;
use tokio::sync::Semaphore;

use super::attempt::limited;
use super::{Worker, verdict_on};
use crate::backoff::Backoff;
use crate::handlers::guarded;
use crate::observe::{Counters, Slot};
use crate::queue::Item;
use crate::settle::AttemptEnd;

/// The means to complete an event in a transaction of its handler's.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) open: Arc<OpenTransactions>,
    /// True if the rows of delivered events are deleted.
    pub(crate) delete_done: bool,
    /// The turn of handlers on a database of one writer.
    pub(crate) turn: Option<Semaphore>,
    /// The throttle of commits that failed, which are worth a line in the log, but not one for every event.
    pub(crate) complaints: Throttle,
}

impl Worker {
    /// Calls a handler in a transaction, and commits the event's completion with it.
    pub(super) async fn in_transaction(
        &self,
        handler: &dyn TransactionalHandler,
        item: &Item,
        delivery: Delivery,
        limit: Option<Duration>,
        slot: &Slot,
    ) -> AttemptEnd {
        let (row, items) = (&item.row, std::slice::from_ref(item));
        let _turn = match &self.completion.turn {
            Some(turn) => turn.acquire().await.ok(),
            None => None,
        };
        let Some(begun) = self.begin_transaction(handler, item, limit, slot).await else { return AttemptEnd::NotBegun };
        let (ready, outcome) = match self.handling(items, limit, slot, || begun.handle(delivery)).await {
            Ok(Ok(Handling::Done { ready, outcome })) => (ready, outcome),
            Ok(Ok(Handling::Otherwise(outcome))) => return AttemptEnd::Ended(Ok(outcome)),
            Ok(Err(error)) => return AttemptEnd::Ended(Err(error)),
            Err(broken) => return broken.into(),
        };
        let completion = EventCompletion {
            store: Arc::clone(&self.completion.store),
            node: self.tenure.node.clone(),
            fence: self.tenure.fence(),
            verdict: verdict_on(row, self.done(row, outcome)),
        };
        if !planted_bug::is_active("transaction_frees_its_key_unannounced") {
            self.in_flight.completing(row.seq);
        }
        let commit = guarded(|| ready.commit(completion));
        match limited("the commit of the handler's transaction", items, limit, slot, commit).await {
            Ok(Ok(())) => AttemptEnd::Recorded,
            Ok(Err(error)) => self.commit_uncertain(row, error.text()),
            Err(broken) => self.commit_uncertain(row, broken.to_string()),
        }
    }

    /// A handler's transaction was not committed, or its commit is unknown.
    fn commit_uncertain(&self, row: &Row, error: String) -> AttemptEnd {
        if let Some(events) = self.completion.complaints.report(1) {
            let (event_id, event_type) = (row.event.id().as_str(), row.event.event_type());
            tracing::warn!(
                event_id,
                event_type,
                events,
                error,
                "a handler's transaction was not committed; the event is handled again"
            );
        }
        AttemptEnd::CommitUncertain(error)
    }

    /// Begins a transaction for an event, sooner or later; `None` if the right to deliver it ends before, or if it could not be begun and
    /// the term is ending. The event keeps its place meanwhile: its handler has not been called, so nothing of its key may be called
    /// before it.
    async fn begin_transaction<'a>(
        &'a self,
        handler: &'a dyn TransactionalHandler,
        item: &Item,
        limit: Option<Duration>,
        slot: &Slot,
    ) -> Option<Box<dyn BegunTransaction + 'a>> {
        let begin = async {
            // On a database of one writer, nothing could be recorded while the transaction is open.
            if !planted_bug::is_active("transaction_overtakes_verdicts") {
                self.in_flight.wait_for_earlier_verdicts(&item.row).await;
            }
            let mut backoff = Backoff::default();
            loop {
                let begin = guarded(|| handler.begin(&self.completion.open, self.completion.store.mark_transaction()));
                let what = "the begin of the handler's transaction";
                let error: BoxError = match limited(what, std::slice::from_ref(item), limit, slot, begin).await {
                    Ok(Ok(begun)) => return Some(begun),
                    Ok(Err(error)) => error,
                    Err(broken) => broken.to_string().into(),
                };
                if backoff.is_first() {
                    tracing::warn!(
                        event_id = item.row.event.id().as_str(),
                        error,
                        "a handler's transaction cannot be begun; trying again"
                    );
                }
                self.ending.run_until_cancelled(tokio::time::sleep(backoff.next(&*self.random))).await?;
            }
        };
        self.deliverer(item).lost.run_until_cancelled(begin).await?
    }

    /// Leaves an event whose handler was not called, and what waits behind it, to the next owner.
    pub(super) async fn leave_uncalled(&self, row: &Row) {
        self.crashes.withdraw_if_announced(&self.tenure, row.seq).await;
        self.in_flight.leave_in_table(row);
    }

    /// An event was completed by its handler's transaction.
    pub(super) fn recorded(&self, row: &Row) {
        let verdict = verdict_on(row, Change::Done);
        Counters::add(&self.telemetry.counters.done, 1);
        if self.in_flight.note_decision(row.seq, Some(&verdict.change)) {
            self.in_flight.recorded(&[verdict], &HashSet::default(), true, || false);
        } else {
            self.in_flight.leave_without_verdict(row.seq);
        }
    }

    fn done(&self, row: &Row, outcome: Outcome) -> Change {
        if self.completion.delete_done { Change::Remove } else { self.positions.done(row, outcome) }
    }
}
