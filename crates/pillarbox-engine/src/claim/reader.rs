use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreError;
use pillarbox_core::event::partition_of;
use pillarbox_core::plants;
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow, Heads, History, Row, Scope, Store};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::passed_over::{PassedOver, Wanted};
use super::{FetchSize, IN_VAIN, PATIENCE, SLOW, SafePoint, dead_letter, ripen};
use crate::config::ClaimConfig;
use crate::gate::{Gate, Seen};
use crate::observe::Counters;
use crate::pause::{Pause, jittered};
use crate::poll_schedule::PollSchedule;
use crate::queue::{Class, Intake, KeyLanes, Limits, Refill, Source};
use crate::tenure::Tenure;

/// The shortest time between two reads of a run from the bottom of the table, if the second has no other reason.
const BOTTOM_EVERY: Duration = Duration::from_secs(15);
/// Reading from the bottom takes at most this share of the time, however many rows there have to be passed over.
const BOTTOM_SHARE: u32 = 50;
/// While keys that are behind are read without end, looking for others takes at most this share of the time: it passes over all
/// that waits of those keys.
const OTHERS_SHARE: u32 = 10;
/// Of so many rows, one would be without a due time if there is any. Of fewer, due rows of one class could hide for ever that there is
/// nothing more of another one.
const TELLING: usize = 3;
/// As many rows as were left in the table for lack of room for their class are left out of a fetch at most. Where the mark stands still, it
/// would read them again each time; what is beyond it does.
const MOST_LEFT_OUT: usize = 40_000;

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
/// A fetch begins at the mark. The mark moves up only to where the table is [complete](SafePoint): a row that appears below it
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
    /// The channel for the verdicts on rows that make no event.
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) stop: CancellationToken,
    pub(crate) place: Place,
    pub(crate) size: FetchSize,
}

/// The position of the reader.
#[derive(Debug, Default)]
pub(crate) struct Place {
    safe_point: SafePoint,
    /// The history of the database, of which all of this is.
    history: History,
    assignment: u64,
    /// The number of times that operators had intervened when the table was last read.
    interventions: i64,
    runs: Vec<Run>,
    /// The run to read next.
    next: usize,
    /// The end of the last read of a run, and its duration.
    looked: Option<(Instant, Duration)>,
    /// True if keys were refilled last.
    refills: bool,
    /// True if the last read was of a class that is passed over.
    read_passed: bool,
    /// The run of which such a class is read next.
    next_passed: usize,
    /// Since when there is something to read and no room for it.
    full_since: Option<Instant>,
    /// The last read brought only what was left in the table, and would bring it again; how long it took.
    in_vain: Option<Duration>,
    /// The types that the gate held back when it was last asked.
    seen: Seen,
    held: Vec<Box<str>>,
    /// The time at which it was asked.
    held_since: Option<Instant>,
}

/// A contiguous run of this node's partitions, which is what one statement can read.
#[derive(Debug)]
struct Run {
    partitions: RangeInclusive<u8>,
    /// Nothing at or below it has to be read.
    mark: i64,
    /// True if there may be a row to read above the mark.
    unread: bool,
    /// The end of its last read from the bottom, and the duration of that read.
    bottom: Option<(Instant, Duration)>,
    /// The classes that are passed over.
    passed: PassedOver,
    /// The highest row that was read.
    reached: i64,
}

impl Place {
    /// The place up to which a run has been read, or a class of it that is passed over, and the number of rows that need not be read again;
    /// `None` for keys that are refilled.
    fn position(&self, of: Option<(usize, Option<Class>)>) -> Option<(i64, usize)> {
        let (index, class) = of?;
        let run = self.runs.get(index)?;
        let above = class.map_or(run.mark, |class| run.passed.above(class).unwrap_or(i64::MAX));
        Some((above, run.passed.rows_remembered()))
    }
}

