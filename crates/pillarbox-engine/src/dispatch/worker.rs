mod attempt;
mod in_place;
mod positions;
mod transaction;
mod verdict;

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use pillarbox_core::clock::Random;
use pillarbox_core::handle::{BatchHandler, DeliveringNode};
use pillarbox_core::ownership::{NodeMode, PriorAttempt};
use pillarbox_core::planted_bug;
use pillarbox_core::retry::RetryPolicy;
use pillarbox_core::row::{Change, Status, Verdict};
use pillarbox_core::store::{BegunAttempt, Row};
use pillarbox_core::throttle::Throttle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::positions::Positions;
pub(crate) use self::transaction::Completion;
use super::{CrashTracker, ParkLimit};
use crate::claim::OperatorChanges;
use crate::handlers::{Interceptors, Registered, Router, Target, Unroutable, lane};
use crate::observe::{Consequence, Failed, Slot, Telemetry, clean_error};
use crate::queue::{Charge, InFlight, Item};
use crate::settle::AttemptEnd;
use crate::tenure::Tenure;
use crate::type_pause::TypePause;

/// The state that all workers of a term share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) router: Arc<Router>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) policy: Arc<dyn RetryPolicy>,
    pub(crate) max_attempts: u32,
    pub(crate) unroutable: Unroutable,
    pub(crate) park_limit: Arc<ParkLimit>,
    /// The time limit of a call, for handlers that set none.
    pub(crate) handler_timeout: Option<Duration>,
    pub(crate) interceptors: Interceptors,
    pub(crate) tenure: Tenure,
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) crashes: Arc<CrashTracker>,
    pub(crate) type_pause: TypePause,
    pub(crate) operator_changes: Arc<OperatorChanges>,
    /// Cancelled when the term ends: an event that waits in its place for another attempt waits no longer.
    pub(crate) ending: CancellationToken,
    /// The node that delivers, until it may no longer: handlers are told.
    pub(crate) node: Arc<DeliveringNode>,
    /// Cancelled when time is up: running handlers are dropped.
    pub(crate) abandon: CancellationToken,
    pub(crate) completion: Completion,
    pub(crate) positions: Positions,
    /// The throttle of `on_dead` observers that fail.
    pub(crate) complaints: Throttle,
}

impl Worker {
    /// Handles events until the queue is closed and empty.
    pub(crate) async fn run(self: Arc<Self>, slot: Arc<Slot>) {
        let mut noticed = self.operator_changes.noticed();
        loop {
            if self.tenure.mode == NodeMode::Ordered {
                // An intervention noticed before an event is taken says nothing of it.
                noticed.mark_unchanged();
            }
            let Some(item) = self.in_flight.next().await else { return };
            let mut delivering = pin!(async {
                match self.tenure.mode {
                    NodeMode::Ordered => self.deliver_in_place(item, &slot, &mut noticed).await,
                    _ => Some(match self.may_begin(&item).await {
                        MayBegin::Yes => self.deliver(item, &slot).await,
                        MayBegin::Paused => self.leave_paused(&item),
                        MayBegin::Lost => Some(interrupted(&item.row)).into(),
                    }),
                }
            });
            // A handler that ends at once needs no waiting to be arranged, which costs several locks.
            let delivered = match poll!(delivering.as_mut()) {
                Poll::Ready(delivered) => Some(delivered),
                Poll::Pending => self.abandon.run_until_cancelled(delivering).await,
            };
            let Some(Some(Delivered { verdicts, undecided, call })) = delivered else { return };
            for verdict in verdicts {
                if !self.hand_on(verdict).await {
                    return;
                }
            }
            for Undecided { item, registered, attempt } in undecided {
                let deciding = self.conclude(&item, registered, attempt, &slot);
                let Some(verdict) = self.abandon.run_until_cancelled(deciding).await else { return };
                if let Some(verdict) = verdict
                    && !self.hand_on(verdict).await
                {
                    return;
                }
            }
            drop(call);
        }
    }

    /// Hands a verdict on to be recorded; false if nobody records any more. Settling holds back: with too many verdicts waiting to be
    /// recorded, no further event is begun.
    async fn hand_on(&self, verdict: Verdict) -> bool {
        // Before the verdict is recorded: from then on the table tells what may follow.
        if !self.note_decision(verdict.row.seq, Some(&verdict.change)).await || !self.stands(&verdict) {
            return true;
        }
        self.verdicts.send(verdict).await.is_ok()
    }

