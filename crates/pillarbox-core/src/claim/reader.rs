use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::gate::{Gate, Seen};
use super::{Horizon, Lookout, SLOW, condemn};
use crate::clock::Random;
use crate::error::StoreError;
use crate::event::partition_of;
use crate::observe::Counters;
use crate::ownership::{Past, Tenure};
use crate::queue::{Intake, KeyLanes, Refill, Source};
use crate::retry::{Pause, jittered};
use crate::run::ClaimConfig;
use crate::settle::{Status, Verdict};
use crate::store::{Fetch, Fetched, FetchedRow, Heads, Row, Scope, Store};

/// How often, at the most, a run is read from the bottom of the table for no other reason than that it was long ago.
const BOTTOM_EVERY: Duration = Duration::from_secs(15);
/// Reading from the bottom takes at most this share of the time, however many rows there have to be passed over.
const BOTTOM_SHARE: u32 = 50;
/// While keys that are behind are read without end, looking for others takes at most this share of the time: it passes over all
/// that waits of those keys.
const OTHERS_SHARE: u32 = 10;

/// Reads the pending rows of this node's partitions into its [`KeyLanes`], so that no event of a key overtakes another.
///
/// ```text
///   bottom           mark                                      highest
///     │ in memory,     │ to be read, in ascending order of seq     │
///     │ or waiting     │                                           │
///     │ behind a head, │                                           │
///     │ or settled     │                                           │
/// ```
///
/// A fetch begins at the mark. The mark moves up only to where the table is [complete](Horizon): a row that appears below it
/// could belong before one that is read above. It moves down whenever there may be something below: an event that others
/// waited behind has ended, partitions came, operators have replayed or discarded events, which a fetch tells. What was read
/// above the mark in such a moment is not taken. And now and then the mark goes to the bottom, since rows can be changed by
/// hand.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) lanes: Arc<KeyLanes>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) config: ClaimConfig,
    pub(crate) tenure: Tenure,
    pub(crate) heads: Heads,
    pub(crate) gate: Gate,
    /// Where rows that make no event get their verdict.
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) stop: CancellationToken,
    pub(crate) place: Place,
}

/// Where the reader is.
#[derive(Debug, Default)]
pub(crate) struct Place {
    horizon: Horizon,
    assignment: u64,
    /// How often operators had intervened when the table was last read.
    interventions: i64,
    runs: Vec<Run>,
    /// The run to read next.
    next: usize,
    /// When reading a run last ended, and how long that took.
    looked: Option<(Instant, Duration)>,
    /// Whether keys were refilled last.
    refills: bool,
    /// What the gate held back when it was last asked.
    seen: Seen,
    held: Vec<Box<str>>,
}

/// A contiguous run of this node's partitions, which is what one statement can read.
#[derive(Debug)]
struct Run {
    partitions: RangeInclusive<u8>,
    /// Nothing at or below it has to be read.
    mark: i64,
    /// Whether there may be something above it.
    unread: bool,
    /// When it was last read from the bottom, and how long that took.
    bottom: Option<(Instant, Duration)>,
}

impl Run {
    fn new(partitions: RangeInclusive<u8>) -> Self {
        Self { partitions, mark: 0, unread: true, bottom: None }
    }

    fn is_bottom_due(&self, now: Instant) -> bool {
        self.bottom.is_none_or(|(at, took)| now >= at + BOTTOM_EVERY.max(took * BOTTOM_SHARE))
    }
}

/// What to read next.
#[derive(Debug)]
enum Job {
    /// The run with this index.
    Run(usize),
    /// Keys that are behind.
    Refill(Refill),
}

