use std::collections::BTreeMap;

use pillarbox_core::error::StoreError;
use pillarbox_core::handle::Delivery;
use pillarbox_core::store::{Fetch, FetchedRow, Store};
use pillarbox_routes::{Destination, Forwarder};
use serde::Serialize;

/// Rows read at once.
const PAGE: usize = 1000;
/// Kinds of events told apart; what is more is counted together.
const MAX_LINES: usize = 10_000;

/// Where pending events would go: how many of each type, by where that is.
#[derive(Debug, Default, Serialize)]
pub struct Preview {
    /// One for each kind of event and place to go, most first.
    pub lines: Vec<PreviewLine>,
    /// Events looked at.
    pub events: u64,
    /// Whether there are more than were looked at.
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
    /// How many.
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
        let (mut above, mut timed, mut seen) = (0, Vec::new(), 0);
        while seen < limit {
            let page = PAGE.min(limit - seen);
            let fetch = Fetch { above, exclude: timed.clone(), limit: page, scope: None, without_types: Vec::new() };
            let rows = store.fetch(&fetch).await?.rows;
            let full = rows.len() >= page;
            for row in rows {
                seen += 1;
                if row.is_timed() {
                    timed.push(row.seq());
                } else {
                    above = above.max(row.seq());
                }
                let place = place(row, forwarder);
                if places.len() < MAX_LINES || places.contains_key(&place) {
                    *places.entry(place).or_default() += 1;
                }
            }
            if !full {
                break;
            }
            self.more |= seen >= limit;
        }
        self.events += seen as u64;
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
