use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::{Fence, NodeMode, PriorAttempt};
use pillarbox_core::planted_bug;
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{Fetch, FetchScope, Fetched, FetchedRow, Heads, Row, RowId, highest_seq};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::passed_over::{ClassToRead, PassedOver};
use super::sweep::{FetchOutcome, Sweep};
use super::{MAX_WAIT_FOR_ROOM, ReadCursor, SLOW_FETCH, promote_due};
use crate::observe::Counters;
use crate::operator_pauses::LeftOut;
use crate::queue::{Class, FetchGuard, InFlight, Limits, Pushed, ReadyQueue, Suspects};

/// The longest time that a claim under way is waited for at the end.
const LAST_CLAIM_TIMEOUT: Duration = Duration::from_secs(1);
/// The same once the time of the handlers is over: less than the tasks of a term may take to end then.
const ABANDONED_CLAIM_TIMEOUT: Duration = Duration::from_millis(300);

/// Reads pending rows into the cold queue, as many as fit, for as long as this node owns them.
#[derive(Debug)]
pub(crate) struct Poller {
    pub(crate) cursor: ReadCursor,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) queue: Arc<ReadyQueue>,
    pub(crate) passed: PassedOver,
    /// The rows that the last claim took and that were not admitted, since they may have changed.
    pub(crate) not_admitted: Vec<RowId>,
    /// The last fetch was for a class that is passed over.
    pub(crate) read_passed: bool,
    /// The number of times that memory had begun anew when the table was last read.
    pub(crate) invalidations: u64,
    /// The number of interventions by operators that the last fetch has seen, where all events are delivered in the order of the table.
    pub(crate) interventions: i64,
    /// Rows still to be read that the owner before may have died of.
    pub(crate) suspects: Suspects,
    /// The channel for the verdicts on rows that make no event.
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) stop: CancellationToken,
    /// Cancelled when nothing is waited for any more.
    pub(crate) abandon: CancellationToken,
}

impl Poller {
    /// Runs until it is told to stop.
    pub(crate) async fn run(mut self) {
        self.poll().await;
        self.release_not_admitted().await;
    }

    async fn poll(&mut self) {
        let stop = self.stop.clone();
        // A term begins with a poll: the rows that the owner before left behind are due now.
        if self.suspects.left > 0 {
            let Some(highest) = stop.run_until_cancelled(highest_seq(&*self.cursor.store)).await else { return };
            self.suspects.up_to = highest;
        }
        let mut sweep = if self.is_in_order() { Sweep::in_order() } else { Sweep::new() };
        sweep.begin(None, true, Instant::now());
        loop {
            let Some(job) = stop.run_until_cancelled(self.job(&mut sweep)).await else { return };
            let paused = self.cursor.paused(Instant::now());
            // A later pause has memory begin anew once more.
            let invalidations = self.in_flight.invalidations();
            let left_out = self.left_out(paused.types);
            let is_anew = std::mem::replace(&mut self.invalidations, invalidations) != invalidations;
            if paused.resumed || is_anew {
                self.start_over(&mut sweep);
            }
            let (began, size) = (Instant::now(), self.cursor.size(job.room()));
            let reading_ends = self.reading_ends();
            let read = tokio::select! {
                read = self.read(&mut sweep, job, size, left_out, began) => read,
                () = reading_ends => return,
            };
            let pausing = async {
                match read {
                    Ok(found) => {
                        self.cursor.succeeded(true).await;
                        if matches!(job, Job::Sweep(_)) {
                            self.cursor.plan_poll(found);
                        }
                    }
                    Err(error) => self.cursor.failed(&error, size, began).await,
                }
            };
            if stop.run_until_cancelled(pausing).await.is_none() {
                return;
            }
        }
    }

    /// Waits until a read that is under way has to be dropped: once this is told to stop, since a fetch holds nothing in the database. A
    /// claim does, so its answer is waited for: what it takes is known then, and is released when the term ends. Otherwise those rows would
    /// stay with a node that is gone until another one looks for such.
    fn reading_ends(&self) -> impl Future<Output = ()> + use<> {
        let (stop, abandon, tenure) = (self.stop.clone(), self.abandon.clone(), self.cursor.tenure.clone());
        async move {
            stop.cancelled().await;
            if tenure.fence() == Fence::Row
                && !tenure.history_guard.is_lost()
                && abandon.run_until_cancelled(tokio::time::sleep(LAST_CLAIM_TIMEOUT)).await.is_none()
            {
                tokio::time::sleep(ABANDONED_CLAIM_TIMEOUT).await;
            }
        }
    }

