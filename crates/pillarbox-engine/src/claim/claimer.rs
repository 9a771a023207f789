use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::{Fence, Mode, Past};
use pillarbox_core::plants;
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::{BrokenRow, Fetch, Fetched, FetchedRow, Heads, History, Row, Scope, Store, written};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::passed_over::{PassedOver, Wanted};
use super::sweep::{Found, Sweep};
use super::{FetchSize, IN_VAIN, PATIENCE, SLOW, SafePoint, ripen};
use crate::config::ClaimConfig;
use crate::gate::{Gate, Seen};
use crate::observe::clean_error;
use crate::observe::{Consequence, Counters, Failed, FailureLog};
use crate::pause::{Pause, jittered};
use crate::poll_schedule::PollSchedule;
use crate::queue::{Class, Intake, Lanes, Limits};
use crate::tenure::Tenure;

/// Reads pending rows into the cold lane, as many as fit, for as long as this node owns them.
#[derive(Debug)]
pub(crate) struct Claimer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) config: ClaimConfig,
    pub(crate) tenure: Tenure,
    pub(crate) gate: Gate,
    pub(crate) seen: Seen,
    pub(crate) safe_point: SafePoint,
    /// The history of the database, of which what is known of the table is.
    pub(crate) history: History,
    pub(crate) size: FetchSize,
    pub(crate) passed: PassedOver,
    /// The last fetch was for a class that is passed over.
    pub(crate) read_passed: bool,
    /// The last fetch brought only what was left in the table, and would bring it again; how long it took.
    pub(crate) in_vain: Option<Duration>,
    /// Rows still to be read that the owner before may have died of.
    pub(crate) suspects: usize,
    /// The highest `seq` at the beginning of the term: what has been written since, the owner before cannot have had.
    pub(crate) suspects_up_to: i64,
    /// The channel for the verdicts on rows that make no event.
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) stop: CancellationToken,
}

