use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::event::partition_of;
use pillarbox_core::plants;
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow, Heads, Row, Scope};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::passed_over::{PassedOver, Wanted};
use super::{PATIENCE, ReadCursor, SLOW, promote_due};
use crate::observe::Counters;
use crate::queue::{Class, FetchGuard, InFlight, KeyedQueue, Limits, Refill, Source};

/// The shortest time between two reads of a range from the bottom of the table, if the second has no other reason.
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

/// Reads the pending rows of this node's partitions into its [`KeyedQueue`], so that no event of a key overtakes another.
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
pub(crate) struct OrderedPoller {
    pub(crate) cursor: ReadCursor,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) queue: Arc<KeyedQueue>,
    pub(crate) heads: Heads,
    /// The channel for the verdicts on rows that make no event.
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) stop: CancellationToken,
    pub(crate) state: ReadState,
}

/// The position in each range of partitions, and what was read last.
#[derive(Debug, Default)]
pub(crate) struct ReadState {
    assignment: u64,
    /// The number of times that operators had intervened when the table was last read.
    interventions: i64,
    ranges: Vec<PartitionRange>,
    /// The range to read next.
    next: usize,
    /// The end of the last read of a range, and its duration.
    looked: Option<(Instant, Duration)>,
    /// True if keys were refilled last.
    refills: bool,
    /// True if the last read was of a class that is passed over.
    read_passed: bool,
    /// The range of which such a class is read next.
    next_passed: usize,
    /// Since when there is something to read and no room for it.
    full_since: Option<Instant>,
    /// The types that were paused at the last look.
    paused: Vec<Box<str>>,
    /// The time at which it was asked.
    paused_since: Option<Instant>,
}

/// Adjoining partitions of this node, which is what one statement can read.
#[derive(Debug)]
struct PartitionRange {
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

impl ReadState {
    /// The place up to which a range has been read, or a class of it that is passed over, and the number of rows that need not be read again;
    /// `None` for keys that are refilled.
    fn position(&self, of: Option<(usize, Option<Class>)>) -> Option<(i64, usize)> {
        let (index, class) = of?;
        let range = self.ranges.get(index)?;
        let above = class.map_or(range.mark, |class| range.passed.above(class).unwrap_or(i64::MAX));
        Some((above, range.passed.rows_remembered()))
    }
}

impl PartitionRange {
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
    /// The range with this index.
    Range(usize),
    /// Keys that are behind.
    Refill(Refill),
    /// A class that is passed over, of the range with this index.
    Passed(usize, Wanted),
}

/// A fetch that is to be made.
struct Aim {
    fetch: Fetch,
    partitions: RangeInclusive<u8>,
    from_bottom: bool,
}

/// A fetch that was answered.
#[derive(Debug, Clone, Copy)]
struct Read {
    began: Instant,
    /// The lower bound that it had.
    above: i64,
    /// The rows that it asked for at most.
    limit: usize,
    /// True if there is more.
    full: bool,
    /// The highest row without a due time.
    ready: Option<i64>,
    /// Everything of its scope up to here has been seen.
    seen: i64,
    /// The `seq` up to which the table was complete when it began.
    complete: i64,
    from_bottom: bool,
    /// True if operators have intervened, so that all has to be read from the bottom.
    starts_over: bool,
}

impl Job {
    /// The range that is read, and the class if it is for one.
    fn place(&self) -> Option<(usize, Option<Class>)> {
        match self {
            Self::Range(index) => Some((*index, None)),
            Self::Passed(index, wanted) => Some((*index, Some(wanted.class))),
            Self::Refill(_) => None,
        }
    }
}

impl OrderedPoller {
    /// Runs until it is told to stop. Dropping a fetch half-way is safe: it holds nothing in the database.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.read_for_ever()).await;
    }

    async fn read_for_ever(&mut self) {
        loop {
            if self.follow_assignment() {
                self.cursor.expect_more();
            }
            self.follow_pauses();
            let Some((job, room)) = self.job() else {
                let next_look = self.cursor.next_look();
                self.wait(next_look).await;
                // A node that owns nothing yet has nothing to look at either, so no look plans the next one.
                if self.state.ranges.is_empty() && Instant::now() >= next_look {
                    self.cursor.plan_look(false);
                }
                continue;
            };
            let refills = !matches!(job, Job::Range(..));
            let (began, mut size) = (Instant::now(), self.cursor.size(room));
            if matches!(job, Job::Passed(..)) {
                // What finds no room stays in the table.
                size.rows = size.rows.max(TELLING);
            }
            match self.read(job, size, began).await {
                Ok(found) => {
                    self.cursor.succeeded(found.is_some()).await;
                    if !refills {
                        self.cursor.plan_look(found.unwrap_or(true));
                    } else if self.are_others_due() {
                        // Keys that are refilled without end put off no look at the others.
                        self.look_from(None);
                    }
                }
                Err(error) => self.cursor.failed(&error, size, began).await,
            }
        }
    }

