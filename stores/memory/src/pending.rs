use std::collections::BTreeSet;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::hash::HashSet;
use pillarbox_core::planted_bug;
use pillarbox_core::store::Fetch;

/// The indexes of pending rows: a fetch reads their heads, at any size of the table.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    /// Rows without a due time.
    ready: BTreeSet<i64>,
    /// Rows with one.
    due: BTreeSet<(Timestamp, i64)>,
}

/// The rows a fetch returns unless their payloads are too large, in its order, and the time until the next one is due.
pub(super) struct Found {
    pub(super) ready: Vec<i64>,
    pub(super) due: Vec<i64>,
    pub(super) next_due: Option<Duration>,
}

impl Pending {
    pub(super) fn insert(&mut self, seq: i64, available_at: Option<Timestamp>) {
        match available_at {
            None => self.ready.insert(seq),
            Some(at) => self.due.insert((at, seq)),
        };
    }

    pub(super) fn remove(&mut self, seq: i64, available_at: Option<Timestamp>) {
        match available_at {
            None => self.ready.remove(&seq),
            Some(at) => self.due.remove(&(at, seq)),
        };
    }

    /// Rows without a due time, above one and up to another.
    pub(super) fn ready(&self, above: i64, up_to: i64) -> impl Iterator<Item = i64> + '_ {
        self.ready.range(above.saturating_add(1)..).copied().take_while(move |seq| *seq <= up_to)
    }

    /// The due rows for which `free` is true.
    pub(super) fn find(&self, fetch: &Fetch, now: Timestamp, free: impl Fn(i64) -> bool) -> Found {
        let exclude: HashSet<i64> = fetch.exclude.iter().copied().collect();
        let wanted = |seq: &i64| !exclude.contains(seq) && free(*seq);
        let above = fetch.above.saturating_add(1);
        let mut ready: Vec<i64> = self.ready.range(above..).copied().filter(wanted).take(fetch.limit).collect();
        let until =
            if planted_bug::is_active("fetch_brings_rows_early") { now.plus(Duration::from_millis(500)) } else { now };
        let passed = self.due.range(..=(until, i64::MAX)).map(|(_, seq)| *seq);
        let mut due: Vec<i64> = passed.filter(wanted).take(fetch.limit).collect();

        // When both abound, rows with a due time get a third and the others the rest.
        due.truncate(fetch.limit.div_ceil(3).max(fetch.limit.saturating_sub(ready.len())));
        ready.truncate(fetch.limit.saturating_sub(due.len()));

        let later = if ready.len() + due.len() < fetch.limit {
            self.due.range((now, i64::MAX)..).find(|(_, seq)| wanted(seq))
        } else {
            None
        };
        Found { ready, due, next_due: later.map(|(at, _)| at.since(now)) }
    }
}
