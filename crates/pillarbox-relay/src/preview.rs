use std::collections::BTreeMap;

use pillarbox_core::error::StoreError;
use pillarbox_core::handle::Delivery;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow, Store};
use pillarbox_routes::{Destination, Forwarder};
use serde::Serialize;

/// Rows read at once, at least.
const PAGE: usize = 1000;
/// Bytes of the payloads that are read at once. Those without a due time have as many as those with one.
const PAGE_BYTES: usize = 4 << 20;
/// Rows with a due time that are looked at.
const MAX_TIMED: usize = 100_000;
/// Kinds of events told apart; what is more is counted together.
const MAX_LINES: usize = 10_000;

/// The destinations of pending events: the number of events of each type and destination.
#[derive(Debug, Default, Serialize)]
pub struct Preview {
    /// One for each kind of event and place to go, most first.
    pub lines: Vec<PreviewLine>,
    /// Events looked at.
    pub events: u64,
    /// True if there are more events than were looked at. Of those with a due time, which were deferred or tried before, no more
    /// than a hundred thousand are looked at.
    pub more: bool,
}

/// Events of one type that would go to one place.
#[derive(Debug, Clone, Serialize)]
pub struct PreviewLine {
    /// The source.
    pub source: String,
    /// The event type.
    pub event_type: String,
    /// The route; `None` if none takes it.
    pub route: Option<String>,
    /// The broker's kind and address; `None` if it goes nowhere.
    pub broker: Option<String>,
    /// The target there, or, where it cannot be sent, why.
    pub target: String,
    /// The number of events.
    pub events: u64,
}

type Place = (String, Option<String>, Option<String>, String);

impl Preview {
    /// Looks at up to `limit` events of a source that are due now, from the lowest on.
    pub(crate) async fn add(
        &mut self,
        source: &str,
        store: &dyn Store,
        forwarder: &Forwarder,
        limit: usize,
    ) -> Result<(), StoreError> {
        store.check().await?;
        let mut places: BTreeMap<Place, u64> = BTreeMap::new();
        let mut pages = Pages::new(limit, MAX_TIMED);
        while let Some(fetch) = pages.next() {
            let fetched = store.fetch(fetch).await?;
            for row in pages.take(fetched) {
                self.events += 1;
                let place = place(row, forwarder);
                if places.len() < MAX_LINES || places.contains_key(&place) {
                    *places.entry(place).or_default() += 1;
                }
            }
        }
        self.more |= pages.more;
        self.lines.extend(places.into_iter().map(|((event_type, route, broker, target), events)| PreviewLine {
            source: source.to_owned(),
            event_type,
            route,
            broker,
            target,
            events,
        }));
        self.lines.sort_by_key(|line| std::cmp::Reverse(line.events));
        Ok(())
    }
}

/// The rows to read next. Rows without a due time are read on from the last one. Rows with one have no such mark, so that the
/// next fetch has to exclude those that are known: it names no more than ten for each row that it may bring.
#[derive(Debug)]
struct Pages {
    fetch: Fetch,
    /// The number of rows that may still be looked at.
    left: usize,
    /// The number of rows with a due time that may be looked at, all in all.
    max_timed: usize,
    ended: bool,
    /// True if there are more rows than may be looked at.
    more: bool,
}

impl Pages {
    fn new(left: usize, max_timed: usize) -> Self {
        let fetch = Fetch { max_bytes: PAGE_BYTES, ..Fetch::new(0) };
        Self { fetch, left, max_timed, ended: false, more: false }
    }

    /// The fetch of the next page; `None` after the last one.
    fn next(&mut self) -> Option<&Fetch> {
        self.fetch.limit = PAGE.max(self.fetch.exclude.len() / 10).min(self.left);
        (self.fetch.limit > 0 && !self.ended).then_some(&self.fetch)
    }

    /// The rows of the page that was read, without those that are not looked at.
    fn take(&mut self, Fetched { mut rows, truncated, .. }: Fetched) -> Vec<FetchedRow> {
        // A truncated result has fewer rows than the limit, though there may be more.
        let full = truncated || rows.len() >= self.fetch.limit;
        rows.retain(|row| self.takes(row));
        self.left = self.left.saturating_sub(rows.len());
        // Rows without a due time have a share of every full page, if there are any left.
        self.ended = !full || rows.is_empty();
        self.more |= full && self.left == 0;
        rows
    }

    fn takes(&mut self, row: &FetchedRow) -> bool {
        if !row.is_timed() {
            self.fetch.above = self.fetch.above.max(row.seq());
        } else if self.fetch.exclude.len() < self.max_timed {
            self.fetch.exclude.push(row.seq());
        } else {
            self.more = true;
            return false;
        }
        true
    }
}