    /// Reads the partitions that were gained from the bottom. True if others are owned than before.
    fn follow_assignment(&mut self) -> bool {
        let (assignment, partitions) = self.queue.assignment();
        let changed = assignment != self.state.assignment;
        if changed {
            self.state.assignment = assignment;
            self.state.ranges = partitions.runs().into_iter().map(PartitionRange::new).collect();
            self.queue.pass_nothing();
        }
        changed
    }

    /// Takes over the types that are paused. If one is resumed, all is read from the bottom, where its rows may be.
    fn follow_pauses(&mut self) {
        let now = Instant::now();
        let paused = self.cursor.paused(now);
        if paused.resumed {
            self.start_over();
        }
        (self.state.paused, self.state.paused_since) = (paused.types, Some(now));
    }

    fn are_others_due(&self) -> bool {
        let pause = |took: Duration| self.cursor.config.min_interval.max(took * OTHERS_SHARE).min(BOTTOM_EVERY);
        self.state.looked.is_none_or(|(at, took)| at.elapsed() >= pause(took))
    }

    /// The next thing to read, and how much of it; `None` if there is nothing, or no room for it.
    fn job(&mut self) -> Option<(Job, Limits)> {
        let range = self.queue.room().and_then(|room| Some((self.unread()?, room)));
        if let Some(job) = self.passed().filter(|_| !(self.state.read_passed && range.is_some())) {
            self.state.read_passed = true;
            if let (Job::Passed(index, _), _) = &job {
                self.state.next_passed = index + 1;
            }
            return Some(job);
        }
        self.state.read_passed = false;
        // In turns, if there are both.
        let refills = !self.state.refills || range.is_none();
        let refill = if refills { self.queue.refill(self.cursor.config.batch, Instant::now()) } else { None };
        self.state.refills = refill.is_some();
        if let Some(refill) = refill {
            let bytes = self.queue.shares().fetch_bytes();
            let room = Limits { rows: refill.wanted, bytes };
            return Some((Job::Refill(refill), room));
        }
        let (range, room) = range?;
        self.state.next = range + 1;
        Some((Job::Range(range), room))
    }

    /// A class to read of those that are passed over: of each range in turn, since reading one may not get on.
    fn passed(&self) -> Option<(Job, Limits)> {
        let shares = self.queue.shares();
        let ranges = self.state.ranges.iter().enumerate();
        let (index, wanted) = ranges
            .filter_map(|(index, range)| Some((index, range.passed.wanted(shares)?)))
            .min_by_key(|(index, _)| (*index < self.state.next_passed, *index))?;
        Some((Job::Passed(index, wanted), wanted.room))
    }

    /// Waits for room for what is to be read, and passes over the classes that have their share if there is none for a while.
    async fn wait_for_room(&mut self) {
        let patience = *self.state.full_since.get_or_insert_with(Instant::now) + PATIENCE;
        tokio::select! {
            () = self.queue.wanted(true) => {}
            () = tokio::time::sleep_until(patience), if self.queue.shares().is_divided() => {
                self.state.full_since = None;
                for class in self.queue.shares().pass_over() {
                    self.state.ranges.iter_mut().for_each(|range| range.passed.left(class, range.mark));
                }
            }
        }
    }

    /// The next range that there may be something to read of.
    fn unread(&self) -> Option<usize> {
        let ranges = self.state.ranges.len();
        let mut turn = (0..ranges).map(|offset| (self.state.next + offset) % ranges.max(1));
        turn.find(|index| self.state.ranges.get(*index).is_some_and(|range| range.unread))
    }

    /// Waits for a reason to read, until `latest`.
    async fn wait(&mut self, latest: Instant) {
        if self.state.ranges.iter().any(|range| range.unread) {
            return self.wait_for_room().await;
        }
        let (telemetry, poll_schedule) = (Arc::clone(&self.cursor.telemetry), Arc::clone(&self.cursor.poll_schedule));
        tokio::select! {
            look = telemetry.loops.look.until(latest, poll_schedule.wait(latest)) => self.look_from(look.lowest),
            () = self.queue.wanted(false) => {}
        }
    }

