use std::collections::BTreeMap;

use crate::queue::{Class, FairShares, Limits};

/// Maximum number of event types that a fetch leaves out for lack of room.
const MAX_TYPES: usize = 1000;

/// The classes whose events are passed over, each with the `seq` above which the table has some that were left there.
#[derive(Debug, Default)]
pub(crate) struct PassedOver {
    from: BTreeMap<Class, i64>,
    /// Event types of which all are of one of these classes: the table need not be read to pass them over.
    types: BTreeMap<Box<str>, Class>,
    /// Rows that were read and left for one of these classes: they need not be read again to pass them over.
    rows: BTreeMap<i64, SkippedRow>,
    /// The class that was read last.
    last: Option<Class>,
}

/// A row that was left in the table.
#[derive(Debug)]
struct SkippedRow {
    class: Class,
    /// True for a row with a due time: a fetch finds it wherever it begins.
    is_timed: bool,
}

/// A class of which more is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassToRead {
    pub(crate) class: Class,
    /// Nothing was left in the table at or below it.
    pub(crate) above: i64,
    /// The rows and bytes that there is room for.
    pub(crate) room: Limits,
}

impl PassedOver {
    /// Events of this class were left in the table above `seq`, if not below.
    pub(crate) fn left(&mut self, class: Class, above: i64) {
        let from = self.from.entry(class).or_insert(above);
        *from = above.min(*from);
    }

    /// All events of this type are of this class, of which some are passed over.
    pub(crate) fn note_type(&mut self, class: Class, event_type: &str) {
        if self.types.len() < MAX_TYPES && !self.types.contains_key(event_type) {
            self.types.insert(event_type.into(), class);
        }
    }

    /// The event types to leave out of a fetch, which may be one of a class that is passed over.
    pub(crate) fn types(&self, wanted: Option<Class>) -> impl Iterator<Item = &str> {
        self.types.iter().filter(move |(_, class)| Some(**class) != wanted).map(|(event_type, _)| &**event_type)
    }

    /// Of the rows `read`, each with whether it has a due time, those in `left` were left in the table for their class. At most `room` of
    /// them are remembered, the lowest: the next fetch would meet them first.
    pub(crate) fn note_read_rows(&mut self, read: &[(i64, bool)], left: &BTreeMap<Class, Vec<i64>>, mut room: usize) {
        if self.rows.is_empty() && left.is_empty() {
            return;
        }
        let left: BTreeMap<i64, Class> =
            left.iter().flat_map(|(class, rows)| rows.iter().map(|seq| (*seq, *class))).collect();
        for (seq, is_timed) in read {
            self.rows.remove(seq);
            if let Some(class) = left.get(seq).filter(|_| room > 0) {
                self.rows.insert(*seq, SkippedRow { class: *class, is_timed: *is_timed });
                room -= 1;
            }
        }
    }

    /// The rows that a fetch above `seq` leaves out. Not for a fetch of one class: that reads all rows of a key, because its blocker may
    /// have changed.
    pub(crate) fn rows(&self, seq: i64) -> impl Iterator<Item = i64> {
        let would_be_found = move |(row, left): &(&i64, &SkippedRow)| left.is_timed || **row > seq;
        self.rows.iter().filter(would_be_found).map(|(row, _)| *row)
    }

    /// Rows that were read with others of their keys are not left out any more.
    pub(crate) fn forget_rows(&mut self, read: &[(i64, bool)]) {
        for (seq, _) in read {
            self.rows.remove(seq);
        }
    }

    /// The number of rows that are remembered.
    pub(crate) fn rows_remembered(&self) -> usize {
        self.rows.len()
    }

    /// Rows up to `seq` are read no more, so that none has to be left out.
    pub(crate) fn forget_rows_up_to(&mut self, seq: i64) {
        self.rows.retain(|row, left| left.is_timed || *row > seq);
    }

    /// The class to read next of those that are passed over: in turns, since what a read brings may all be of another one.
    pub(crate) fn class_to_read(&self, shares: &FairShares) -> Option<ClassToRead> {
        let wanted = |(class, above): (&Class, &i64)| {
            Some(ClassToRead { class: *class, above: *above, room: shares.room_for(*class)? })
        };
        self.from.iter().filter_map(wanted).min_by_key(|wanted| (Some(wanted.class) <= self.last, wanted.class))
    }