fn place(row: FetchedRow, forwarder: &Forwarder) -> Place {
    let row = match row {
        FetchedRow::Row(row) => row,
        FetchedRow::Broken(broken) => {
            return ("?".to_owned(), None, None, format!("is not an event: {}", broken.reason));
        }
    };
    let event = Delivery::detached(row);
    let event_type = event.event_type().to_owned();
    match forwarder.destination(&event) {
        Destination::Sent { route, broker, target, .. } => (event_type, Some(route), Some(broker), target),
        Destination::Dropped { route } => (event_type, Some(route), None, "dropped".to_owned()),
        Destination::Unsendable { route, problem } => {
            (event_type, Some(route), None, format!("cannot be sent: {problem}"))
        }
        Destination::Unrouted => (event_type, None, None, "no route takes it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pillarbox_core::event::Envelope;
    use pillarbox_core::write::insert;
    use pillarbox_memory::MemoryStore;
    use pillarbox_routes::{Route, Routes};

    use super::*;

    /// A store of due events: so many of type `ready` without a due time, and so many of type `timed` with one.
    async fn store(ready: usize, timed: usize) -> MemoryStore {
        store_of(ready, timed, "{}").await
    }

    /// As [`store`], of events with this payload.
    async fn store_of(ready: usize, timed: usize, payload: &str) -> MemoryStore {
        let store = MemoryStore::new();
        let event = |timed: bool| {
            let event = Envelope::builder(if timed { "timed" } else { "ready" }).payload_json(payload.to_owned());
            let event = if timed { event.deliver_after(Duration::from_secs(3600)) } else { event };
            event.build().expect("valid")
        };
        // Mixed, as long as there are both.
        let events =
            (0..ready.max(timed)).flat_map(|n| [(n < ready).then(|| event(false)), (n < timed).then(|| event(true))]);
        let mut tx = store.begin();
        insert(&store, &mut tx, events.flatten().collect::<Vec<_>>()).await.expect("inserts");
        tx.commit();
        for row in store.inspect().rows().iter().filter(|row| row.available_at.is_some()) {
            assert!(store.inspect().make_due(row.seq));
        }
        store
    }

    #[tokio::test]
    async fn every_due_event_is_counted_once_over_many_pages() {
        let store = store(3 * PAGE + 7, 4 * PAGE + 3).await;
        let forwarder = Routes::new().route(Route::drop()).build().expect("valid");
        let count = async |limit| {
            let mut preview = Preview::default();
            preview.add("shop", &store, &forwarder, limit).await.expect("reads");
            let mut lines: Vec<_> = preview.lines.into_iter().map(|line| (line.event_type, line.events)).collect();
            lines.sort();
            (lines, preview.events, preview.more)
        };
        let all = vec![("ready".to_owned(), 3007), ("timed".to_owned(), 4003)];
        assert_eq!(count(1_000_000).await, (all, 7010, false));
        let (_, events, more) = count(5000).await;
        assert_eq!((events, more), (5000, true));
    }

    /// A thousand events of this size, unbounded, would take 600 MB of memory.
    #[tokio::test]
    async fn pages_are_bounded_by_their_bytes_and_large_events_are_counted_to_the_last() {
        let payload = format!("\"{}\"", "x".repeat(600_000));
        let store = store_of(20, 9, &payload).await;
        let mut pages = Pages::new(usize::MAX, MAX_TIMED);
        let mut taken = Vec::new();
        while let Some(fetch) = pages.next() {
            let fetched = store.fetch(fetch).await.expect("reads");
            let rows = fetched.rows.len();
            assert!(rows * payload.len() < 2 * PAGE_BYTES + 2 * payload.len(), "{rows} rows in a page");
            taken.extend(pages.take(fetched).into_iter().map(|row| row.seq()));
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!((taken.len(), pages.more), (29, false));
    }

    #[tokio::test]
    async fn known_rows_are_told_to_the_store_a_bounded_number_of_times() {
        let (ready, timed) = (12 * PAGE, 20 * PAGE);
        let store = store(ready, timed).await;
        for (max_timed, seen) in [(timed, ready + timed), (2 * PAGE, ready + 2 * PAGE)] {
            let mut pages = Pages::new(usize::MAX, max_timed);
            let (mut taken, mut told) = (0, 0);
            while let Some(fetch) = pages.next() {
                told += fetch.exclude.len();
                assert!(fetch.exclude.len() <= max_timed && fetch.exclude.len() < 10 * (fetch.limit + 1));
                let fetched = store.fetch(fetch).await.expect("reads");
                taken += pages.take(fetched).len();
            }
            assert_eq!((taken, pages.more), (seen, max_timed < timed));
            assert!(told < 10 * (ready + timed), "{told}");
        }
    }
}
