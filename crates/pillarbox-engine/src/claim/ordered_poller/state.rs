use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::Instant;

use crate::claim::PassedOver;
use crate::operator_pauses::LeftOut;
use crate::queue::Class;

/// The shortest time between two reads of a range from the bottom of the table, if the second has no other reason.
pub(super) const BOTTOM_INTERVAL: Duration = Duration::from_secs(15);
/// Reading from the bottom takes at most this share of the time, however many rows there have to be passed over.
const BOTTOM_SHARE: u32 = 50;

/// The position in each range of partitions, and what was read last.
#[derive(Debug, Default)]
pub(crate) struct ReadState {
    pub(super) assignment: u64,
    /// The number of times that operators had intervened when the table was last read.
    pub(super) interventions: i64,
    pub(super) ranges: Vec<PartitionRange>,
    /// The range to read next.
    pub(super) next: usize,
    /// The end of the last read of a range, and its duration.
    pub(super) last_read: Option<(Instant, Duration)>,
    /// True if the last read found nothing, so that there is nothing to pass over.
    pub(super) found_nothing: bool,
    /// True if keys were refilled last.
    pub(super) refills: bool,
    /// True if the last read was of a class that is passed over.
    pub(super) read_passed: bool,
    /// The range of which such a class is read next.
    pub(super) next_passed: usize,
    /// The time since which there is something to read and no room for it.
    pub(super) full_since: Option<Instant>,
    /// The types that were paused at the last poll.
    pub(super) paused: Vec<Box<str>>,
    /// The time at which it was asked.
    pub(super) paused_since: Option<Instant>,
    /// The operators' pauses at that time.
    pub(super) left_out: LeftOut,
}

/// Adjoining partitions of this node, which is what one statement can read.
#[derive(Debug)]
pub(super) struct PartitionRange {
    pub(super) partitions: RangeInclusive<u8>,
    /// Nothing at or below it has to be read.
    pub(super) mark: i64,
    /// True if there may be a row to read above the mark.
    pub(super) unread: bool,
    /// The end of its last read from the bottom, and the duration of that read.
    pub(super) bottom: Option<(Instant, Duration)>,
    /// The classes that are passed over.
    pub(super) passed: PassedOver,
    /// The highest row that was read.
    pub(super) reached: i64,
}

impl ReadState {
    /// The place up to which a range has been read, or a class of it that is passed over, and the number of rows that need not be read again;
    /// `None` for keys that are refilled.
    pub(super) fn position(&self, of: Option<(usize, Option<Class>)>) -> Option<(i64, usize)> {
        let (index, class) = of?;
        let range = self.ranges.get(index)?;
        let above = class.map_or(range.mark, |class| range.passed.above(class).unwrap_or(i64::MAX));
        Some((above, range.passed.rows_remembered()))
    }
}

impl PartitionRange {
    pub(super) fn new(partitions: RangeInclusive<u8>) -> Self {
        Self { partitions, mark: 0, unread: true, bottom: None, passed: PassedOver::default(), reached: 0 }
    }

    /// Reads again from the row `seq`, which may not have been there when it was read.
    pub(super) fn reread_from(&mut self, seq: i64) {
        let below = seq.saturating_sub(1);
        self.unread = true;
        self.mark = self.mark.min(below);
        self.passed.reread_from(below);
    }

    pub(super) fn is_bottom_due(&self, now: Instant) -> bool {
        self.bottom.is_none_or(|(at, took)| now >= at + BOTTOM_INTERVAL.max(took * BOTTOM_SHARE))
    }
}