impl Run {
    fn new(partitions: RangeInclusive<u8>) -> Self {
        Self { partitions, mark: 0, unread: true, bottom: None, passed: PassedOver::default(), reached: 0 }
    }

    /// Reads again from the row `seq`, which may not have been there when it was read.
    fn look_from(&mut self, seq: i64) {
        let below = seq.saturating_sub(1);
        self.unread = true;
        self.mark = self.mark.min(below);
        self.passed.look_from(below);
    }

    fn is_bottom_due(&self, now: Instant) -> bool {
        self.bottom.is_none_or(|(at, took)| now >= at + BOTTOM_EVERY.max(took * BOTTOM_SHARE))
    }
}

/// The next read of the table.
#[derive(Debug)]
enum Job {
    /// The run with this index.
    Run(usize),
    /// Keys that are behind.
    Refill(Refill),
    /// A class that is passed over, of the run with this index.
    Passed(usize, Wanted),
}

impl Job {
    /// The run that is read, and the class if it is for one.
    fn place(&self) -> Option<(usize, Option<Class>)> {
        match self {
            Self::Run(index) => Some((*index, None)),
            Self::Passed(index, wanted) => Some((*index, Some(wanted.class))),
            Self::Refill(_) => None,
        }
    }
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
            if self.follow_assignment() {
                interval = self.config.min_interval;
            }
            self.follow_gate();
            let Some((job, room)) = self.job() else {
                self.wait(next_look).await;
                // A node that owns nothing yet has nothing to look at either, so no look plans the next one.
                if self.place.runs.is_empty() && Instant::now() >= next_look {
                    interval = (interval * 2).min(self.config.max_interval);
                    next_look = Instant::now() + jittered(interval, &*self.random);
                }
                continue;
            };
            let refills = !matches!(job, Job::Run(..));
            let (began, mut asked) = (Instant::now(), self.size.within(room));
            if matches!(job, Job::Passed(..)) {
                // What finds no room stays in the table.
                asked.rows = asked.rows.max(TELLING);
            }
            match self.read(job, asked).await {
                Ok(found) => {
                    if found.is_some() && pause.end() {
                        tracing::info!("the outbox table can be read again");
                    }
                    if let Some(took) = self.place.in_vain.take() {
                        // Where more was left than is remembered, at most half of the time is spent with it.
                        self.intake.pulse.look.sleep(took.max(IN_VAIN)).await;
                    }
                    let found = found.unwrap_or(true);
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
                    self.size.failed(asked, began.elapsed());
                    if pause.is_first() {
                        tracing::warn!(%error, "the outbox table cannot be read; trying again until it can");
                    }
                    self.intake.pulse.look.sleep(pause.next(&*self.random)).await;
                }
            }
        }
    }

    /// Reads the partitions that were gained from the bottom. True if others are owned than before.
    fn follow_assignment(&mut self) -> bool {
        let (assignment, partitions) = self.lanes.assignment();
        let changed = assignment != self.place.assignment;
        if changed {
            self.place.assignment = assignment;
            self.place.runs = partitions.runs().into_iter().map(Run::new).collect();
            self.lanes.pass_nothing();
        }
        changed
    }

    /// Takes over the types that the gate holds back. If one is held no more, all is read from the bottom, where its rows may be.
    fn follow_gate(&mut self) {
        let now = Instant::now();
        let held = self.gate.held(&mut self.place.seen, now);
        if held.reopened {
            self.start_over();
        }
        if let Some(next) = held.next {
            self.intake.poll_schedule.due_in(next.saturating_duration_since(Instant::now()));
        }
        (self.place.held, self.place.held_since) = (held.types, Some(now));
    }

    fn are_others_due(&self) -> bool {
        let pause = |took: Duration| self.config.min_interval.max(took * OTHERS_SHARE).min(BOTTOM_EVERY);
        self.place.looked.is_none_or(|(at, took)| at.elapsed() >= pause(took))
    }

    /// The next thing to read, and how much of it; `None` if there is nothing, or no room for it.
    fn job(&mut self) -> Option<(Job, Limits)> {
        let run = self.lanes.room().and_then(|room| Some((self.unread()?, room)));
        if let Some(job) = self.passed().filter(|_| !(self.place.read_passed && run.is_some())) {
            self.place.read_passed = true;
            if let (Job::Passed(index, _), _) = &job {
                self.place.next_passed = index + 1;
            }
            return Some(job);
        }
        self.place.read_passed = false;
        // In turns, if there are both.
        let refills = !self.place.refills || run.is_none();
        let refill = if refills { self.lanes.refill(self.config.batch, Instant::now()) } else { None };
        self.place.refills = refill.is_some();
        if let Some(refill) = refill {
            let bytes = self.lanes.shares().fetch_bytes();
            let room = Limits { rows: refill.wanted, bytes };
            return Some((Job::Refill(refill), room));
        }
        let (run, room) = run?;
        self.place.next = run + 1;
        Some((Job::Run(run), room))
    }

    /// A class to read of those that are passed over: of each run in turn, since reading one may not get on.
    fn passed(&self) -> Option<(Job, Limits)> {
        let shares = self.lanes.shares();
        let runs = self.place.runs.iter().enumerate();
        let (index, wanted) = runs
            .filter_map(|(index, run)| Some((index, run.passed.wanted(shares)?)))
            .min_by_key(|(index, _)| (*index < self.place.next_passed, *index))?;
        Some((Job::Passed(index, wanted), wanted.room))
    }

    /// Waits for room for what is to be read, and passes over the classes that have their share if there is none for a while.
    async fn wait_for_room(&mut self) {
        let patience = *self.place.full_since.get_or_insert_with(Instant::now) + PATIENCE;
        tokio::select! {
            () = self.lanes.wanted(true) => {}
            () = tokio::time::sleep_until(patience), if self.lanes.shares().is_divided() => {
                self.place.full_since = None;
                for class in self.lanes.shares().pass_over() {
                    self.place.runs.iter_mut().for_each(|run| run.passed.left(class, run.mark));
                }
            }
        }
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
            return self.wait_for_room().await;
        }
        let intake = Arc::clone(&self.intake);
        tokio::select! {
            look = intake.pulse.look.until(latest, intake.poll_schedule.wait(latest)) => self.look_from(look.lowest),
            () = self.lanes.wanted(false) => {}
        }
    }

    /// Something may be there to be read, at or above `lowest`.
    fn look_from(&mut self, lowest: Option<i64>) {
        // What was only heard of from elsewhere is above the marks, or waits for the next look from the bottom.
        let Some(seq) = lowest.filter(|seq| *seq != PollSchedule::ANY) else {
            return self.place.runs.iter_mut().for_each(|run| run.unread = true);
        };
        self.place.runs.iter_mut().for_each(|run| run.look_from(seq));
        self.lanes.look_from(seq);
    }

    /// True if operators have intervened: rows may have become due below those that are read above the mark. Then all has to be
    /// read from the bottom.
    fn has_to_start_over(&mut self, interventions: i64) -> bool {
        let changed = std::mem::replace(&mut self.place.interventions, interventions) != interventions
            && !plants::is("interventions_ignored");
        if changed {
            self.lanes.intervened();
            self.start_over();
        }
        changed
    }

    /// True if the database may be in an older state than what is known of it here. Then nothing is proven of it any more, and
    /// all has to be read from the bottom.
    fn has_lost_its_place(&mut self) -> bool {
        let history = self.store.history();
        if history == self.place.history {
            return false;
        }
        self.place.history = history;
        self.place.safe_point = SafePoint::default();
        self.start_over();
        true
    }

    fn start_over(&mut self) {
        for run in &mut self.place.runs {
            (run.mark, run.unread) = (0, true);
            run.passed.start_over();
        }
        self.lanes.look_from(0);
    }

    /// Fetches once; says whether anything new was found. `None` if it has to choose anew before it asks the database.
    async fn read(&mut self, job: Job, asked: Limits) -> Result<Option<bool>, StoreError> {
        let began = Instant::now();
        if self.has_lost_its_place() {
            return Ok(None);
        }
        self.place.full_since = None;
        let Limits { rows: limit, bytes: max_bytes } = asked;
        if self.place.runs.iter().any(|run| run.mark == 0) {
            // To pass over all that is at the bottom once is enough.
            self.place.safe_point.advance(&*self.store).await?;
        }
        let mark = self.tenure.standing.mark();
        // What is complete now is all to be seen by a fetch that begins now.
        let complete = self.place.safe_point.complete();
        let intake = Arc::clone(&self.intake);
        let sight = intake.registry.sight();
        let begun = self.lanes.begin_fetch();
        if begun.freed.is_some() {
            // The job was chosen before this was given back to the table, and may begin above it: then it would be overtaken.
            self.look_from(begun.freed);
            return Ok(None);
        }
        let (above, from_bottom, scope) = self.aim(&job, began, begun.heads);
        let mut exclude = sight.exclude(if above == 0 { i64::MIN } else { above });
        if let Job::Run(index) = &job
            && let Some(run) = self.place.runs.get(*index)
        {
            exclude.extend(run.passed.rows(above));
        }
        exclude.sort_unstable();
        let asked_about_heads = scope.heads != Heads::None;
        let read = scope.partitions.clone();
        let without_types = self.place.held.clone();
        let fetch = Fetch { above, exclude, limit, max_bytes, scope: Some(scope), without_types };
        let call = self.store.fetch(&fetch).instrument(tracing::debug_span!("claim", above, limit));
        let call = intake.meters.claim.measure(call, |fetched| fetched.rows.len());
        let Fetched { mut rows, cut, next_due, interventions, heads, lease } = intake.pulse.look.ask(call).await?;
        if !self.tenure.standing.holds() || !self.tenure.standing.follows(mark, lease) {
            // What was read is of another history than what is in memory. The term ends.
            drop(sight);
            return std::future::pending().await;
        }
        if self.has_lost_its_place() || !self.gate.holds_all(&fetch.without_types) {
            // What was left in the table is to be read again, and may belong before what was read.
            return Ok(Some(true));
        }
        debug_assert!(rows.len() <= limit, "I7: a fetch returns at most its limit");
        if asked_about_heads {
            self.lanes.saw_heads(begun.number, heads);
        }
        let starts_over = self.has_to_start_over(interventions);
        if starts_over && !from_bottom {
            return Ok(Some(true));
        }
        if let Some(delay) = next_due {
            self.intake.poll_schedule.due_in(delay);
        }
        let returned = Limits { rows: rows.len(), bytes: rows.iter().map(FetchedRow::payload_bytes).sum() };
        self.size.answered(asked, returned, began.elapsed());
        let full = cut || rows.len() >= limit;
        // Everything of the scope up to here has been seen.
        let ready = rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq).max();
        let seen = if full { ready.unwrap_or(above) } else { i64::MAX };
        ripen(&*self.store, &intake.poll_schedule, &mut rows, |row| {
            row.seq > seen && row.order_key().is_some() && !plants::is("due_rows_keep_no_place")
        })
        .await?;
        self.stamp(&mut rows, &read).await?;
        if self.has_lost_its_place() || !self.gate.holds_all(&fetch.without_types) {
            // So has this happened while those two waited for the database.
            return Ok(Some(true));
        }
        rows.sort_unstable_by_key(FetchedRow::seq);

        let admitted = sight.admit(rows.iter().map(|row| (row.id(), row.is_timed(), partition(row))));
        let called_off = sight.is_called_off();
        // Rows that are in memory already are no reason to look again soon.
        let found = admitted.contains(&true);
        let class = if let Job::Passed(_, wanted) = &job { Some(wanted.class) } else { None };
        let since = self.place.held_since.unwrap_or(began);
        let source = Source { fetch: begun.number, floor: above, refill: matches!(job, Job::Refill(..)), class, since };
        let brought: Vec<(i64, bool)> = rows.iter().map(|row| (row.seq(), row.is_timed())).collect();
        let left = self.queue(rows, &admitted, source).await;
        drop(sight);
        let is_all_left = left.values().map(Vec::len).sum::<usize>() == brought.len();
        let of = job.place();
        let before = self.place.position(of);
        let room = MOST_LEFT_OUT.saturating_sub(self.place.runs.iter().map(|run| run.passed.rows_remembered()).sum());
        if let Job::Run(index) | Job::Passed(index, _) = job {
            if let Some(run) = self.place.runs.get_mut(index) {
                for (class, rows) in &left {
                    let below = rows.first().copied().unwrap_or_default().saturating_sub(1);
                    // An earlier row of one of their keys may still appear above what is complete.
                    run.passed.left(*class, below.min(complete.max(above)));
                }
                run.passed.has_read_rows(&brought, &left, room);
            }
        } else {
            self.place.runs.iter_mut().for_each(|run| run.passed.forget_rows(&brought));
        }

        let took = began.elapsed();
        match job {
            Job::Refill(_) if called_off => {}
            Job::Refill(refill) => self.lanes.refilled(&refill.keys, begun.number, seen, complete),
            Job::Passed(index, wanted) if !called_off && !starts_over => {
                let is_known = ready.is_some() || !full || limit >= TELLING;
                if is_known {
                    let left = left.get(&wanted.class).and_then(|rows| rows.first()).copied();
                    self.has_read(index, wanted, left, seen, complete);
                }
            }
            Job::Passed(..) => {}
            Job::Run(index) => {
                self.place.looked = Some((Instant::now(), took));
                if let Some(run) = self.place.runs.get_mut(index) {
                    if from_bottom {
                        run.bottom = Some((Instant::now(), took));
                    }
                    // What an operator has just freed may be blocked in memory until this fetch is over: it is read again.
                    if !called_off && !starts_over {
                        run.unread = full;
                        let proven = if plants::is("mark_moves_unproven") {
                            ready.unwrap_or_default()
                        } else {
                            seen.min(complete)
                        };
                        run.mark = run.mark.max(proven);
                        run.passed.forget_rows_up_to(run.mark);
                        run.reached = run.reached.max(ready.unwrap_or_default());
                    }
                }
            }
        }
        if full && is_all_left && self.place.position(of) == before {
            self.place.in_vain = Some(took);
        }
        if full || took > SLOW {
            self.place.safe_point.advance(&*self.store).await?;
        }
        Ok(Some(found))
    }

    /// A run has been read up to `seen` for a class that is passed over, of which `left` is the lowest row that had no place. As the
    /// mark, the place to go on from moves up only to where the table is `complete`.
    fn has_read(&mut self, index: usize, wanted: Wanted, left: Option<i64>, seen: i64, complete: i64) {
        let Some(run) = self.place.runs.get_mut(index) else { return };
        match left {
            // One with a due time may have been left that stands far above what was read.
            Some(left) => {
                run.passed.read(wanted.class, left.saturating_sub(1).min(seen.min(complete).max(wanted.above)));
            }
            None if seen < run.reached && seen > wanted.above => {
                run.passed.read(wanted.class, seen.min(complete).max(wanted.above));
            }
            // From here on its events are read with the others.
            None => {
                run.passed.caught_up(wanted.class);
                run.unread = true;
            }
        }
        if !self.place.runs.iter().any(|run| run.passed.has(wanted.class)) {
            self.lanes.caught_up(wanted.class);
        }
    }

    /// Returns the lower bound of a fetch, true if that is the bottom, and the scope of the fetch.
    fn aim(&mut self, job: &Job, now: Instant, heads: bool) -> (i64, bool, Scope) {
        let heads = if heads { self.heads } else { Heads::None };
        let node = Some(self.tenure.node.clone());
        let scope = |partitions, without, only| Scope { partitions, heads, without, only, node };
        match job {
            Job::Refill(refill) => {
                (refill.floor, false, scope(refill.partitions.clone(), Vec::new(), refill.keys.clone()))
            }
            Job::Passed(index, wanted) => {
                let Some(run) = self.place.runs.get(*index) else {
                    return (0, true, scope(0..=0, Vec::new(), Vec::new()));
                };
                (wanted.above, false, scope(run.partitions.clone(), self.lanes.behind(), Vec::new()))
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

    /// Gives a partition to rows that have none, which other programs have written. Every fetch finds such rows, whatever
    /// partitions it asks for. Only those of the partitions `read` stay: of others there may be earlier rows that are not read yet.
    async fn stamp(&mut self, rows: &mut Vec<FetchedRow>, read: &RangeInclusive<u8>) -> Result<(), StoreError> {
        let mut stamps = Vec::new();
        for row in rows.iter_mut() {
            match row {
                FetchedRow::Row(row) if row.partition.is_none() => {
                    let partition = proper_partition(row);
                    row.partition = Some(partition);
                    stamps.push((row.id(), partition));
                }
                FetchedRow::Broken(row) if row.partition.is_none() => {
                    // Without a key its partition does not matter: whoever finds it declares it DEAD.
                    let partition = row.key.as_ref().map_or(0, |key| partition_of(&key.key));
                    row.partition = Some(partition);
                    stamps.push((row.id(), partition));
                }
                FetchedRow::Row(_) | FetchedRow::Broken(_) => {}
            }
        }
        if !stamps.is_empty() {
            self.store.stamp(&stamps).await?;
            let (_, ours) = self.lanes.assignment();
            let (runs, lanes) = (&mut self.place.runs, &self.lanes);
            rows.retain(|row| {
                let partition = partition(row);
                if !read.contains(&partition) {
                    // Its own run reads it, in its turn.
                    for run in runs.iter_mut().filter(|run| run.partitions.contains(&partition)) {
                        run.look_from(row.seq());
                        lanes.look_from(row.seq());
                    }
                    return false;
                }
                ours.contains(partition)
            });
        }
        Ok(())
    }

    /// Queues rows that were admitted. Returns, of each class that has its share, the rows that were left in the table for it.
    async fn queue(&mut self, rows: Vec<FetchedRow>, admitted: &[bool], source: Source) -> BTreeMap<Class, Vec<i64>> {
        let (mut good, mut verdicts) = (Vec::with_capacity(rows.len()), Vec::new());
        self.intake.poll_schedule.found(rows.iter().map(FetchedRow::seq));
        for (row, admitted) in rows.into_iter().zip(admitted) {
            match row {
                _ if !admitted => {}
                FetchedRow::Row(row) => {
                    let past = self.tenure.past(row.locked_by.as_deref());
                    good.push((Arc::new(row), past));
                }
                FetchedRow::Broken(broken) => {
                    let verdict = dead_letter(&broken, &self.intake.failures);
                    if let Some(key) = &broken.key {
                        self.intake.registry.release(self.lanes.failed(key, broken.seq, &verdict.change));
                    }
                    verdicts.push(verdict);
                }
            }
        }
        let read = good.len();
        // Without waiting for anything: what was checked of the fetch has to hold still.
        let (refused, left) = self.lanes.push(good, source);
        Counters::add(&self.intake.counters.cold, (read - refused.len()) as u64);
        self.intake.registry.release(refused);
        for verdict in verdicts {
            // The channel closes only when the term is over; the row then stays as it is.
            drop(self.verdicts.send(verdict).await);
        }
        left
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
