use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::Fence;
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::{BrokenRow, Fetch, Fetched, FetchedRow, History, Row, Store};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{FetchSize, MIN_FRUITLESS_PAUSE, SafePoint};
use crate::backoff::{Backoff, jittered};
use crate::config::ClaimConfig;
use crate::observe::{Consequence, Failed, FailureLog, Telemetry, clean_error};
use crate::poll_schedule::PollSchedule;
use crate::queue::Limits;
use crate::tenure::Tenure;
use crate::type_pause::{Paused, SeenTypes, TypePause};

/// The way to the table, and the part of a poller's position that is the same in every mode: the safe point, of which history of the
/// database it is, which types are paused, how much to ask for, and when to poll again.
#[derive(Debug)]
pub(crate) struct ReadCursor {
    pub(super) store: Arc<dyn Store>,
    pub(super) tenure: Tenure,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) poll_schedule: Arc<PollSchedule>,
    pub(super) random: Arc<dyn Random>,
    pub(super) config: ClaimConfig,
    pub(super) type_pause: TypePause,
    safe_point: SafePoint,
    /// The database history to which the cursor's knowledge belongs.
    history: History,
    /// The types that were paused at the last poll.
    seen: SeenTypes,
    size: FetchSize,
    /// The last read brought only what was left in the table, and would bring it again; how long it took.
    in_vain: Option<Duration>,
    interval: Duration,
    next_poll: Instant,
    failing: Backoff,
}

