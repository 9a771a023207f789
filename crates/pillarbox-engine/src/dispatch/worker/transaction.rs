//! Calls of handlers that work in the transaction in which their event becomes DONE.

use std::sync::Arc;

use pillarbox_core::handle::{Delivery, Handling, TransactionalHandler};
use pillarbox_core::hash::HashSet;
use pillarbox_core::plants;
use pillarbox_core::row::Change;
use pillarbox_core::store::{Row, Store};
use pillarbox_core::write::OpenTransactions;

use super::{Worker, verdict_on};
use crate::observe::Counters;
use crate::settle::Attempt;

/// The means to complete an event in a transaction of its handler's.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) open: Arc<OpenTransactions>,
    /// True if the rows of delivered events are deleted.
    pub(crate) delete_done: bool,
}

impl Worker {
    /// Calls a handler in a transaction, and commits the event's completion with it.
    pub(super) async fn in_transaction(
        &self,
        handler: &dyn TransactionalHandler,
        row: &Row,
        delivery: Delivery,
    ) -> Attempt {
        // Before it begins: on a database of one writer, nothing could be recorded while it is open.
        if !plants::is("transaction_overtakes_verdicts") {
            self.in_flight.earlier_recorded(row).await;
        }
        let ready = match handler.handle(delivery, &self.completion.open).await {
            Ok(Handling::Done(ready)) => ready,
            Ok(Handling::Otherwise(outcome)) => return Attempt::Ended(Ok(outcome)),
            Err(error) => return Attempt::Ended(Err(error)),
        };
        let verdict = verdict_on(row, self.done());
        let completion = self.completion.store.complete(&self.tenure.node, self.tenure.fence(), &verdict);
        match ready.commit(&completion).await {
            Ok(()) => Attempt::Recorded,
            Err(error) => Attempt::Ended(Err(error)),
        }
    }

    /// An event was completed by its handler's transaction.
    pub(super) fn recorded(&self, row: &Row) {
        let verdict = verdict_on(row, self.done());
        Counters::add(&self.telemetry.counters.done, 1);
        if self.in_flight.decided(row.seq, Some(&verdict.change)) {
            self.in_flight.recorded(&[verdict], &HashSet::default(), true, || false);
        } else {
            self.in_flight.let_go(row.seq);
        }
    }

    fn done(&self) -> Change {
        if self.completion.delete_done { Change::Remove } else { Change::Done }
    }
}
