use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::event::partition_of;
use pillarbox_core::planted_bug;
use pillarbox_core::store::{Fetch, FetchScope, Fetched, FetchedRow, Heads, Row};
use tokio::time::Instant;

use super::{Job, MIN_CONCLUSIVE_ROWS, OrderedPoller};
use crate::claim::passed_over::ClassToRead;
use crate::claim::{SLOW_FETCH, promote_due};
use crate::observe::Counters;
use crate::queue::{Class, FetchGuard, Limits, Source};

/// Maximum number of rows that a fetch leaves out because their class has no room. Where the mark stands still, it would read them again each
/// time; those beyond the maximum are read again.
const MAX_LEFT_OUT: usize = 40_000;

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
    /// The safe point when it began: up to this `seq` the table was complete.
    safe_seq: i64,
    from_bottom: bool,
    /// True if operators have intervened, so that all has to be read from the bottom.
    starts_over: bool,
}

impl OrderedPoller {
    /// Fetches once; true if anything new was found. `None` if it has to choose anew before it asks the database.
    pub(super) async fn read(&mut self, job: Job, size: Limits, began: Instant) -> Result<Option<bool>, StoreError> {
        if self.restart_if_history_changed() {
            return Ok(None);
        }
        self.state.full_since = None;
        // To pass over all that is at the bottom once is enough.
        let may_rise = self.state.ranges.iter().any(|range| range.mark == 0) && !self.state.found_nothing;
        if (may_rise || self.is_bottom_due(&job, began)) && self.cursor.advance_safe_point().await? {
            self.start_over();
            return Ok(None);
        }
        // All rows up to it are to be seen by a fetch that begins now.
        let safe_seq = self.cursor.safe_seq();
        let in_flight = Arc::clone(&self.in_flight);
        let fetching = in_flight.begin_fetch();
        let begun = self.queue.begin_fetch();
        if begun.freed.is_some() {
            // The job was chosen before this was left in the table again, and may begin above it: then it would be overtaken.
            self.reread_from(begun.freed);
            return Ok(None);
        }
        if self.state.left_out.version != in_flight.pauses().version() {
            return Ok(None);
        }
        let Aim { fetch, partitions, from_bottom } = self.aim(&job, &fetching, size, began, begun.heads);
        let Some(fetched) = self.cursor.fetch(&fetch).await? else {
            drop(fetching);
            return std::future::pending().await;
        };
        let Fetched { mut rows, truncated, next_due, interventions, has_heads, .. } = fetched;
        if self.restart_if_rows_were_missed(&fetch) {
            return Ok(Some(true));
        }
        if fetch.scope.as_ref().is_some_and(|scope| scope.heads != Heads::None) {
            self.queue.saw_heads(begun.number, has_heads);
        }
        let starts_over = self.restart_if_intervened(interventions);
        if starts_over && !from_bottom {
            return Ok(Some(true));
        }
        if let Some(delay) = next_due {
            self.cursor.poll_schedule.due_in(delay);
        }
        self.cursor.answered(size, &rows, began);
        let full = truncated || rows.len() >= fetch.limit;
        self.state.found_nothing = !full && rows.is_empty();
        let ready = rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq).max();
        let seen = if full { ready.unwrap_or(fetch.above) } else { i64::MAX };
        self.arrange(&mut rows, seen, &partitions).await?;
        if self.restart_if_rows_were_missed(&fetch) {
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
            safe_seq,
            from_bottom,
            starts_over,
        };
        let found = self.take(job, read, begun.number, rows, fetching).await;
        if (full || began.elapsed() > SLOW_FETCH) && self.cursor.advance_safe_point().await? {
            self.start_over();
        }
        Ok(Some(found))
    }

    /// True if the job is to read a range from the bottom, where it finds what the mark should not have passed.
    fn is_bottom_due(&self, job: &Job, now: Instant) -> bool {
        let Job::Range(index) = job else { return false };
        self.state.ranges.get(*index).is_some_and(|range| range.is_bottom_due(now))
    }

    /// Begins anew if the database went back. True if so, or if a type was resumed that the fetch left in the table: there is more to be read
    /// than it has seen, which may belong before what it brought.
    fn restart_if_rows_were_missed(&mut self, fetch: &Fetch) -> bool {
        self.restart_if_history_changed() || !self.cursor.type_pause.are_paused(&fetch.without_types)
    }

    /// Puts the rows of a fetch, which has seen all of its scope up to `seen`, into the order in which they are delivered.
    async fn arrange(
        &mut self,
        rows: &mut Vec<FetchedRow>,
        seen: i64,
        partitions: &RangeInclusive<u8>,
    ) -> Result<(), StoreError> {
        let promoted = promote_due(&*self.cursor.store, &self.cursor.poll_schedule, rows, |row| {
            row.seq > seen && row.order_key().is_some() && !planted_bug::is_active("due_rows_keep_no_place")
        });
        self.cursor.ask(promoted).await?;
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
        let class = if let Job::Passed(_, wanted) = &job { Some(wanted.class) } else { None };
        let since = self.state.paused_since.unwrap_or(read.began);
        let source = Source { fetch, floor: read.above, refill: matches!(job, Job::Refill(..)), class, since };
        let brought: Vec<(i64, bool)> = rows.iter().map(|row| (row.seq(), row.is_timed())).collect();
        let left = self.queue(rows, &admitted, source).await;
        // After the rows are queued: memory may have begun anew in between, which refuses them.
        let is_worthless = fetching.is_called_off();
        drop(fetching);
        let is_all_left = left.values().map(Vec::len).sum::<usize>() == brought.len();
        let of = job.place();
        let before = self.state.position(of);
        self.remember_left(&job, &read, &brought, &left);
        let took = read.began.elapsed();
        match job {
            Job::Range(index) => self.note_read_range(index, read, is_worthless, took),
            Job::Refill(_) | Job::Passed(..) if is_worthless => {}
            Job::Refill(refill) => self.queue.refilled(&refill.keys, fetch, read.seen, read.safe_seq),
            Job::Passed(index, wanted) => self.note_read_passed(index, wanted, read, &left),
        }
        if read.full && is_all_left && self.state.position(of) == before {
            self.cursor.read_in_vain(took);
        }
        // Rows that are in memory already are no reason to poll again soon.
        admitted.contains(&true)
    }

    /// Remembers the rows that were left in the table for lack of room for their class.
    fn remember_left(&mut self, job: &Job, read: &Read, brought: &[(i64, bool)], left: &BTreeMap<Class, Vec<i64>>) {
        let (Job::Range(index) | Job::Passed(index, _)) = job else {
            return self.state.ranges.iter_mut().for_each(|range| range.passed.forget_rows(brought));
        };
        let remembered: usize = self.state.ranges.iter().map(|range| range.passed.rows_remembered()).sum();
        let Some(range) = self.state.ranges.get_mut(*index) else { return };
        for (class, rows) in left.iter().filter(|(class, _)| **class != Class::PAUSED) {
            let below = rows.first().copied().unwrap_or_default().saturating_sub(1);
            // An earlier row of one of their keys may stand above what this fetch has seen, and may still appear above the
            // safe point.
            let read_up_to = read.seen.min(read.safe_seq).max(read.above);
            range.passed.left(*class, below.min(read_up_to));
        }
        range.passed.note_read_rows(brought, left, MAX_LEFT_OUT.saturating_sub(remembered));
    }

    /// A range has been read: its mark moves up as far as nothing was missed, which is at most to the safe point.
    fn note_read_range(&mut self, index: usize, read: Read, is_worthless: bool, took: Duration) {
        let now = Instant::now();
        self.state.last_read = Some((now, took));
        let Some(range) = self.state.ranges.get_mut(index) else { return };
        if read.from_bottom {
            range.bottom = Some((now, took));
        }
        // A row that an operator has just freed may be blocked in memory until this fetch is over: it is read again.
        if is_worthless || read.starts_over {
            return;
        }
        let ready = read.ready.unwrap_or_default();
        let read_up_to =
            if planted_bug::is_active("mark_moves_unproven") { ready } else { read.seen.min(read.safe_seq) };
        range.unread = read.full;
        range.mark = range.mark.max(read_up_to);
        range.passed.forget_rows_up_to(range.mark);
        range.reached = range.reached.max(ready);
    }

    /// A range has been read for a class that is passed over, of which `left` are the rows that had no place. As the mark, the place to
    /// go on from moves up to the safe point at most.
    fn note_read_passed(&mut self, index: usize, wanted: ClassToRead, read: Read, left: &BTreeMap<Class, Vec<i64>>) {
        let Read { seen, safe_seq, starts_over, .. } = read;
        let is_telling = read.ready.is_some() || !read.full || read.limit >= MIN_CONCLUSIVE_ROWS;
        if starts_over || !is_telling {
            return;
        }
        let Some(range) = self.state.ranges.get_mut(index) else { return };
        let left = left.get(&wanted.class).and_then(|rows| rows.first()).copied();
        let read_up_to = seen.min(safe_seq).max(wanted.above);
        match left {
            // One with a due time may have been left that stands far above what was read.
            Some(left) => range.passed.read(wanted.class, left.saturating_sub(1).min(read_up_to)),
            None if seen < range.reached && seen > wanted.above => range.passed.read(wanted.class, read_up_to),
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
        let backlogged = || self.queue.backlogged();
        let (above, from_bottom, partitions, without, only) = match job {
            Job::Refill(refill) => (refill.floor, false, refill.partitions.clone(), Vec::new(), refill.keys.clone()),
            Job::Passed(index, wanted) => {
                let partitions = self.state.ranges.get(*index).map_or(0..=0, |range| range.partitions.clone());
                (wanted.above, false, partitions, backlogged(), Vec::new())
            }
            Job::Range(index) => match self.state.ranges.get_mut(*index) {
                None => (0, true, 0..=0, Vec::new(), Vec::new()),
                Some(range) => {
                    if range.is_bottom_due(now) {
                        range.mark = 0;
                        self.queue.reread_from(0);
                    }
                    if range.mark == 0 {
                        // Now and then it is asked in any case: what is known may be wrong where rows are changed by hand.
                        heads = self.heads;
                    }
                    (range.mark, range.mark == 0, range.partitions.clone(), backlogged(), Vec::new())
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
        let scope = FetchScope { partitions: partitions.clone(), heads, without, only, node };
        let Limits { rows: limit, bytes: max_bytes } = size;
        let without_types = self.state.paused.clone();
        let without_handlers = self.state.left_out.handlers.clone();
        let fetch = Fetch { above, exclude, limit, max_bytes, scope: Some(scope), without_types, without_handlers };
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
                    let partition = row.event.partition();
                    row.partition = Some(partition);
                    assigned.push((row.id(), partition));
                }
                FetchedRow::Broken(row) if row.partition.is_none() => {
                    // Without a key its partition does not matter: the node that finds it declares it DEAD.
                    let partition = row.key.as_ref().map_or(0, |key| partition_of(&key.key));
                    row.partition = Some(partition);
                    assigned.push((row.id(), partition));
                }
                FetchedRow::Row(_) | FetchedRow::Broken(_) => {}
            }
        }
        if !assigned.is_empty() {
            self.cursor.ask(self.cursor.store.assign_partitions(&assigned)).await?;
            let (_, ours) = self.queue.assignment();
            let (ranges, queue) = (&mut self.state.ranges, &self.queue);
            rows.retain(|row| {
                let partition = partition(row);
                if !read.contains(&partition) {
                    // Its own range reads it, in its turn.
                    for range in ranges.iter_mut().filter(|range| range.partitions.contains(&partition)) {
                        range.reread_from(row.seq());
                        queue.reread_from(row.seq());
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
        let (events, mut broken) = self.cursor.sort_out(rows, admitted);
        broken.retain(|(row, verdict)| match &row.key {
            Some(key) => self.in_flight.failed(key, row.seq, &verdict.change),
            None => true,
        });
        let read = events.len();
        let tenure = &self.cursor.tenure;
        let with_prior_attempt = |row: Arc<Row>| {
            let prior_attempt = tenure.prior_attempt(row.locked_by.as_deref());
            (row, prior_attempt)
        };
        let events: Vec<_> = events.into_iter().map(with_prior_attempt).collect();
        // Without waiting for anything: what was checked of the fetch has to hold still.
        let (refused, left) = self.queue.push(events, source);
        Counters::add(&self.cursor.telemetry.counters.cold, (read - refused.len()) as u64);
        self.in_flight.remove(refused);
        for (_, verdict) in broken {
            // The channel closes only when the term is over; the row then stays as it is.
            drop(self.verdicts.send(verdict).await);
        }
        left
    }
}

fn partition(row: &FetchedRow) -> u8 {
    match row {
        FetchedRow::Row(row) => row.partition,
        FetchedRow::Broken(row) => row.partition,
    }
    .unwrap_or_default()
}