    /// Decides if a call with this row may begin, by what the database has told less than two seconds ago. To ask it takes time, in which
    /// the right to deliver may end.
    async fn may_begin(&self, item: &Item) -> MayBegin {
        if self.operator_changes.is_stale() {
            Box::pin(self.operator_changes.poll_before_a_call()).await;
            if self.deliverer(item).lost.is_cancelled() {
                return MayBegin::Lost;
            }
        }
        let is_paused =
            self.in_flight.pauses().is_row_paused(&item.row) && !planted_bug::is_active("pauses_unnoticed_in_memory");
        if is_paused { MayBegin::Paused } else { MayBegin::Yes }
    }

    /// Leaves an event in the table that is paused.
    fn leave_paused(&self, item: &Item) -> Delivered<'_> {
        self.in_flight.leave_paused(item);
        None.into()
    }

    /// An event has been decided about; false if the verdict does not count, since its handler was told to stop.
    async fn note_decision(&self, seq: i64, change: Option<&Change>) -> bool {
        let counts = self.in_flight.note_decision(seq, change);
        if !counts {
            // The process lives, so the attempt has not crashed. Before the row is left in the table, for then it may be another node's.
            self.crashes.withdraw_if_announced(&self.tenure, seq).await;
            self.in_flight.leave_without_verdict(seq);
        }
        counts
    }

    /// True if a verdict is worth recording. A handler that fails because it was told to stop has not failed: the next owner
    /// delivers the event.
    fn stands(&self, verdict: &Verdict) -> bool {
        verdict.change.status() == Status::Done || !self.node.lost.is_cancelled()
    }

    /// Handles an event, and where its handler takes batches, what waits right behind it for the same handler.
    ///
    /// Rare paths are boxed, so that the future of the common one stays small: it is copied for every event.
    async fn deliver(&self, item: Item, slot: &Slot) -> Delivered<'_> {
        if item.prior_attempt != PriorAttempt::Clean {
            return Box::pin(self.deliver_suspect(item, slot)).await.into();
        }
        // In order, each event is called alone: the next may begin only when this one is decided.
        let alone = self.tenure.mode == NodeMode::Ordered;
        let found = self.router.find(&item.row);
        if let Ok(Registered { target: Target::Batch { handler, max }, .. }) = found
            && !alone
        {
            return Box::pin(self.deliver_batch(item, found.ok(), &**handler, *max, slot)).await;
        }
        let attempt = self.attempt(&item, found, slot).await;
        self.conclude(&item, found.ok(), attempt, slot).await.into()
    }

    /// Handles an event together with up to `max - 1` others that wait for the same handler.
    async fn deliver_batch<'a>(
        &self,
        item: Item,
        registered: Option<&'a Registered>,
        handler: &dyn BatchHandler,
        max: usize,
        slot: &Slot,
    ) -> Delivered<'a> {
        // Events of one class have one handler and lane, unless there are more of those than classes.
        let lane_of = |item: &Item| lane(handler, &self.delivery(item));
        let lane = item.class.is_shared().then(|| lane_of(&item));
        let is_same = |other: &Item| {
            let found = self.router.find(&other.row).ok().zip(registered);
            found.is_some_and(|(other, own)| std::ptr::eq(other, own)) && Some(lane_of(other)) == lane
        };
        let pauses = self.in_flight.pauses();
        let may_begin = |other: &Item| other.prior_attempt == PriorAttempt::Clean && !pauses.is_row_paused(&other.row);
        let same = |other: &Item| may_begin(other) && (lane.is_none() || is_same(other));
        let class = item.class;
        let mut items = vec![item];
        items.extend(self.in_flight.more(class, max - 1, same));
        let attempts = self.attempt_batch(handler, &items, registered, slot).await;
        let call = items.first_mut().and_then(|item| item.charge.take());
        let (mut done, mut undecided) = (Vec::with_capacity(items.len()), Vec::new());
        for (item, attempt) in items.into_iter().zip(attempts) {
            match self.positions.delivered(&item.row, attempt) {
                Ok(change) => done.push(verdict_on(&item.row, change)),
                Err(attempt) => undecided.push(Undecided { item, registered, attempt }),
            }
        }
        let call = call.filter(|_| !undecided.is_empty());
        Delivered { verdicts: Verdicts::Many(done.into_iter()), undecided, call }
    }

    /// Handles an event that its last node may have died of. The attempt is announced in the table first; if an announced
    /// one never ended, it counts.
    async fn deliver_suspect(&self, item: Item, slot: &Slot) -> Option<Verdict> {
        let crashed = item.prior_attempt == PriorAttempt::Crashed;
        let attempts = item.row.attempts.saturating_add(u32::from(crashed));
        let error = crashed.then(|| format!("the process ended during attempt {attempts}"));
        let found = self.router.find(&item.row);
        let max_attempts = self.rules(found.ok()).max_attempts;
        // No fallback: should it be what ended the process, it would end every further one.
        if let Some(error) = error.as_ref().filter(|_| attempts >= max_attempts) {
            let error = clean_error(error);
            let failed = Failed::new(&item.row, Some(attempts), None, error.clone());
            self.telemetry.failures.report(Consequence::Dead, failed);
            return Some(verdict_on(&item.row, Change::Dead { attempts, error }));
        }
        // Rows that have been through a crash run one at a time. Until what became of the last one is recorded, the table says that it has
        // begun, and another crash would count for it too.
        if attempts > 0 {
            self.in_flight.wait_for_previous_suspect(item.row.seq).await;
        }
        if attempts > 0 && self.tenure.mode != NodeMode::Ordered {
            match self.may_begin(&item).await {
                MayBegin::Yes => {}
                MayBegin::Paused => {
                    self.in_flight.leave_paused(&item);
                    return None;
                }
                MayBegin::Lost => return Some(interrupted(&item.row)),
            }
        }
        if let Some(error) = &error {
            let failed = Failed::new(&item.row, Some(attempts), Some(Duration::ZERO), error.clone());
            self.telemetry.failures.report(Consequence::Retried, failed);
        }
        let announced = BegunAttempt { row: item.row.id(), expected: item.row.expected(), attempts, error };
        if !self.crashes.announce(&self.tenure, &announced, &*self.random).await {
            if self.tenure.mode == NodeMode::Ordered
                && let Some(kept) = self.not_announced(&item.row).await
            {
                return Some(kept);
            }
            self.in_flight.remove(vec![item.row.seq]);
            self.note_decision(item.row.seq, None).await;
            return None;
        }
        let row = Arc::new(Row { attempts, ..Row::clone(&item.row) });
        let item = Item { row, ..item };
        if self.deliverer(&item).lost.is_cancelled() {
            // The right to deliver ended during the announcement, and another node may have the event by now. As if the handler had
            // stopped when it was told to: nothing is recorded.
            return Some(interrupted(&item.row));
        }
        let attempt = self.attempt(&item, found, slot).await;
        self.conclude(&item, found.ok(), attempt, slot).await
    }
}

