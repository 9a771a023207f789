use std::collections::hash_map::Entry::Occupied;
use std::time::Duration;

use pillarbox_core::event::EventId;
use pillarbox_core::hash::HashMap;
use pillarbox_core::lock::Mutex;
use pillarbox_core::ownership::Partitions;
use pillarbox_core::planted_bug;
use pillarbox_core::store::RowId;
use tokio::time::Instant;

/// Rows settled while one fetch is under way that are remembered, before that fetch is called off instead.
const MAX_SETTLED_DURING_FETCH: usize = 100_000;

/// Rows that a fetch is asked to leave out at most.
const MAX_EXCLUDED: usize = 10_000;
/// Rows that are left to other nodes at most.
const MAX_SKIPPED: usize = MAX_EXCLUDED / 2;

/// The register of the rows that this process writes, delivers or settles, so that no row is ever in its memory twice.
///
/// ```text
/// write ──▶ announced ──committed──▶ taken ──settled──▶ (gone)
///               │                     ▲
///               └──── fetched first ──┘   and: unknown row ──fetched──▶ taken
/// ```
///
/// Three races decide its shape.
///
/// *Hot against cold.* Between a commit and the call of `notify_committed`, the cold path may find the row, deliver and settle
/// it. So a write announces its rows, the first path turns "announced" into "taken", and the other finds nothing
/// left to take.
///
/// *Fetch against settle.* A fetch may read a row that is pending in its snapshot and return it after the row was handled
/// and settled. So rows settled while a fetch is under way are remembered until that fetch has been admitted.
///
/// *This node against another.* A row announced while another node was the owner, or before one was, may have been
/// delivered by it. So nothing that was announced before a term is taken hot in it.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    rows: HashMap<i64, Entry>,
    /// True while a fetch is under way; `settled` are the rows that were settled since it began.
    fetching: bool,
    settled: Vec<i64>,
    called_off: bool,
    /// The number of times that memory was invalidated.
    invalidations: u64,
    /// Rows that other nodes may have, and until when this one does not take them.
    skipped: HashMap<i64, Instant>,
    /// The row for whose removal somebody waits.
    awaited_removal: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// Written here, not known to be committed.
    Announced,
    /// Queued, running or waiting to be settled.
    Taken { timed: bool, partition: Option<u8>, event_id: EventId, handler: Option<Box<str>> },
    /// Settled since the fetch under way began.
    Settled,
}

impl Entry {
    fn taken(row: RowId, timed: bool, partition: Option<u8>) -> Self {
        Self::Taken { timed, partition, event_id: row.event_id, handler: row.handler }
    }
}

/// The result of taking a row for the hot path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HotTake {
    /// It is taken from now on.
    Now,
    /// The cold path has taken it.
    Before,
    /// Nothing is known of it: the cold path has settled it, or it was announced before this term.
    Unknown,
}

impl Registry {
    /// Rows were written in an open transaction.
    pub(crate) fn announce(&self, seqs: impl IntoIterator<Item = i64>) {
        let mut entries = self.entries.lock();
        for seq in seqs {
            entries.rows.entry(seq).or_insert(Entry::Announced);
        }
    }

    /// Nobody will say any more that these rows were committed.
    pub(crate) fn withdraw_announcements(&self, seqs: &[i64]) {
        let mut entries = self.entries.lock();
        for seq in seqs {
            if entries.rows.get(seq) == Some(&Entry::Announced) {
                entries.rows.remove(seq);
            }
        }
    }

    /// Takes an announced row for the hot path, unless the cold path has taken it already.
    pub(crate) fn take_announced(&self, row: RowId) -> HotTake {
        match self.entries.lock().rows.get_mut(&row.seq) {
            Some(entry @ Entry::Announced) => {
                *entry = Entry::taken(row, false, None);
                HotTake::Now
            }
            Some(Entry::Taken { .. }) if planted_bug::is_active("both_paths_take_a_row") => HotTake::Now,
            Some(Entry::Taken { .. } | Entry::Settled) => HotTake::Before,
            None => HotTake::Unknown,
        }
    }

    /// True if any of these rows was announced, and neither path has taken it.
    pub(crate) fn is_announced(&self, seqs: &[i64]) -> bool {
        let entries = self.entries.lock();
        seqs.iter().any(|seq| entries.rows.get(seq) == Some(&Entry::Announced))
    }