impl ReadCursor {
    /// A cursor of a term that begins: the first poll is due at once.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        tenure: Tenure,
        telemetry: Arc<Telemetry>,
        poll_schedule: Arc<PollSchedule>,
        random: Arc<dyn Random>,
        config: ClaimConfig,
        type_pause: TypePause,
    ) -> Self {
        Self {
            store,
            tenure,
            telemetry,
            poll_schedule,
            random,
            type_pause,
            safe_point: SafePoint::default(),
            history: History::default(),
            seen: SeenTypes::default(),
            size: FetchSize::new(Limits { rows: config.batch, bytes: usize::MAX }),
            in_vain: None,
            interval: config.min_interval,
            next_poll: Instant::now(),
            failing: Backoff::default(),
            config,
        }
    }

    /// Sets whether delivered rows are deleted.
    pub(crate) fn with_delete_done(mut self, deletes_done: bool) -> Self {
        self.safe_point = SafePoint::new(deletes_done);
        self
    }

    /// The safe point: of the rows up to this `seq`, a fetch that begins now sees all that will ever be there.
    pub(super) fn safe_seq(&self) -> i64 {
        self.safe_point.safe_seq()
    }

    /// Moves the safe point up, if the database says so. True if it moved down, since numbers may have begun anew: then all has to be read
    /// from the bottom.
    pub(super) async fn advance_safe_point(&mut self) -> Result<bool, StoreError> {
        let before = self.safe_seq();
        self.telemetry.loops.poll.ask_part(self.safe_point.advance(&*self.store)).await?;
        Ok(self.safe_seq() < before)
    }

    /// Forgets the safe point if the database may be in an older state than the one known here. True if so: then all has to be read from
    /// the bottom.
    pub(super) fn forget_if_history_changed(&mut self) -> bool {
        let history = self.store.history();
        if history == self.history {
            return false;
        }
        self.history = history;
        self.safe_point.forget();
        true
    }

    /// The types that are paused at `now`. If one is resumed, all has to be read from the bottom, where its rows may be.
    pub(super) fn paused(&mut self, now: Instant) -> Paused {
        let paused = self.type_pause.paused(&mut self.seen, now);
        if let Some(next) = paused.next {
            self.poll_schedule.due_in(next.saturating_duration_since(Instant::now()));
        }
        paused
    }

    /// Waits for an answer to a call that a read takes besides its fetch.
    pub(super) async fn ask<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.telemetry.loops.poll.ask_part(call).await
    }

    /// The size of the next fetch, with so much room.
    pub(super) fn size(&self, room: Limits) -> Limits {
        self.size.within(room)
    }

    /// Asks the database, which claims the rows where nodes share them. `None` if what was read is of another history than what is in
    /// memory: then the term ends, and nothing is left to do but to wait for that.
    pub(super) async fn fetch(&self, fetch: &Fetch) -> Result<Option<Fetched>, StoreError> {
        let Self { store, tenure, telemetry, .. } = self;
        let lease = tenure.history_guard.mark();
        let call = match tenure.fence() {
            Fence::Table | Fence::Partition => store.fetch(fetch),
            Fence::Row => store.claim(&tenure.node, fetch),
        };
        let call = call.instrument(tracing::debug_span!("claim", above = fetch.above, limit = fetch.limit));
        let call = telemetry.meters.claim.measure(call, |fetched| fetched.rows.len());
        let fetched = telemetry.loops.poll.ask_part(call).await?;
        let follows = fetch.scope.is_none() || tenure.history_guard.check_mark(lease, fetched.lease);
        debug_assert!(fetched.rows.len() <= fetch.limit, "I7: a fetch returns at most its limit");
        Ok(Some(fetched).filter(|_| tenure.history_guard.check_history() && follows))
    }

    /// A fetch of `asked`, begun at `began`, has brought these rows.
    pub(super) fn answered(&mut self, asked: Limits, rows: &[FetchedRow], began: Instant) {
        let returned = Limits { rows: rows.len(), bytes: rows.iter().map(FetchedRow::content_bytes).sum() };
        self.size.answered(asked, returned, began.elapsed());
    }

    /// Rows were read for which there was no place, and the next read would bring them again.
    pub(super) fn read_in_vain(&mut self, took: Duration) {
        self.in_vain = Some(took);
    }

    /// A read has succeeded, with an answer of the database if it was `asked`. Waits if the next would bring the same rows: at most half of
    /// the time is spent so.
    pub(super) async fn succeeded(&mut self, asked: bool) {
        if asked {
            self.telemetry.loops.poll.done();
            if self.failing.end() {
                tracing::info!("the outbox table can be read again");
            }
        }
        if let Some(took) = self.in_vain.take() {
            self.telemetry.loops.poll.sleep(took.max(MIN_FRUITLESS_PAUSE)).await;
        }
    }

    /// A read of `asked`, begun at `began`, has failed. Waits until it is time to try again.
    pub(super) async fn failed(&mut self, error: &StoreError, asked: Limits, began: Instant) {
        self.size.failed(asked, began.elapsed());
        if self.failing.is_first() {
            tracing::warn!(%error, "the outbox table cannot be read; trying again until it can");
        }
        self.telemetry.loops.poll.sleep(self.failing.next(&*self.random)).await;
    }

    /// The time of the next routine poll.
    pub(super) fn next_poll(&self) -> Instant {
        self.next_poll
    }

    /// Plans the next routine poll: soon if the last one `found` something, and later each time if not.
    pub(super) fn plan_poll(&mut self, found: bool) {
        let ClaimConfig { min_interval, max_interval, .. } = self.config;
        self.interval = if found { min_interval } else { (self.interval * 2).min(max_interval) };
        self.next_poll = Instant::now() + jittered(self.interval, &*self.random);
    }

    /// There may be more to find than before: the interval begins anew.
    pub(super) fn expect_more(&mut self) {
        self.interval = self.config.min_interval;
    }

    /// Parts the rows that were admitted into events and rows that make none, each with its verdict.
    pub(super) fn sort_out(
        &self,
        rows: Vec<FetchedRow>,
        admitted: &[bool],
    ) -> (Vec<Arc<Row>>, Vec<(BrokenRow, Verdict)>) {
        self.poll_schedule.found(rows.iter().map(FetchedRow::seq));
        let (mut events, mut broken) = (Vec::with_capacity(rows.len()), Vec::new());
        for (row, _) in rows.into_iter().zip(admitted).filter(|(_, admitted)| **admitted) {
            match row {
                FetchedRow::Row(row) => events.push(Arc::new(row)),
                FetchedRow::Broken(row) => {
                    let verdict = dead_letter(&row, &self.telemetry.failures);
                    broken.push((row, verdict));
                }
            }
        }
        (events, broken)
    }
}

/// A row that makes no event goes DEAD by itself, so that it stops nobody else.
fn dead_letter(row: &BrokenRow, failures: &FailureLog) -> Verdict {
    let error = clean_error(&format!("the row is not an event: {}", row.reason));
    failures.report(Consequence::Dead, Failed::broken(row, error.clone()));
    Verdict { row: row.id(), expected: row.expected(), change: Change::Dead { attempts: row.attempts, error } }
}