impl Claimer {
    /// Runs until it is told to stop. Dropping a fetch half-way is safe: it holds nothing in the database.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.claim_for_ever()).await;
    }

    async fn claim_for_ever(&mut self) {
        // A term begins with a look: whatever the owner before left behind is due now.
        if self.suspects > 0 {
            self.suspects_up_to = written(&*self.store).await;
        }
        let mut sweep = if self.tenure.mode == Mode::Ordered { Sweep::in_order() } else { Sweep::new() };
        sweep.begin(None, true, Instant::now());
        let mut interval = self.config.min_interval;
        let mut next_look = Instant::now();
        let mut pause = Pause::default();
        loop {
            let job = self.job(&mut sweep, next_look).await;
            let held = self.gate.held(&mut self.seen, Instant::now());
            if held.reopened {
                sweep.start_over(Instant::now());
                self.passed.start_over();
            }
            if let Some(next) = held.next {
                self.intake.poll_schedule.due_in(next.saturating_duration_since(Instant::now()));
            }
            let (began, room) = (Instant::now(), job.room());
            let asked = self.size.within(room);
            match self.fetch(&mut sweep, job, asked, held.types).await {
                Ok(found) => {
                    if pause.end() {
                        tracing::info!("the outbox table can be read again");
                    }
                    if let Some(took) = self.in_vain.take() {
                        // There is room, and what it was read for has none: at most half of the time is spent so.
                        self.intake.pulse.look.sleep(took.max(IN_VAIN)).await;
                    }
                    if matches!(job, Job::Sweep(_)) {
                        interval =
                            if found { self.config.min_interval } else { (interval * 2).min(self.config.max_interval) };
                        next_look = Instant::now() + jittered(interval, &*self.random);
                    }
                }
                Err(error) => {
                    self.size.failed(asked, began.elapsed());
                    if pause.is_first() {
                        tracing::warn!(%error, "the outbox table cannot be read; trying again until it can");
                    }
                    self.intake.pulse.look.sleep(pause.next(&*self.random)).await;
                }
            }
        }
    }

    /// Waits for something to read and for room, and begins a sweep if none is under way.
    async fn job(&mut self, sweep: &mut Sweep, latest: Instant) -> Job {
        let shares = Arc::clone(self.lanes.shares());
        let mut full_since = None;
        loop {
            let room = shares.fetch_room();
            // In turns, if there is something of both.
            let is_late = Instant::now() >= latest && !plants::is("wake_up_without_fallback");
            let is_due = room.is_some() && (sweep.is_under_way() || is_late);
            if let Some(wanted) = self.passed.wanted(&shares)
                && !(is_due && self.read_passed)
            {
                self.read_passed = true;
                return Job::Passed(wanted);
            }
            let Some(room) = room else {
                let patience = *full_since.get_or_insert_with(Instant::now) + PATIENCE;
                tokio::select! {
                    () = shares.freed(true) => {}
                    () = tokio::time::sleep_until(patience), if shares.is_divided() => {
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
            let intake = Arc::clone(&self.intake);
            tokio::select! {
                look = intake.pulse.look.until(latest, intake.poll_schedule.wait(latest)) => {
                    sweep.begin(look.lowest, Instant::now() >= latest, Instant::now());
                    if sweep.above() == 0 {
                        self.passed.start_over();
                    }
                }
                // When it is time for a look, nothing else counts.
                () = shares.freed(false), if !is_late => {}
            }
        }
    }

    /// Fetches once; says whether anything new was found.
    async fn fetch(
        &mut self,
        sweep: &mut Sweep,
        job: Job,
        asked: Limits,
        held_types: Vec<Box<str>>,
    ) -> Result<bool, StoreError> {
        self.find_place(sweep);
        let intake = Arc::clone(&self.intake);
        let (began, complete) = (Instant::now(), self.safe_point.complete());
        let sight = intake.registry.sight();
        // Behind the cursor only rows with a due time can be met again; a claim meets its own anywhere, since rows from
        // memory are its own as well.
        let fence = self.tenure.fence();
        let goes_on = matches!(job, Job::Sweep(_)) && sweep.cursor().is_some() && fence == Fence::Table;
        let exclude = sight.exclude(if goes_on { i64::MAX } else { i64::MIN });
        let held = exclude.iter().min().copied();
        let (above, class) = match job {
            Job::Sweep(_) => (sweep.above(), None),
            Job::Passed(wanted) => (wanted.above, Some(wanted.class)),
        };
        let mut without_types = held_types;
        without_types.extend(self.passed.types(class).map(Box::from));
        let Limits { rows: limit, bytes: max_bytes } = asked;
        let fetch = Fetch { above, exclude, limit, max_bytes, scope: self.scope(), without_types };
        let mark = self.tenure.standing.mark();
        let call = match fence {
            Fence::Table | Fence::Partition => self.store.fetch(&fetch),
            Fence::Row => self.store.claim(&self.tenure.node, &fetch),
        };
        let span = tracing::debug_span!("claim", above = fetch.above, limit);
        let call = intake.meters.claim.measure(call.instrument(span), |fetched| fetched.rows.len());
        let Fetched { mut rows, cut, next_due, lease, .. } = intake.pulse.look.ask(call).await?;
        let follows = fetch.scope.is_none() || self.tenure.standing.follows(mark, lease);
        if !self.tenure.standing.holds() || !follows {
            // What was read is of another history than what is in memory. The term ends.
            drop(sight);
            return std::future::pending().await;
        }
        if self.find_place(sweep) {
            return Ok(true);
        }
        debug_assert!(rows.len() <= limit, "I7: a fetch returns at most its limit");
        let returned = Limits { rows: rows.len(), bytes: rows.iter().map(FetchedRow::payload_bytes).sum() };
        let full = cut || rows.len() >= limit;
        if self.tenure.mode == Mode::Ordered {
            if full {
                let seen = rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq).max();
                ripen(&*self.store, &intake.poll_schedule, &mut rows, |row| seen.is_none_or(|seen| row.seq > seen))
                    .await?;
            }
            rows.sort_unstable_by_key(FetchedRow::seq);
        }
        let untimed = || rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq);
        let (read, took) = (untimed().min().zip(untimed().max()), began.elapsed());
        self.size.answered(asked, returned, took);
        if let Some(delay) = next_due {
            self.intake.poll_schedule.due_in(delay);
        }
        let admitted = sight.admit(rows.iter().map(|row| (row.id(), row.is_timed(), 0)));
        drop(sight);
        let before = self.position(sweep, class);
        let (queued, left) = self.queue(rows, &admitted, class).await;
        match job {
            Job::Sweep(_) => {
                let left = !left.is_empty();
                sweep.advance(Found { read, held, full, complete, took, left }, Instant::now());
            }
            Job::Passed(wanted) => {
                let seen = if full { read.map(|(_, highest)| highest) } else { Some(i64::MAX) };
                let reached = sweep.cursor().unwrap_or(i64::MAX);
                match (left.get(&wanted.class), seen) {
                    // One with a due time may have been left that stands far above what was read.
                    (Some(lowest), seen) => {
                        let read = seen.unwrap_or(wanted.above).max(wanted.above);
                        self.passed.read(wanted.class, lowest.saturating_sub(1).min(read));
                    }
                    (None, Some(seen)) if seen < reached && seen > wanted.above => {
                        self.passed.read(wanted.class, seen);
                    }
                    // From here on the sweep reads its events with the others.
                    (None, _) => {
                        self.passed.caught_up(wanted.class);
                        self.lanes.shares().caught_up(wanted.class);
                        // What was being handed back when it was its turn was not seen.
                        sweep.has_passed_nothing();
                        self.intake.poll_schedule.wake_for(PollSchedule::ANY);
                    }
                }
            }
        }
        if full && !queued && !left.is_empty() && self.position(sweep, class) == before {
            self.in_vain = Some(took);
        }
        if took > SLOW || !left.is_empty() {
            self.safe_point.advance(&*self.store).await?;
        }
        // Rows that are in memory already are no reason to look again soon.
        Ok(queued)
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
    ) -> (bool, BTreeMap<Class, i64>) {
        let mut good = Vec::with_capacity(rows.len());
        let mut queued = false;
        self.intake.poll_schedule.found(rows.iter().map(FetchedRow::seq));
        for (row, admitted) in rows.into_iter().zip(admitted) {
            match row {
                _ if !admitted => {}
                FetchedRow::Row(row) => {
                    let past = self.past(&row);
                    good.push((Arc::new(row), past));
                }
                // The channel closes only when the term is over; the row then stays as it is.
                FetchedRow::Broken(broken) => {
                    queued = true;
                    drop(self.verdicts.send(dead_letter(&broken, &self.intake.failures)).await);
                }
            }
        }
        let read = good.len();
        // Closed lanes mean that the term ends, which gives up everything that is held.
        let refused = self.lanes.push_cold(good, reading).unwrap_or_default();
        Counters::add(&self.intake.counters.cold, (read - refused.len()) as u64);
        queued |= read > refused.len();
        let mut left: BTreeMap<Class, i64> = BTreeMap::new();
        let shares = self.lanes.shares();
        for (row, class) in &refused {
            let lowest = left.entry(*class).or_insert(row.seq);
            *lowest = row.seq.min(*lowest);
            if shares.has_type_alone(row) {
                self.passed.has_type(*class, &row.event_type);
            }
        }
        for (class, lowest) in &left {
            shares.pass(*class);
            self.passed.left(*class, lowest.saturating_sub(1));
        }
        self.intake.leave(refused.iter().map(|(row, _)| row.id()), self.tenure.fence());
        (queued, left)
    }
}