    /// Removes rows that were taken: they are settled, or left in the table.
    pub(crate) fn remove(&self, seqs: impl IntoIterator<Item = i64>) {
        let mut entries = self.entries.lock();
        let entries = &mut *entries;
        for seq in seqs {
            if entries.awaited_removal == Some(seq) {
                entries.awaited_removal = None;
            }
            if !entries.fetching {
                entries.rows.remove(&seq);
            } else if entries.settled.len() < MAX_SETTLED_DURING_FETCH {
                entries.rows.insert(seq, Entry::Settled);
                entries.settled.push(seq);
            } else {
                // Too many to remember: the fetch's answer cannot be trusted any more.
                entries.rows.remove(&seq);
                entries.called_off = true;
            }
        }
    }

    /// From now on a row is left to other nodes, for so long. False if there are too many of those.
    pub(crate) fn skip_until(&self, seq: i64, now: Instant, delay: Duration) -> bool {
        let mut entries = self.entries.lock();
        if entries.skipped.len() >= MAX_SKIPPED {
            entries.skipped.retain(|_, until| *until > now);
        }
        let Some(until) = now.checked_add(delay).filter(|_| entries.skipped.len() < MAX_SKIPPED) else { return false };
        entries.skipped.insert(seq, until);
        true
    }

    /// The partitions of rows that are taken, in the order of `seqs`.
    pub(crate) fn partitions(&self, seqs: &[i64]) -> Vec<Option<u8>> {
        let entries = self.entries.lock();
        let partition = |seq| match entries.rows.get(seq) {
            Some(Entry::Taken { partition, .. }) => *partition,
            _ => None,
        };
        seqs.iter().map(partition).collect()
    }

    /// Begins anew with nothing: between two terms of this node another may have delivered any row known here, so a
    /// row announced before a term may not be taken hot in it.
    pub(crate) fn clear(&self) {
        let mut entries = self.entries.lock();
        entries.rows.clear();
        entries.settled.clear();
        entries.skipped.clear();
        entries.awaited_removal = None;
    }

    /// Operators have changed rows that may be in memory: what was announced is not taken hot any more, and what a fetch under way brings
    /// is not taken.
    pub(crate) fn invalidate(&self) {
        let mut entries = self.entries.lock();
        entries.rows.retain(|_, entry| *entry != Entry::Announced);
        entries.called_off |= entries.fetching;
        entries.invalidations += 1;
    }

    /// The number of times that memory was invalidated.
    pub(crate) fn invalidations(&self) -> u64 {
        self.entries.lock().invalidations
    }

    /// The rows that are taken.
    pub(crate) fn taken_rows(&self) -> Vec<RowId> {
        let entries = self.entries.lock();
        let taken = entries.rows.iter().filter_map(|(seq, entry)| match entry {
            Entry::Taken { event_id, handler, .. } => {
                Some(RowId { seq: *seq, event_id: event_id.clone(), handler: handler.clone() })
            }
            Entry::Announced | Entry::Settled => None,
        });
        taken.collect()
    }

    /// The partitions of which rows are taken.
    pub(crate) fn busy(&self) -> Partitions {
        let partition = |entry: &Entry| match entry {
            Entry::Taken { partition, .. } => *partition,
            Entry::Announced | Entry::Settled => None,
        };
        self.entries.lock().rows.values().filter_map(partition).collect()
    }

    /// Awaits the removal of a row that is taken, in the place of another.
    pub(crate) fn await_removal(&self, seq: i64) {
        let mut entries = self.entries.lock();
        entries.awaited_removal = matches!(entries.rows.get(&seq), Some(Entry::Taken { .. })).then_some(seq);
    }

    /// The row whose removal is awaited, until it is removed; it may be taken again at once.
    pub(crate) fn awaited_removal(&self) -> Option<i64> {
        self.entries.lock().awaited_removal
    }

    /// The number of rows that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.entries.lock().rows.values().filter(|entry| matches!(entry, Entry::Taken { .. })).count()
    }

    /// Begins a fetch. One at a time.
    pub(crate) fn begin_fetch(&self) -> FetchGuard<'_> {
        let mut entries = self.entries.lock();
        debug_assert!(!entries.fetching, "one fetch at a time");
        entries.fetching = true;
        entries.called_off = false;
        FetchGuard { registry: self }
    }
}