/// The answer to the question if a call with an event may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MayBegin {
    Yes,
    /// Its type or handler is paused.
    Paused,
    /// The right to deliver it has ended.
    Lost,
}

/// The verdict on an event whose delivery was interrupted, as if its handler had stopped when it was told to: it is not recorded.
fn interrupted(row: &Row) -> Verdict {
    verdict_on(row, Change::Retry { attempts: row.attempts, delay: Duration::ZERO, error: None })
}

/// The outcome of one turn of a worker.
struct Delivered<'a> {
    verdicts: Verdicts,
    /// Events of a batch that have not been handled. They are decided about once the verdicts on the others are on their way: fallbacks take
    /// their time, and the end of a term may cut it short.
    undecided: Vec<Undecided<'a>>,
    /// The worker that the call takes up until all of them are decided about.
    call: Option<Charge>,
}

impl From<Option<Verdict>> for Delivered<'_> {
    fn from(verdict: Option<Verdict>) -> Self {
        Self { verdicts: Verdicts::One(verdict), undecided: Vec::new(), call: None }
    }
}

/// An event after an attempt that has not handled it.
struct Undecided<'a> {
    item: Item,
    registered: Option<&'a Registered>,
    attempt: AttemptEnd,
}

/// A verdict on a row in the state that it was delivered in.
fn verdict_on(row: &Row, change: Change) -> Verdict {
    Verdict { row: row.id(), expected: row.expected(), change }
}

/// The verdicts of one turn; of a single event without an allocation.
#[derive(Debug)]
enum Verdicts {
    One(Option<Verdict>),
    Many(std::vec::IntoIter<Verdict>),
}

impl Iterator for Verdicts {
    type Item = Verdict;

    fn next(&mut self) -> Option<Verdict> {
        match self {
            Self::One(verdict) => verdict.take(),
            Self::Many(verdicts) => verdicts.next(),
        }
    }
}