    /// Something may be there to be read, at or above `lowest`.
    fn look_from(&mut self, lowest: Option<i64>) {
        let Some(seq) = lowest else {
            // What was only heard of from elsewhere is above the marks, or waits for the next look from the bottom.
            return self.state.ranges.iter_mut().for_each(|range| range.unread = true);
        };
        self.state.ranges.iter_mut().for_each(|range| range.look_from(seq));
        self.queue.look_from(seq);
    }

    /// True if operators have intervened: rows may have become due below those that are read above the mark. Then all has to be
    /// read from the bottom.
    fn has_to_start_over(&mut self, interventions: i64) -> bool {
        let changed = std::mem::replace(&mut self.state.interventions, interventions) != interventions
            && !plants::is("interventions_ignored");
        if changed {
            self.queue.intervened();
            self.start_over();
        }
        changed
    }

    /// Begins at the bottom if the database may be in an older state than what is known of it here, and says if it may.
    fn has_lost_its_place(&mut self) -> bool {
        let changed = self.cursor.history_changed();
        if changed {
            self.start_over();
        }
        changed
    }

    fn start_over(&mut self) {
        for range in &mut self.state.ranges {
            (range.mark, range.unread) = (0, true);
            range.passed.start_over();
        }
        self.queue.look_from(0);
    }