/// A fetch under way. Dropping it ends the fetch.
#[derive(Debug)]
pub(crate) struct FetchGuard<'a> {
    registry: &'a Registry,
}

impl FetchGuard<'_> {
    /// True if so much has happened since the fetch began that its answer is worth nothing: operators have intervened, or very many rows
    /// were settled.
    pub(crate) fn is_called_off(&self) -> bool {
        self.registry.entries.lock().called_off
    }

    /// The rows to leave out of a fetch of rows above `above`, and of rows with a due time: those of them that are taken, and
    /// those that are left to other nodes.
    ///
    /// It saves reading them again; [`admit`](Self::admit) is what keeps them from being taken twice.
    pub(crate) fn exclude(&self, above: i64) -> Vec<i64> {
        let mut entries = self.registry.entries.lock();
        let now = Instant::now();
        entries.skipped.retain(|_, until| *until > now);
        let skipped: Vec<i64> = entries.skipped.keys().copied().collect();
        let taken = entries.rows.iter().filter_map(|(seq, entry)| match entry {
            Entry::Taken { timed, .. } if *timed || *seq > above => Some(*seq),
            _ => None,
        });
        let mut taken: Vec<i64> = taken.collect();
        drop(entries);
        if planted_bug::is_active("claim_forgets_its_exclusions") {
            taken.clear();
        }
        // A list that outgrows the database's memory for it costs far more than it saves. The lowest are those a fetch
        // would meet first.
        let room = MAX_EXCLUDED - skipped.len();
        if taken.len() > room {
            taken.select_nth_unstable(room);
            taken.truncate(room);
        }
        taken.extend(skipped);
        taken
    }

    /// Takes a fetched row, unless it is in memory already or was settled since the fetch began.
    ///
    /// A row comes with true if it has a due time, and with its partition where partitions have owners.
    pub(crate) fn admit(&self, rows: impl IntoIterator<Item = (RowId, bool, Option<u8>)>) -> Vec<bool> {
        let mut entries = self.registry.entries.lock();
        let called_off = entries.called_off;
        let take = |(row, timed, partition): (RowId, bool, Option<u8>)| match entries.rows.entry(row.seq) {
            _ if called_off => false,
            Occupied(known) if is_admitted_by_a_plant(known.get()) => true,
            Occupied(known) if *known.get() != Entry::Announced => false,
            place => {
                place.insert_entry(Entry::taken(row, timed, partition));
                true
            }
        };
        rows.into_iter().map(take).collect()
    }
}

/// A bug for the simulation to find: a row that is in memory, or was settled, is taken once more.
fn is_admitted_by_a_plant(known: &Entry) -> bool {
    match known {
        Entry::Taken { .. } => planted_bug::is_active("claim_forgets_its_exclusions"),
        Entry::Settled => planted_bug::is_active("fetch_revives_what_was_settled"),
        Entry::Announced => false,
    }
}