impl Reader {
    /// Runs until it is told to stop. Dropping a fetch half-way is safe: it holds nothing in the database.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.read_for_ever()).await;
    }

    async fn read_for_ever(&mut self) {
        let mut interval = self.config.min_interval;
        let mut next_look = Instant::now();
        let mut pause = Pause::default();
        loop {
            self.follow_assignment();
            self.follow_gate();
            let Some((job, limit)) = self.job() else {
                self.wait(next_look).await;
                // A node that owns nothing yet has nothing to look at either.
                if Instant::now() >= next_look {
                    interval = (interval * 2).min(self.config.max_interval);
                    next_look = Instant::now() + jittered(interval, &*self.random);
                }
                continue;
            };
            let refills = matches!(job, Job::Refill(..));
            match self.read(job, limit).await {
                Ok(found) => {
                    if pause.is_over() {
                        tracing::info!("the outbox table can be read again");
                    }
                    if !refills {
                        interval =
                            if found { self.config.min_interval } else { (interval * 2).min(self.config.max_interval) };
                        next_look = Instant::now() + jittered(interval, &*self.random);
                    } else if self.are_others_due() {
                        // Keys that are refilled without end put off no look at the others.
                        self.look_from(None);
                    }
                }
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, "the outbox table cannot be read; trying again until it can");
                    }
                    self.intake.pulse.look.sleep(pause.next(&*self.random)).await;
                }
            }
        }
    }

    /// What was gained is read from the bottom.
    fn follow_assignment(&mut self) {
        let (assignment, partitions) = self.lanes.assignment();
        if assignment != self.place.assignment {
            self.place.assignment = assignment;
            self.place.runs = partitions.runs().into_iter().map(Run::new).collect();
        }
    }

    /// What was held back before is read from the bottom, where it may be.
    fn follow_gate(&mut self) {
        let held = self.gate.held(&mut self.place.seen, Instant::now());
        if held.reopened {
            self.start_over();
        }
        if let Some(next) = held.next {
            self.intake.lookout.due_in(next.saturating_duration_since(Instant::now()));
        }
        self.place.held = held.types;
    }

    fn are_others_due(&self) -> bool {
        let pause = |took: Duration| self.config.min_interval.max(took * OTHERS_SHARE).min(BOTTOM_EVERY);
        self.place.looked.is_none_or(|(at, took)| at.elapsed() >= pause(took))
    }

    /// The next thing to read, and how many rows of it; `None` if there is nothing, or no room for it.
    fn job(&mut self) -> Option<(Job, usize)> {
        let run = self.lanes.room().and_then(|room| Some((self.unread()?, room)));
        // In turns, if there are both.
        let refills = !self.place.refills || run.is_none();
        let refill = if refills { self.lanes.refill(self.config.batch, Instant::now()) } else { None };
        self.place.refills = refill.is_some();
        if let Some(refill) = refill {
            let wanted = refill.wanted;
            return Some((Job::Refill(refill), wanted));
        }
        let (run, room) = run?;
        self.place.next = run + 1;
        Some((Job::Run(run), room.min(self.config.batch)))
    }

    /// The next run that there may be something to read of.
    fn unread(&self) -> Option<usize> {
        let runs = self.place.runs.len();
        let mut turn = (0..runs).map(|offset| (self.place.next + offset) % runs.max(1));
        turn.find(|index| self.place.runs.get(*index).is_some_and(|run| run.unread))
    }

    /// Waits for a reason to read, until `latest`.
    async fn wait(&mut self, latest: Instant) {
        if self.place.runs.iter().any(|run| run.unread) {
            return self.lanes.wanted().await;
        }
        let intake = Arc::clone(&self.intake);
        tokio::select! {
            look = intake.pulse.look.until(latest, intake.lookout.wait(latest)) => self.look_from(look.lowest),
            () = self.lanes.wanted() => {}
        }
    }

    /// Something may be there to be read, at or above `lowest`.
    fn look_from(&mut self, lowest: Option<i64>) {
        for run in &mut self.place.runs {
            run.unread = true;
            // What was only heard of from elsewhere is above the mark, or waits for the next look from the bottom.
            if let Some(seq) = lowest.filter(|seq| *seq != Lookout::ANY) {
                run.mark = run.mark.min(seq.saturating_sub(1));
            }
        }
        if let Some(seq) = lowest.filter(|seq| *seq != Lookout::ANY) {
            self.lanes.look_from(seq);
        }
    }

    /// Whether operators have made rows due that stand below what is read above the mark. Then all has to be read from the
    /// bottom.
    fn has_to_start_over(&mut self, interventions: i64) -> bool {
        let changed = std::mem::replace(&mut self.place.interventions, interventions) != interventions;
        if changed {
            self.start_over();
        }
        changed
    }

    fn start_over(&mut self) {
        for run in &mut self.place.runs {
            (run.mark, run.unread) = (0, true);
        }
        self.lanes.look_from(0);
    }

    /// Fetches once; says whether anything new was found.
    async fn read(&mut self, job: Job, limit: usize) -> Result<bool, StoreError> {
        let began = Instant::now();
        if self.place.runs.iter().any(|run| run.mark == 0) {
            // To pass over all that is at the bottom once is enough.
            self.place.horizon.advance(&*self.store).await?;
        }
        // What is complete now is all to be seen by a fetch that begins now.
        let complete = self.place.horizon.complete();
        let intake = Arc::clone(&self.intake);
        let sight = intake.registry.sight();
        let begun = self.lanes.begin_fetch();
        if begun.freed.is_some() {
            self.look_from(begun.freed);
        }
        let (above, from_bottom, scope) = self.aim(&job, began, begun.heads);
        let mut exclude = sight.exclude(if above == 0 { i64::MIN } else { above });
        exclude.sort_unstable();
        let asked_about_heads = scope.heads != Heads::None;
        let fetch = Fetch { above, exclude, limit, scope: Some(scope), without_types: self.place.held.clone() };
        let call = self.store.fetch(&fetch).instrument(tracing::debug_span!("claim", above, limit));
        let call = intake.meters.claim.measure(call, |fetched| fetched.rows.len());
        let Fetched { mut rows, next_due, interventions, heads } = intake.pulse.look.ask(call).await?;
        debug_assert!(rows.len() <= limit, "I7: a fetch returns at most its limit");
        if asked_about_heads {
            self.lanes.saw_heads(begun.number, heads);
        }
        let starts_over = self.has_to_start_over(interventions);
        if starts_over && !from_bottom {
            return Ok(true);
        }
        if let Some(delay) = next_due {
            self.intake.lookout.due_in(delay);
        }
        let full = rows.len() >= limit;
        // Everything of the scope up to here has been seen.
        let ready = rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq).max();
        let seen = if full { ready.unwrap_or(above) } else { i64::MAX };
        self.ripen(&mut rows, seen).await?;
        self.stamp(&mut rows).await?;
        rows.sort_unstable_by_key(FetchedRow::seq);

        let admitted = sight.admit(rows.iter().map(|row| (row.seq(), row.is_timed(), partition(row))));
        let called_off = sight.is_called_off();
        // Rows that are in memory already are no reason to look again soon.
        let found = admitted.contains(&true);
        let source = Source { fetch: begun.number, floor: above, refill: matches!(job, Job::Refill(..)) };
        self.queue(rows, &admitted, source).await;
        drop(sight);

        let took = began.elapsed();
        match job {
            Job::Refill(_) if called_off => {}
            Job::Refill(refill) => self.lanes.refilled(&refill.keys, begun.number, seen, complete),
            Job::Run(index) => {
                self.place.looked = Some((Instant::now(), took));
                if let Some(run) = self.place.runs.get_mut(index) {
                    if from_bottom {
                        run.bottom = Some((Instant::now(), took));
                    }
                    // What an operator has just freed may be blocked in memory until this fetch is over: it is read again.
                    if !called_off && !starts_over {
                        run.unread = full;
                        run.mark = run.mark.max(seen.min(complete));
                    }
                }
            }
        }
        if full || took > SLOW {
            self.place.horizon.advance(&*self.store).await?;
        }
        Ok(found)
    }

    /// Where a fetch begins, whether that is the bottom, and what it asks for.
    fn aim(&mut self, job: &Job, now: Instant, heads: bool) -> (i64, bool, Scope) {
        let heads = if heads { self.heads } else { Heads::None };
        let scope = |partitions, without, only| Scope { partitions, heads, without, only };
        match job {
            Job::Refill(refill) => {
                (refill.floor, false, scope(refill.partitions.clone(), Vec::new(), refill.keys.clone()))
            }
            Job::Run(index) => {
                let Some(run) = self.place.runs.get_mut(*index) else {
                    return (0, true, scope(0..=0, Vec::new(), Vec::new()));
                };
                if run.is_bottom_due(now) {
                    run.mark = 0;
                    self.lanes.look_from(0);
                }
                let scope = scope(run.partitions.clone(), self.lanes.behind(), Vec::new());
                // Now and then it is asked in any case: what is known may be wrong where rows are changed by hand.
                let heads = if run.mark == 0 { self.heads } else { scope.heads };
                (run.mark, run.mark == 0, Scope { heads, ..scope })
            }
        }
    }

    /// A delayed event whose time has come takes its place in the order of its key. If all that stands before it has been
    /// seen, it goes on as it is; if not, it becomes a row like any other.
    async fn ripen(&self, rows: &mut Vec<FetchedRow>, seen: i64) -> Result<(), StoreError> {
        let is_early = |row: &FetchedRow| match row {
            FetchedRow::Row(row) => {
                row.timed && row.status == Status::New && row.seq > seen && row.order_key().is_some()
            }
            FetchedRow::Broken(_) => false,
        };
        let early: Vec<i64> = rows.iter().filter(|row| is_early(row)).map(FetchedRow::seq).collect();
        if let Some(lowest) = early.iter().min() {
            self.store.ripen(&early).await?;
            self.intake.lookout.wake_for(*lowest);
            rows.retain(|row| !is_early(row));
        }
        Ok(())
    }

    /// Gives rows a partition that have none, which other programs have written.
    async fn stamp(&self, rows: &mut Vec<FetchedRow>) -> Result<(), StoreError> {
        let mut stamps = Vec::new();
        for row in rows.iter_mut() {
            match row {
                FetchedRow::Row(row) if row.partition.is_none() => {
                    let partition = proper_partition(row);
                    row.partition = Some(partition);
                    stamps.push((row.seq, partition));
                }
                FetchedRow::Broken(row) if row.partition.is_none() => {
                    // Without a key its partition does not matter: whoever finds it declares it DEAD.
                    let partition = row.key.as_ref().map_or(0, |key| partition_of(&key.key));
                    row.partition = Some(partition);
                    stamps.push((row.seq, partition));
                }
                FetchedRow::Row(_) | FetchedRow::Broken(_) => {}
            }
        }
        if !stamps.is_empty() {
            self.store.stamp(&stamps).await?;
            let (_, ours) = self.lanes.assignment();
            rows.retain(|row| ours.contains(partition(row)));
        }
        Ok(())
    }

    async fn queue(&mut self, rows: Vec<FetchedRow>, admitted: &[bool], source: Source) {
        let mut good = Vec::with_capacity(rows.len());
        for (row, admitted) in rows.into_iter().zip(admitted) {
            self.intake.lookout.found(row.seq());
            match row {
                _ if !admitted => {}
                FetchedRow::Row(row) => {
                    let past = Past::read(row.locked_by.as_deref(), &self.tenure.node);
                    good.push((row, past));
                }
                FetchedRow::Broken(broken) => {
                    let verdict = condemn(&broken);
                    if let Some(key) = &broken.key {
                        self.intake.registry.release(self.lanes.failed(key, broken.seq, &verdict.change));
                    }
                    // The channel closes only when the term is over; the row then stays as it is.
                    drop(self.verdicts.send(verdict).await);
                }
            }
        }
        let read = good.len();
        let refused = self.lanes.push(good, source);
        Counters::add(&self.intake.counters.cold, (read - refused.len()) as u64);
        self.intake.registry.release(refused);
    }
}

fn proper_partition(row: &Row) -> u8 {
    partition_of(row.key.as_deref().or(row.aggregate_id.as_deref()).unwrap_or(row.event_id.as_str()))
}

fn partition(row: &FetchedRow) -> u8 {
    match row {
        FetchedRow::Row(row) => row.partition,
        FetchedRow::Broken(row) => row.partition,
    }
    .unwrap_or_default()
}
