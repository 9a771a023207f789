mod read;
mod state;

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::planted_bug;
use pillarbox_core::row::Verdict;
use pillarbox_core::store::Heads;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::passed_over::ClassToRead;
use super::{MAX_WAIT_FOR_ROOM, ReadCursor};
use crate::queue::{Class, InFlight, KeyedQueue, Limits, Refill};

use state::{BOTTOM_INTERVAL, PartitionRange};

pub(crate) use state::ReadState;

/// While backlogged keys are read without end, reading others takes at most this share of the time: it passes over all
/// that waits of those keys.
const OTHERS_SHARE: u32 = 10;
/// Of so many rows, one would be without a due time if there is any. Of fewer, due rows of one class could hide for ever that there is
/// nothing more of another one.
const MIN_CONCLUSIVE_ROWS: usize = 3;

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
/// A fetch begins at the mark. The mark moves up only to the [safe point](super::SafePoint): a row that appears below the mark
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

/// The next read of the table.
#[derive(Debug)]
enum Job {
    /// The range with this index.
    Range(usize),
    /// Backlogged keys.
    Refill(Refill),
    /// A class that is passed over, of the range with this index.
    Passed(usize, ClassToRead),
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
                let next_poll = self.cursor.next_poll();
                self.wait(next_poll).await;
                // A node that owns nothing yet has nothing to read either, so no poll plans the next one.
                if self.state.ranges.is_empty() && Instant::now() >= next_poll {
                    self.cursor.plan_poll(false);
                }
                continue;
            };
            let refills = !matches!(job, Job::Range(..));
            let (began, mut size) = (Instant::now(), self.cursor.size(room));
            if matches!(job, Job::Passed(..)) {
                // Rows that find no room stay in the table.
                size.rows = size.rows.max(MIN_CONCLUSIVE_ROWS);
            }
            match self.read(job, size, began).await {
                Ok(found) => {
                    self.cursor.succeeded(found.is_some()).await;
                    if !refills {
                        self.cursor.plan_poll(found.unwrap_or(true));
                    } else if self.are_others_due() {
                        // Keys that are refilled without end put off no read of the others.
                        self.reread_from(None);
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
        // Types that operators have paused are read all the same: what follows in their keys waits for them.
        let left_out = self.in_flight.pauses().left_out();
        if paused.resumed || left_out.version != self.state.left_out.version {
            self.start_over();
        }
        self.state.left_out = left_out;
        (self.state.paused, self.state.paused_since) = (paused.types, Some(now));
    }

    fn are_others_due(&self) -> bool {
        let pause = |took: Duration| self.cursor.config.min_interval.max(took * OTHERS_SHARE).min(BOTTOM_INTERVAL);
        self.state.last_read.is_none_or(|(at, took)| at.elapsed() >= pause(took))
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
            .filter_map(|(index, range)| Some((index, range.passed.class_to_read(shares)?)))
            .min_by_key(|(index, _)| (*index < self.state.next_passed, *index))?;
        Some((Job::Passed(index, wanted), wanted.room))
    }

    /// Waits for room for what is to be read, and passes over the classes that have their share if there is none for a while.
    async fn wait_for_room(&mut self) {
        let pass_over_at = *self.state.full_since.get_or_insert_with(Instant::now) + MAX_WAIT_FOR_ROOM;
        tokio::select! {
            () = self.queue.wanted(true) => {}
            () = tokio::time::sleep_until(pass_over_at), if self.queue.shares().is_divided() => {
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
            poll = telemetry.loops.poll.until(latest, poll_schedule.wait(latest)) => self.reread_from(poll.lowest),
            () = self.queue.wanted(false) => {}
        }
    }

    /// Something may be there to be read, at or above `lowest`.
    fn reread_from(&mut self, lowest: Option<i64>) {
        let Some(seq) = lowest else {
            // Rows that were only heard of from elsewhere are above the marks, or wait for the next read from the bottom.
            return self.state.ranges.iter_mut().for_each(|range| range.unread = true);
        };
        self.state.ranges.iter_mut().for_each(|range| range.reread_from(seq));
        self.queue.reread_from(seq);
    }

    /// Begins at the bottom if operators have intervened, and says if they have: rows may have become due below those that are read above
    /// the mark.
    fn restart_if_intervened(&mut self, interventions: i64) -> bool {
        let changed = std::mem::replace(&mut self.state.interventions, interventions) != interventions
            && !planted_bug::is_active("interventions_ignored");
        if changed {
            self.queue.intervened();
            self.start_over();
        }
        changed
    }

    /// Begins at the bottom if the database may be in an older state than what is known of it here, and says if it may.
    fn restart_if_history_changed(&mut self) -> bool {
        let changed = self.cursor.forget_if_history_changed();
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
        self.queue.reread_from(0);
    }
}