    /// True if all events are delivered in the order of the table.
    fn is_in_order(&self) -> bool {
        self.cursor.tenure.mode == NodeMode::Ordered
    }

    /// The types and handlers to leave in the table: those of `routes` that are paused, and those that operators have paused. Where all
    /// events are delivered in the order of the table, paused events are read: the later ones wait for them.
    fn left_out(&self, routes: Vec<Box<str>>) -> LeftOut {
        let LeftOut { version, mut types, mut handlers } = self.in_flight.pauses().left_out();
        if self.is_in_order() {
            types.clear();
            handlers.clear();
        }
        types.extend(routes);
        LeftOut { version, types, handlers }
    }

    /// Waits for something to read and for room, and begins a sweep if none is under way.
    async fn job(&mut self, sweep: &mut Sweep) -> Job {
        let latest = self.cursor.next_poll();
        let shares = Arc::clone(self.queue.shares());
        let mut full_since = None;
        loop {
            let room = shares.fetch_room();
            // In turns, if there is something of both.
            let is_late = Instant::now() >= latest && !planted_bug::is_active("wake_up_without_fallback");
            let is_due = room.is_some() && (sweep.is_under_way() || is_late);
            if let Some(wanted) = self.passed.class_to_read(&shares)
                && !(is_due && self.read_passed)
            {
                self.read_passed = true;
                return Job::Passed(wanted);
            }
            let Some(room) = room else {
                let pass_over_at = *full_since.get_or_insert_with(Instant::now) + MAX_WAIT_FOR_ROOM;
                tokio::select! {
                    () = shares.freed(true) => {}
                    () = tokio::time::sleep_until(pass_over_at), if shares.is_divided() => {
                        for class in shares.pass_over() {
                            self.passed.left(class, sweep.above());
                        }
                        full_since = None;
                    }
                }
                continue;
            };
            full_since = None;
            if sweep.is_under_way() {
                self.read_passed = false;
                return Job::Sweep(room);
            }
            let (telemetry, poll_schedule) =
                (Arc::clone(&self.cursor.telemetry), Arc::clone(&self.cursor.poll_schedule));
            tokio::select! {
                poll = telemetry.loops.poll.until(latest, poll_schedule.wait(latest)) => {
                    let now = Instant::now();
                    sweep.begin(poll.lowest, poll.anywhere || now >= latest, now);
                    if sweep.above() == 0 {
                        self.passed.start_over();
                    }
                }
                // When it is time for a poll, nothing else counts.
                () = shares.freed(false), if !is_late => {}
            }
        }
    }

