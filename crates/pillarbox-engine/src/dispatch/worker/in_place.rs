//! Events that keep their place until they are delivered: those behind them wait.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::PriorAttempt;
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{FetchedRow, Record, Row};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Delivered, MayBegin, Worker};
use crate::backoff::Backoff;
use crate::handlers::Registered;
use crate::observe::Slot;
use crate::queue::Item;

/// The time after which a row is asked for again that could not be read.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

impl Worker {
    /// Handles an event and, if it has to be tried again, keeps it and the ones behind it waiting, so that none overtakes
    /// it. Its failure is recorded meanwhile, and it is tried again once it is known whether that succeeded: a verdict has to name the state
    /// that its row is in. `None` if the term ends first, and with it this worker.
    ///
    /// `noticed` tells of the interventions that were noticed since before the event was taken.
    pub(super) async fn deliver_in_place(
        &self,
        mut item: Item,
        slot: &Slot,
        noticed: &mut watch::Receiver<u64>,
    ) -> Option<Delivered<'_>> {
        let (mut asked, mut unrecorded) = (None, Backoff::default());
        loop {
            if self.router.limited() > 0 && !Box::pin(self.paced(&item.row, noticed)).await? {
                return Some(self.over_in_place(&item.row));
            }
            match self.may_begin(&item).await {
                MayBegin::Yes => {}
                MayBegin::Lost => return None,
                MayBegin::Paused => {
                    if !Box::pin(self.resumed(&item.row, noticed)).await? {
                        return Some(self.over_in_place(&item.row));
                    }
                }
            }
            let (row, deliverer) = (Arc::clone(&item.row), item.deliverer.clone());
            let mut delivered = self.deliver(Item { row, charge: None, deliverer, ..item }, slot).await;
            let Some(verdict) = delivered.verdicts.next() else {
                // It is recorded, or over. The events behind it are the next owner's, if there is one.
                return (!self.node.lost.is_cancelled()).then_some(delivered);
            };
            let Change::Retry { attempts, delay, error } = verdict.change else { return Some(Some(verdict).into()) };
            let (mut again, mut is_failure_sent) = (Instant::now() + delay, false);
            if let Some(error) = error.filter(|_| attempts > verdict.expected.attempts) {
                let change = Change::RetryInPlace { attempts, error };
                let failure = Verdict { row: item.row.id(), change, ..verdict };
                if self.stands(&failure) {
                    is_failure_sent = true;
                    self.in_flight.begin_retry_in_place();
                    self.verdicts.send(failure).await.ok()?;
                }
            }
            if item.prior_attempt != PriorAttempt::Clean {
                // While it waits it is not being attempted: a crash now would not be its doing.
                self.crashes.withdraw(&self.tenure, &[item.row.id()]).await;
            }
            let mut row = in_state(&item.row, Expected { attempts, ..verdict.expected });
            let is_known = !is_failure_sent
                || self.ending.run_until_cancelled(self.in_flight.wait_for_retry_in_place_recorded()).await?;
            if !is_known {
                let Some(expected) = self.ending.run_until_cancelled(self.state_in_place(&row)).await? else {
                    return Some(self.over_in_place(&row));
                };
                row = in_state(&row, expected);
                // The retry policy does not know of it.
                again += unrecorded.next(&*self.random);
            }
            let wanted = |due: Option<Timestamp>| due.is_some() && std::mem::replace(&mut asked, due) != due;
            let waiting = self.wait_in_place(&row, noticed, tokio::time::sleep_until(again), wanted);
            if !self.ending.run_until_cancelled(waiting).await? {
                return Some(self.over_in_place(&row));
            }
            if self.node.lost.is_cancelled() {
                return None;
            }
            let prior_attempt = self.ending.run_until_cancelled(self.prior_attempt_in_place(&row)).await?;
            item = Item { row, since: Instant::now(), prior_attempt, ..item };
        }
    }

    /// Waits in its place until an event is not paused any more: true then, false if the row is over; `None` if the term ends first.
    async fn resumed(&self, row: &Row, noticed: &mut watch::Receiver<u64>) -> Option<bool> {
        // A wish to try the event now does not resume it.
        let waiting = self.wait_in_place(row, noticed, self.in_flight.pauses().resumed(row), |_| false);
        let is_pending = self.ending.run_until_cancelled(waiting).await?;
        (!self.node.lost.is_cancelled()).then_some(is_pending)
    }

    /// Waits in its place until the rate of its handler allows an event: true then, false if the row is over; `None` if the term ends first.
    async fn paced(&self, row: &Row, noticed: &mut watch::Receiver<u64>) -> Option<bool> {
        let mut is_pending = true;
        if let Ok(Registered { limiter: Some(limiter), .. }) = self.router.find(row) {
            // A wish to try the event now does not lift the limit.
            let waiting = self.wait_in_place(row, noticed, limiter.paced(), |_| false);
            is_pending = self.ending.run_until_cancelled(waiting).await?;
        }
        (!self.node.lost.is_cancelled()).then_some(is_pending)
    }

    /// A row is over, by an operator: the events behind it go on.
    fn over_in_place(&self, row: &Row) -> Delivered<'_> {
        self.in_flight.leave_without_verdict(row.seq);
        None.into()
    }

    /// The record of the earlier attempt of an event that is tried again in its place. If its handler has a transaction, its commit may have
    /// happened though it failed, and the table alone knows: so the next attempt is announced there.
    async fn prior_attempt_in_place(&self, row: &Row) -> PriorAttempt {
        if !self.router.find(row).is_ok_and(Registered::has_transactions) {
            return PriorAttempt::Clean;
        }
        self.in_flight.wait_for_earlier_verdicts(row).await;
        PriorAttempt::Suspect
    }

    /// The announcement of an attempt was refused. The verdict keeps a row in its place that the table has as pending, perhaps in another
    /// state; `None` if it is over.
    pub(super) async fn not_announced(&self, row: &Row) -> Option<Verdict> {
        let expected = self.state_in_place(row).await?;
        let change = Change::Retry { attempts: expected.attempts, delay: RETRY_INTERVAL, error: None };
        Some(Verdict { row: row.id(), expected, change })
    }

    /// The state of a pending row as the table has it; `None` if the row is over, or another event's.
    async fn state_in_place(&self, row: &Row) -> Option<Expected> {
        loop {
            match self.completion.store.record(row.seq).await {
                Ok(record) => return pending(&record?, row).map(|there| there.expected()),
                Err(_unavailable) => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
    }

    /// Waits in its place for `over`, or until an operator has given the row a due time that is `wanted`. False if the row is over, or
    /// another event's. The table is asked when interventions are noticed.
    async fn wait_in_place(
        &self,
        row: &Row,
        noticed: &mut watch::Receiver<u64>,
        over: impl Future<Output = ()>,
        mut wanted: impl FnMut(Option<Timestamp>) -> bool,
    ) -> bool {
        let mut over = pin!(over);
        loop {
            tokio::select! {
                biased;
                () = &mut over => return true,
                Ok(()) = noticed.changed() => {}
            }
            match self.completion.store.record(row.seq).await {
                Ok(Some(record)) if pending(&record, row).is_some() => {
                    if wanted(record.available_at) {
                        return true;
                    }
                }
                Ok(_) => return false,
                Err(_unavailable) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    noticed.mark_changed();
                }
            }
        }
    }
}

/// A row in another state.
fn in_state(row: &Row, Expected { attempts, replays }: Expected) -> Arc<Row> {
    Arc::new(Row { attempts, replays, ..Row::clone(row) })
}

/// The row of a record, if it is pending and still that of the same event and handler.
fn pending(record: &Record, row: &Row) -> Option<Row> {
    match record.to_fetched() {
        FetchedRow::Row(there) if there.status.is_pending() && there.id() == row.id() => Some(there),
        FetchedRow::Row(_) | FetchedRow::Broken(_) => None,
    }
}