    /// Of this class, everything at or below `seq` has been read.
    pub(crate) fn read(&mut self, class: Class, seq: i64) {
        self.last = Some(class);
        if let Some(from) = self.from.get_mut(&class) {
            *from = seq;
        }
    }

    /// Nothing is left of this class.
    pub(crate) fn caught_up(&mut self, class: Class) {
        self.last = Some(class);
        self.from.remove(&class);
        self.types.retain(|_, of| *of != class);
        self.rows.retain(|_, left| left.class != class);
    }

    /// Rows above `seq` were left in the table again. A class is read from there again, or later rows of their keys would come first. The
    /// rows that were left are read again too, since their keys may wait for nothing any more.
    pub(super) fn reread_from(&mut self, seq: i64) {
        self.from.values_mut().for_each(|from| *from = seq.min(*from));
        self.rows.retain(|row, _| *row <= seq);
    }

    /// Rows may have appeared anywhere.
    pub(crate) fn start_over(&mut self) {
        self.from.values_mut().for_each(|from| *from = 0);
        self.rows.clear();
    }

    /// The row above which a class is read next, if it is passed over.
    pub(crate) fn above(&self, class: Class) -> Option<i64> {
        self.from.get(&class).copied()
    }

    pub(crate) fn has(&self, class: Class) -> bool {
        self.from.contains_key(&class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Classes;

    const SILENT: Class = Class::FIRST;
    const OTHER: Class = Class::NONE;

    fn left_out(passed: &PassedOver, above: i64) -> Vec<i64> {
        passed.rows(above).collect()
    }

    #[test]
    fn rows_that_were_left_are_left_out_until_their_class_is_read() {
        let mut passed = PassedOver::default();
        let left = BTreeMap::from([(SILENT, vec![2, 5]), (OTHER, vec![3])]);
        passed.note_read_rows(&[(2, true), (3, false), (4, false), (5, false)], &left, 100);
        assert_eq!(left_out(&passed, 0), [2, 3, 5], "4 found a place");
        assert_eq!(left_out(&passed, 3), [2, 5], "a due row is found wherever a fetch begins");
        passed.note_read_rows(&[(5, false)], &BTreeMap::new(), 100);
        assert_eq!(left_out(&passed, 0), [2, 3], "5 has found a place since");
        passed.forget_rows_up_to(3);
        assert_eq!(left_out(&passed, 0), [2]);
        passed.caught_up(SILENT);
        assert_eq!(left_out(&passed, 0), [0_i64; 0]);
    }

    #[test]
    fn rows_above_what_was_left_in_the_table_again_are_read_again() {
        let mut passed = PassedOver::default();
        passed.note_read_rows(&[(2, false), (5, false)], &BTreeMap::from([(SILENT, vec![2, 5])]), 100);
        passed.reread_from(3);
        assert_eq!(left_out(&passed, 0), [2]);
    }

    #[test]
    fn classes_that_are_passed_over_are_read_in_turns() {
        let shares = FairShares::new(Classes::one(), 1, Limits { rows: 100, bytes: 1000 });
        let mut passed = PassedOver::default();
        passed.left(SILENT, 3);
        passed.left(OTHER, 8);
        let mut turns = Vec::new();
        for _ in 0..4 {
            let wanted = passed.class_to_read(&shares).expect("there is room");
            turns.push(wanted.class);
            // It was of no use: nothing has moved.
            passed.read(wanted.class, wanted.above);
        }
        assert_eq!(turns, [OTHER, SILENT, OTHER, SILENT]);
    }

    #[test]
    fn no_more_rows_are_remembered_than_there_is_room_for() {
        let mut passed = PassedOver::default();
        let read: Vec<(i64, bool)> = (1..=10).map(|seq| (seq, false)).collect();
        passed.note_read_rows(&read, &BTreeMap::from([(SILENT, (1..=10).collect())]), 3);
        assert_eq!(left_out(&passed, 0), [1, 2, 3]);
        assert_eq!(passed.rows_remembered(), 3);
    }
}