    /// Fetches once; true if anything new was found.
    async fn read(
        &mut self,
        sweep: &mut Sweep,
        job: Job,
        size: Limits,
        left_out: LeftOut,
        began: Instant,
    ) -> Result<bool, StoreError> {
        self.restart_if_history_changed(sweep);
        let (in_flight, safe_seq) = (Arc::clone(&self.in_flight), self.cursor.safe_seq());
        let fetching = in_flight.begin_fetch();
        if left_out.version != in_flight.pauses().version() {
            self.start_over(sweep);
            return Ok(true);
        }
        let fetch = self.aim(sweep, job, &fetching, size, left_out);
        let excluded = fetch.exclude.iter().min().copied();
        let Some(Fetched { mut rows, truncated, next_due, interventions, .. }) = self.cursor.fetch(&fetch).await?
        else {
            drop(fetching);
            return std::future::pending().await;
        };
        let has_intervened = self.restart_if_intervened(sweep, interventions);
        if self.restart_if_history_changed(sweep) || has_intervened || fetching.is_called_off() {
            // The rows may have changed since. Those that it has claimed are this node's, and are claimed again.
            if self.cursor.tenure.fence() == Fence::Row {
                self.not_admitted = rows.iter().map(FetchedRow::id).collect();
            }
            self.start_over(sweep);
            return Ok(true);
        }
        let full = truncated || rows.len() >= fetch.limit;
        if self.is_in_order() && !self.arrange(&mut rows, full).await? {
            self.start_over(sweep);
            return Ok(true);
        }
        self.cursor.answered(size, &rows, began);
        if let Some(delay) = next_due {
            self.cursor.poll_schedule.due_in(delay);
        }
        let untimed = || rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq);
        let (read, took) = (untimed().min().zip(untimed().max()), began.elapsed());
        let admitted = fetching.admit(rows.iter().map(|row| (row.id(), row.is_timed(), None)));
        self.not_admitted.clear();
        let class = job.class();
        let before = self.position(sweep, class);
        let (queued, left) = self.queue(rows, &admitted, class, fetching).await;
        match job {
            Job::Sweep(_) => {
                let left = !left.is_empty();
                sweep.advance(FetchOutcome { read, excluded, full, safe_seq, took, left }, Instant::now());
            }
            Job::Passed(wanted) => {
                let seen = if full { read.map(|(_, highest)| highest) } else { Some(i64::MAX) };
                self.note_read_passed(sweep, wanted, left.get(&wanted.class).copied(), seen);
            }
        }
        if full && !queued && !left.is_empty() && self.position(sweep, class) == before {
            self.cursor.read_in_vain(took);
        }
        if took > SLOW_FETCH || !left.is_empty() {
            self.cursor.advance_safe_point().await?;
        }
        // Rows that are in memory already are no reason to poll again soon.
        Ok(queued)
    }

    /// Releases rows that were claimed and not admitted, and that this node does not claim again.
    async fn release_not_admitted(&self) {
        if self.not_admitted.is_empty() {
            return;
        }
        let releasing = self.cursor.store.release(&self.cursor.tenure.node, &self.not_admitted);
        match timeout(LAST_CLAIM_TIMEOUT, releasing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the rows of the last claim could not be released; other nodes reclaim them");
            }
            Err(_elapsed) => {
                tracing::warn!("releasing the rows of the last claim took too long; other nodes reclaim them");
            }
        }
    }

    /// The fetch to make for a job.
    fn aim(&self, sweep: &Sweep, job: Job, fetching: &FetchGuard<'_>, size: Limits, left_out: LeftOut) -> Fetch {
        // Behind the cursor only rows with a due time can be met again; a claim meets its own anywhere, since rows from
        // memory are its own as well.
        let fence = self.cursor.tenure.fence();
        let goes_on = matches!(job, Job::Sweep(_)) && sweep.cursor().is_some() && fence == Fence::Table;
        let exclude = fetching.exclude(if goes_on { i64::MAX } else { i64::MIN });
        let above = match job {
            Job::Sweep(_) => sweep.above(),
            Job::Passed(wanted) => wanted.above,
        };
        let LeftOut { types: mut without_types, handlers: without_handlers, .. } = left_out;
        without_types.extend(self.passed.types(job.class()).map(Box::from));
        let Limits { rows: limit, bytes: max_bytes } = size;
        Fetch { above, exclude, limit, max_bytes, scope: self.scope(), without_types, without_handlers }
    }

    /// Puts the rows of a fetch into the order of the table; false if they have to be read again. Rows whose time has come are read by that
    /// time: where they are more than a fetch takes, those that it took get their place by `seq`, and what it left out may be below all of them.
    async fn arrange(&self, rows: &mut Vec<FetchedRow>, full: bool) -> Result<bool, StoreError> {
        let ReadCursor { store, poll_schedule, .. } = &self.cursor;
        if full && self.cursor.ask(promote_due(&**store, poll_schedule, rows, |_| true)).await? {
            return Ok(false);
        }
        rows.sort_unstable_by_key(FetchedRow::seq);
        Ok(true)
    }

    /// A class that is passed over has been read up to `seen`; `left` is the lowest row that had no place.
    fn note_read_passed(&mut self, sweep: &mut Sweep, wanted: ClassToRead, left: Option<i64>, seen: Option<i64>) {
        let reached = sweep.cursor().unwrap_or(i64::MAX);
        match (left, seen) {
            // One with a due time may have been left that stands far above what was read.
            (Some(lowest), seen) => {
                let read = seen.unwrap_or(wanted.above).max(wanted.above);
                self.passed.read(wanted.class, lowest.saturating_sub(1).min(read));
            }
            (None, Some(seen)) if seen < reached && seen > wanted.above => self.passed.read(wanted.class, seen),
            // From here on the sweep reads its events with the others.
            (None, _) => {
                self.passed.caught_up(wanted.class);
                self.queue.shares().caught_up(wanted.class);
                // Rows that were being released when it was its turn were not seen.
                sweep.note_nothing_passed();
                self.cursor.poll_schedule.wake_for_any();
            }
        }
    }

    /// The place up to which a class that is passed over has been read, or else the sweep.
    fn position(&self, sweep: &Sweep, class: Option<Class>) -> (Option<i64>, i64) {
        match class {
            Some(class) => (self.passed.above(class), 0),
            None => (sweep.cursor(), sweep.above()),
        }
    }

    /// Queues rows that were admitted. Returns whether there were any, and of each class the lowest that was left in the table.
    async fn queue(
        &mut self,
        rows: Vec<FetchedRow>,
        admitted: &[bool],
        reading: Option<Class>,
        fetching: FetchGuard<'_>,
    ) -> (bool, BTreeMap<Class, i64>) {
        let (events, broken) = self.cursor.sort_out(rows, admitted);
        let mut queued = !broken.is_empty();
        let with_prior_attempt = |row: Arc<Row>| {
            let prior_attempt = self.prior_attempt(&row);
            (row, prior_attempt)
        };
        let good: Vec<_> = events.into_iter().map(with_prior_attempt).collect();
        let read = good.len();
        let pushed = self.queue.push_cold(good, reading, || fetching.is_called_off());
        drop(fetching);
        for (_, verdict) in broken {
            // The channel closes only when the term is over; the row then stays as it is.
            drop(self.verdicts.send(verdict).await);
        }
        let refused = match pushed {
            Pushed::AllBut(refused) => refused,
            Pushed::CalledOff(rows) => {
                self.in_flight.leave_unqueued(rows.iter().map(|(row, _)| row.id()));
                return (queued, BTreeMap::new());
            }
            Pushed::Closed => return (queued, BTreeMap::new()),
        };
        Counters::add(&self.cursor.telemetry.counters.cold, (read - refused.len()) as u64);
        queued |= read > refused.len();
        let mut left: BTreeMap<Class, i64> = BTreeMap::new();
        let shares = self.queue.shares();
        for (row, class) in &refused {
            let lowest = left.entry(*class).or_insert(row.seq);
            *lowest = row.seq.min(*lowest);
            if shares.has_type_alone(row) {
                self.passed.note_type(*class, row.event.event_type());
            }
        }
        for (class, lowest) in &left {
            shares.pass(*class);
            self.passed.left(*class, lowest.saturating_sub(1));
        }
        self.in_flight.leave_unqueued(refused.iter().map(|(row, _)| row.id()));
        (queued, left)
    }
}