impl Drop for FetchGuard<'_> {
    fn drop(&mut self) {
        let mut entries = self.registry.entries.lock();
        let entries = &mut *entries;
        entries.fetching = false;
        for seq in entries.settled.drain(..) {
            // A row that was settled and fetched again within this fetch cannot be: `admit` refused it.
            if entries.rows.get(&seq) == Some(&Entry::Settled) {
                entries.rows.remove(&seq);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: i64) -> RowId {
        RowId { seq, event_id: EventId::from_stored("event"), handler: None }
    }

    #[test]
    fn a_row_taken_by_the_cold_path_is_lost_to_the_hot_path() {
        let registry = Registry::default();
        registry.announce([1, 2]);
        assert_eq!(registry.begin_fetch().admit([(row(1), false, None), (row(3), true, None)]), [true, true]);
        assert_eq!(registry.take_announced(row(1)), HotTake::Before);
        registry.remove([1]);
        assert_eq!(registry.take_announced(row(1)), HotTake::Unknown, "not even after it was settled");
        assert_eq!(registry.take_announced(row(2)), HotTake::Now);
        assert_eq!(registry.begin_fetch().admit([(row(2), false, None)]), [false], "and the other way round");
    }

    #[test]
    fn a_row_settled_during_a_fetch_is_not_admitted_by_it() {
        let registry = Registry::default();
        registry.announce([1]);
        let fetch = registry.begin_fetch();
        assert_eq!(registry.take_announced(row(1)), HotTake::Now);
        registry.remove([1]);
        assert_eq!(fetch.admit([(row(1), false, None)]), [false]);
        drop(fetch);
        let later = registry.begin_fetch().admit([(row(1), false, None)]);
        assert_eq!(later, [true], "a later fetch sees what is true then");
    }

    #[test]
    fn a_fetch_that_saw_too_much_settled_is_called_off() {
        let registry = Registry::default();
        let fetch = registry.begin_fetch();
        registry.remove(0..=i64::try_from(MAX_SETTLED_DURING_FETCH).expect("small"));
        assert_eq!(fetch.admit([(row(-1), false, None)]), [false]);
        drop(fetch);
        assert_eq!(registry.entries.lock().rows.len(), 0, "and nothing is remembered afterwards");
    }

    #[test]
    fn withdrawing_announcements_leaves_taken_rows_alone() {
        let registry = Registry::default();
        registry.announce([1, 2]);
        assert_eq!(registry.take_announced(row(1)), HotTake::Now);
        registry.withdraw_announcements(&[1, 2]);
        assert_eq!(registry.taken(), 1);
        assert_eq!(registry.take_announced(row(2)), HotTake::Unknown);
        registry.announce([3]);
        registry.clear();
        assert_eq!(registry.taken(), 0);
        assert_eq!(registry.take_announced(row(3)), HotTake::Unknown, "another node may have delivered it since");
    }

    /// Otherwise two rows could wait for each other.
    #[test]
    fn a_row_whose_removal_is_awaited_is_forgotten_once_it_was_removed() {
        let registry = Registry::default();
        registry.await_removal(1);
        assert_eq!(registry.awaited_removal(), None, "it is not taken");
        let take = || registry.begin_fetch().admit([(row(1), true, None), (row(2), true, None)]);
        assert_eq!(take(), [true, true]);
        registry.await_removal(1);
        registry.remove([2]);
        assert_eq!(registry.awaited_removal(), Some(1));
        registry.remove([1]);
        assert_eq!(take(), [true, true], "it has failed, and is tried again");
        assert_eq!(registry.awaited_removal(), None);
    }

    #[test]
    fn the_list_of_excluded_rows_is_bounded_and_begins_with_the_lowest() {
        let registry = Registry::default();
        let rows = i64::try_from(MAX_EXCLUDED).expect("small");
        registry.begin_fetch().admit((0..rows * 2).rev().map(|seq| (row(seq), false, None)));
        let mut excluded = registry.begin_fetch().exclude(i64::MIN);
        excluded.sort_unstable();
        assert_eq!(excluded, (0..rows).collect::<Vec<_>>());
    }

    #[test]
    fn only_rows_with_a_due_time_are_left_out_of_a_running_sweep() {
        let registry = Registry::default();
        registry.begin_fetch().admit([(row(1), false, None), (row(2), true, None)]);
        let fetch = registry.begin_fetch();
        assert_eq!(fetch.exclude(i64::MAX), [2]);
        assert_eq!(fetch.exclude(i64::MIN).len(), 2);
    }

    #[test]
    fn rows_left_to_others_are_not_fetched_until_their_time() {
        let (registry, now, hour) = (Registry::default(), Instant::now(), Duration::from_secs(3600));
        assert!(registry.skip_until(7, now, hour) && registry.skip_until(8, now, Duration::ZERO));
        assert_eq!(registry.begin_fetch().exclude(100), [7], "wherever it stands");
        let skipped = (0_i64..).take(2 * MAX_SKIPPED).filter(|seq| registry.skip_until(*seq, now, hour)).count();
        assert!(skipped <= MAX_SKIPPED, "{skipped}");
        assert!(registry.skip_until(-1, now + 2 * hour, hour), "what is over makes room");
        registry.begin_fetch().admit((0_i64..).take(2 * MAX_EXCLUDED).map(|seq| (row(seq), false, None)));
        assert!(registry.begin_fetch().exclude(-1).len() <= MAX_EXCLUDED, "with all that is taken");
        registry.clear();
        assert!(registry.begin_fetch().exclude(0).is_empty());
    }
}