    /// Fetches once; true if anything new was found. `None` if it has to choose anew before it asks the database.
    async fn read(&mut self, job: Job, size: Limits, began: Instant) -> Result<Option<bool>, StoreError> {
        if self.has_lost_its_place() {
            return Ok(None);
        }
        self.state.full_since = None;
        if self.state.ranges.iter().any(|range| range.mark == 0) {
            // To pass over all that is at the bottom once is enough.
            self.cursor.prove().await?;
        }
        // What is complete now is all to be seen by a fetch that begins now.
        let complete = self.cursor.complete();
        let in_flight = Arc::clone(&self.in_flight);
        let fetching = in_flight.begin_fetch();
        let begun = self.queue.begin_fetch();
        if begun.freed.is_some() {
            // The job was chosen before this was given back to the table, and may begin above it: then it would be overtaken.
            self.look_from(begun.freed);
            return Ok(None);
        }
        let Aim { fetch, partitions, from_bottom } = self.aim(&job, &fetching, size, began, begun.heads);
        let Fetched { mut rows, cut, next_due, interventions, heads, .. } = self.cursor.fetch(&fetch).await?;
        if self.has_missed_something(&fetch) {
            return Ok(Some(true));
        }
        if fetch.scope.as_ref().is_some_and(|scope| scope.heads != Heads::None) {
            self.queue.saw_heads(begun.number, heads);
        }
        let starts_over = self.has_to_start_over(interventions);
        if starts_over && !from_bottom {
            return Ok(Some(true));
        }
        if let Some(delay) = next_due {
            self.cursor.poll_schedule.due_in(delay);
        }
        self.cursor.answered(size, &rows, began);
        let full = cut || rows.len() >= fetch.limit;
        let ready = rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq).max();
        let seen = if full { ready.unwrap_or(fetch.above) } else { i64::MAX };
        self.arrange(&mut rows, seen, &partitions).await?;
        if self.has_missed_something(&fetch) {
            // While this waited for the database.
            return Ok(Some(true));
        }
        let read = Read {
            began,
            above: fetch.above,
            limit: fetch.limit,
            full,
            ready,
            seen,
            complete,
            from_bottom,
            starts_over,
        };
        let found = self.take(job, read, begun.number, rows, fetching).await;
        if full || began.elapsed() > SLOW {
            self.cursor.prove().await?;
        }
        Ok(Some(found))
    }

    /// True if there is more to be read than a fetch has seen, and that may belong before what it brought: the database went back, or a
    /// type was resumed that it left in the table.
    fn has_missed_something(&mut self, fetch: &Fetch) -> bool {
        self.has_lost_its_place() || !self.cursor.type_pause.are_paused(&fetch.without_types)
    }

    /// Puts the rows of a fetch, which has seen all of its scope up to `seen`, into the order in which they are delivered.
    async fn arrange(
        &mut self,
        rows: &mut Vec<FetchedRow>,
        seen: i64,
        partitions: &RangeInclusive<u8>,
    ) -> Result<(), StoreError> {
        promote_due(&*self.cursor.store, &self.cursor.poll_schedule, rows, |row| {
            row.seq > seen && row.order_key().is_some() && !plants::is("due_rows_keep_no_place")
        })
        .await?;
        self.assign_partitions(rows, partitions).await?;
        rows.sort_unstable_by_key(FetchedRow::seq);
        Ok(())
    }

    /// Takes the rows of the fetch with this number, and goes on from there; true if there was anything new.
    async fn take(
        &mut self,
        job: Job,
        read: Read,
        fetch: u64,
        rows: Vec<FetchedRow>,
        fetching: FetchGuard<'_>,
    ) -> bool {
        let admitted = fetching.admit(rows.iter().map(|row| (row.id(), row.is_timed(), Some(partition(row)))));
        let is_worthless = fetching.is_called_off();
        let class = if let Job::Passed(_, wanted) = &job { Some(wanted.class) } else { None };
        let since = self.state.paused_since.unwrap_or(read.began);
        let source = Source { fetch, floor: read.above, refill: matches!(job, Job::Refill(..)), class, since };
        let brought: Vec<(i64, bool)> = rows.iter().map(|row| (row.seq(), row.is_timed())).collect();
        let left = self.queue(rows, &admitted, source).await;
        drop(fetching);
        let is_all_left = left.values().map(Vec::len).sum::<usize>() == brought.len();
        let of = job.place();
        let before = self.state.position(of);
        self.remember_left(&job, &read, &brought, &left);
        let took = read.began.elapsed();
        match job {
            Job::Range(index) => self.has_read_range(index, read, is_worthless, took),
            Job::Refill(_) | Job::Passed(..) if is_worthless => {}
            Job::Refill(refill) => self.queue.refilled(&refill.keys, fetch, read.seen, read.complete),
            Job::Passed(index, wanted) => self.has_read_passed(index, wanted, read, &left),
        }
        if read.full && is_all_left && self.state.position(of) == before {
            self.cursor.read_in_vain(took);
        }
        // Rows that are in memory already are no reason to look again soon.
        admitted.contains(&true)
    }

    /// Remembers the rows that were left in the table for lack of room for their class.
    fn remember_left(&mut self, job: &Job, read: &Read, brought: &[(i64, bool)], left: &BTreeMap<Class, Vec<i64>>) {
        let (Job::Range(index) | Job::Passed(index, _)) = job else {
            return self.state.ranges.iter_mut().for_each(|range| range.passed.forget_rows(brought));
        };
        let remembered: usize = self.state.ranges.iter().map(|range| range.passed.rows_remembered()).sum();
        let Some(range) = self.state.ranges.get_mut(*index) else { return };
        for (class, rows) in left {
            let below = rows.first().copied().unwrap_or_default().saturating_sub(1);
            // An earlier row of one of their keys may still appear above what is complete.
            range.passed.left(*class, below.min(read.complete.max(read.above)));
        }
        range.passed.has_read_rows(brought, left, MOST_LEFT_OUT.saturating_sub(remembered));
    }

    /// A range has been read: its mark moves up to where it is proven that nothing was missed.
    fn has_read_range(&mut self, index: usize, read: Read, is_worthless: bool, took: Duration) {
        let now = Instant::now();
        self.state.looked = Some((now, took));
        let Some(range) = self.state.ranges.get_mut(index) else { return };
        if read.from_bottom {
            range.bottom = Some((now, took));
        }
        // What an operator has just freed may be blocked in memory until this fetch is over: it is read again.
        if is_worthless || read.starts_over {
            return;
        }
        let ready = read.ready.unwrap_or_default();
        let proven = if plants::is("mark_moves_unproven") { ready } else { read.seen.min(read.complete) };
        range.unread = read.full;
        range.mark = range.mark.max(proven);
        range.passed.forget_rows_up_to(range.mark);
        range.reached = range.reached.max(ready);
    }

    /// A range has been read for a class that is passed over, of which `left` are the rows that had no place. As the mark, the place to
    /// go on from moves up only to where the table is proven complete.
    fn has_read_passed(&mut self, index: usize, wanted: Wanted, read: Read, left: &BTreeMap<Class, Vec<i64>>) {
        let Read { seen, complete, starts_over, .. } = read;
        let is_telling = read.ready.is_some() || !read.full || read.limit >= TELLING;
        if starts_over || !is_telling {
            return;
        }
        let Some(range) = self.state.ranges.get_mut(index) else { return };
        let left = left.get(&wanted.class).and_then(|rows| rows.first()).copied();
        let proven = seen.min(complete).max(wanted.above);
        match left {
            // One with a due time may have been left that stands far above what was read.
            Some(left) => range.passed.read(wanted.class, left.saturating_sub(1).min(proven)),
            None if seen < range.reached && seen > wanted.above => range.passed.read(wanted.class, proven),
            // From here on its events are read with the others.
            None => {
                range.passed.caught_up(wanted.class);
                range.unread = true;
            }
        }
        if !self.state.ranges.iter().any(|range| range.passed.has(wanted.class)) {
            self.queue.caught_up(wanted.class);
        }
    }

    /// The fetch to make for a job.
    fn aim(&mut self, job: &Job, fetching: &FetchGuard<'_>, size: Limits, now: Instant, may_have_heads: bool) -> Aim {
        let mut heads = if may_have_heads { self.heads } else { Heads::None };
        let behind = || self.queue.behind();
        let (above, from_bottom, partitions, without, only) = match job {
            Job::Refill(refill) => (refill.floor, false, refill.partitions.clone(), Vec::new(), refill.keys.clone()),
            Job::Passed(index, wanted) => {
                let partitions = self.state.ranges.get(*index).map_or(0..=0, |range| range.partitions.clone());
                (wanted.above, false, partitions, behind(), Vec::new())
            }
            Job::Range(index) => match self.state.ranges.get_mut(*index) {
                None => (0, true, 0..=0, Vec::new(), Vec::new()),
                Some(range) => {
                    if range.is_bottom_due(now) {
                        range.mark = 0;
                        self.queue.look_from(0);
                    }
                    if range.mark == 0 {
                        // Now and then it is asked in any case: what is known may be wrong where rows are changed by hand.
                        heads = self.heads;
                    }
                    (range.mark, range.mark == 0, range.partitions.clone(), behind(), Vec::new())
                }
            },
        };
        let mut exclude = fetching.exclude(if above == 0 { i64::MIN } else { above });
        if let Job::Range(index) = job
            && let Some(range) = self.state.ranges.get(*index)
        {
            exclude.extend(range.passed.rows(above));
        }
        exclude.sort_unstable();
        let node = Some(self.cursor.tenure.node.clone());
        let scope = Scope { partitions: partitions.clone(), heads, without, only, node };
        let Limits { rows: limit, bytes: max_bytes } = size;
        let without_types = self.state.paused.clone();
        let fetch = Fetch { above, exclude, limit, max_bytes, scope: Some(scope), without_types };
        Aim { fetch, partitions, from_bottom }
    }

    /// Gives a partition to rows that have none, which other programs have written. Every fetch finds such rows, whatever
    /// partitions it asks for. Only those of the partitions `read` stay: of others there may be earlier rows that are not read yet.
    async fn assign_partitions(
        &mut self,
        rows: &mut Vec<FetchedRow>,
        read: &RangeInclusive<u8>,
    ) -> Result<(), StoreError> {
        let mut assigned = Vec::new();
        for row in rows.iter_mut() {
            match row {
                FetchedRow::Row(row) if row.partition.is_none() => {
                    let partition = proper_partition(row);
                    row.partition = Some(partition);
                    assigned.push((row.id(), partition));
                }
                FetchedRow::Broken(row) if row.partition.is_none() => {
                    // Without a key its partition does not matter: whoever finds it declares it DEAD.
                    let partition = row.key.as_ref().map_or(0, |key| partition_of(&key.key));
                    row.partition = Some(partition);
                    assigned.push((row.id(), partition));
                }
                FetchedRow::Row(_) | FetchedRow::Broken(_) => {}
            }
        }
        if !assigned.is_empty() {
            self.cursor.store.assign_partitions(&assigned).await?;
            let (_, ours) = self.queue.assignment();
            let (ranges, queue) = (&mut self.state.ranges, &self.queue);
            rows.retain(|row| {
                let partition = partition(row);
                if !read.contains(&partition) {
                    // Its own range reads it, in its turn.
                    for range in ranges.iter_mut().filter(|range| range.partitions.contains(&partition)) {
                        range.look_from(row.seq());
                        queue.look_from(row.seq());
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
        let (events, broken) = self.cursor.sort_out(rows, admitted);
        for (row, verdict) in &broken {
            if let Some(key) = &row.key {
                self.in_flight.failed(key, row.seq, &verdict.change);
            }
        }
        let read = events.len();
        let tenure = &self.cursor.tenure;
        let with_past = |row: Row| {
            let past = tenure.past(row.locked_by.as_deref());
            (Arc::new(row), past)
        };
        let events: Vec<_> = events.into_iter().map(with_past).collect();
        // Without waiting for anything: what was checked of the fetch has to hold still.
        let (refused, left) = self.queue.push(events, source);
        Counters::add(&self.cursor.telemetry.counters.cold, (read - refused.len()) as u64);
        self.in_flight.forget(refused);
        for (_, verdict) in broken {
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