/// The next read of the table.
#[derive(Debug, Clone, Copy)]
enum Job {
    /// The sweep goes on.
    Sweep(Limits),
    /// A class that is passed over.
    Passed(ClassToRead),
}

impl Job {
    /// The class that is read for, if it is for one.
    fn class(self) -> Option<Class> {
        match self {
            Self::Sweep(_) => None,
            Self::Passed(wanted) => Some(wanted.class),
        }
    }

    fn room(self) -> Limits {
        match self {
            Self::Sweep(room) => room,
            Self::Passed(wanted) => wanted.room,
        }
    }
}

impl Poller {
    /// In order, the rows read must be of the history that is in memory; so the fetch names the reading node.
    fn scope(&self) -> Option<FetchScope> {
        self.is_in_order().then(|| FetchScope {
            partitions: 0..=u8::MAX,
            heads: Heads::None,
            without: Vec::new(),
            only: Vec::new(),
            node: Some(self.cursor.tenure.node.clone()),
        })
    }

    /// Begins at the bottom if operators have intervened since the fetch before, where all events are delivered in the order of the table,
    /// and says if they have. A fetch may read rows with a due time and those without one after the other: one that was made due by hand in
    /// between is in neither, and what is behind it would overtake it.
    fn restart_if_intervened(&mut self, sweep: &mut Sweep, interventions: i64) -> bool {
        let changed = self.is_in_order()
            && std::mem::replace(&mut self.interventions, interventions) != interventions
            && !planted_bug::is_active("interventions_ignored");
        if changed {
            self.start_over(sweep);
        }
        changed
    }

    /// Begins at the bottom if the database may be in an older state than what is known of it here, and says if it may.
    fn restart_if_history_changed(&mut self, sweep: &mut Sweep) -> bool {
        let changed = self.cursor.forget_if_history_changed();
        if changed {
            self.start_over(sweep);
        }
        changed
    }

    fn start_over(&mut self, sweep: &mut Sweep) {
        sweep.start_over(Instant::now());
        self.passed.start_over();
    }

    /// The record of the earlier attempt of a row that was read. After an owner died, the first rows are suspected of having killed it.
    fn prior_attempt(&mut self, row: &Row) -> PriorAttempt {
        self.suspects.check(row.seq, self.cursor.tenure.prior_attempt(row.locked_by.as_deref()))
    }
}