/// The next read of the table.
#[derive(Debug, Clone, Copy)]
enum Job {
    /// The sweep goes on.
    Sweep(Limits),
    /// A class that is passed over.
    Passed(Wanted),
}

impl Job {
    fn room(self) -> Limits {
        match self {
            Self::Sweep(room) => room,
            Self::Passed(wanted) => wanted.room,
        }
    }
}

impl Claimer {
    /// In order, what is read must be of the history that is in memory; so whose the reader is, is asked with it.
    fn scope(&self) -> Option<Scope> {
        (self.tenure.mode == Mode::Ordered).then(|| Scope {
            partitions: 0..=u8::MAX,
            heads: Heads::None,
            without: Vec::new(),
            only: Vec::new(),
            node: Some(self.tenure.node.clone()),
        })
    }

    /// Goes back to the bottom if the database may be in an older state than what is known of it here, and says whether it may.
    fn find_place(&mut self, sweep: &mut Sweep) -> bool {
        let history = self.store.history();
        if history == self.history {
            return false;
        }
        self.history = history;
        self.safe_point = SafePoint::default();
        sweep.start_over(Instant::now());
        self.passed.start_over();
        true
    }

    /// After an owner died, the first rows read that were there then are suspected of having killed it: as many as it can
    /// have had in memory.
    fn past(&mut self, row: &Row) -> Past {
        let past = self.tenure.past(row.locked_by.as_deref());
        if self.suspects == 0 || row.seq > self.suspects_up_to {
            return past;
        }
        self.suspects -= 1;
        if past == Past::Clean { Past::Suspect } else { past }
    }
}

/// A row that makes no event goes DEAD by itself, so that it stops nobody else.
pub(super) fn dead_letter(row: &BrokenRow, failures: &FailureLog) -> Verdict {
    let error = clean_error(&format!("the row is not an event: {}", row.reason));
    failures.report(Consequence::Dead, Failed::broken(row, error.clone()));
    Verdict { row: row.id(), expected: row.expected(), change: Change::Dead { attempts: row.attempts, error } }
}
