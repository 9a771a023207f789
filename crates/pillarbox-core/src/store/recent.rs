use std::time::Duration;

use super::Attributes;
use super::attributes::attribute_methods;
use crate::clock::Timestamp;
use crate::row::Status;

/// The time by which a row may name an earlier creation than one with a lower `seq`: transactions take a number and commit, and hosts
/// have clocks of their own.
const DISORDER: Duration = Duration::from_secs(3600);

/// Selects the events of any state that match every field that is set.
///
/// ```
/// use pillarbox_core::row::Status;
/// use pillarbox_core::store::EventFilter;
///
/// let filter = EventFilter::new().event_type("order.placed").status(Status::Done);
/// assert_eq!(filter.attributes.event_type.as_deref(), Some("order.placed"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// With these attributes.
    pub attributes: Attributes,
    /// With exactly this id.
    pub event_id: Option<String>,
    /// In this state.
    pub status: Option<Status>,
    /// Written at this time or later.
    pub since: Option<Timestamp>,
    /// Written before this time.
    pub before: Option<Timestamp>,
    /// With this text in the error. The text is literal and its case counts.
    pub error: Option<String>,
    /// The maximum number of rows that a page reads, matching or not; above zero.
    pub read_at_most: usize,
}

impl Default for EventFilter {
    fn default() -> Self {
        Self {
            attributes: Attributes::default(),
            event_id: None,
            status: None,
            since: None,
            before: None,
            error: None,
            read_at_most: Self::READ_AT_MOST,
        }
    }
}

attribute_methods!(EventFilter);

impl EventFilter {
    /// The number of rows that a page reads at most, unless the filter says another.
    pub const READ_AT_MOST: usize = 10_000;

    /// All events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only the event with this id.
    #[must_use]
    pub fn event_id(self, event_id: impl Into<String>) -> Self {
        Self { event_id: Some(event_id.into()), ..self }
    }

    /// Only events in this state.
    #[must_use]
    pub fn status(self, status: Status) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Only events that were written at this time or later, by the database's clock, which
    /// [`Store::now`](super::Store::now) reads.
    #[must_use]
    pub fn since(self, time: Timestamp) -> Self {
        Self { since: Some(time), ..self }
    }

    /// Only events that were written before this time, by the database's clock.
    #[must_use]
    pub fn before(self, time: Timestamp) -> Self {
        Self { before: Some(time), ..self }
    }

    /// Only events with this text in the error. The text is literal: case counts, and `%` and `_` stand for themselves.
    #[must_use]
    pub fn error_contains(self, text: impl Into<String>) -> Self {
        Self { error: Some(text.into()), ..self }
    }

    /// Reads so many rows for a page at most.
    #[must_use]
    pub fn read_at_most(self, rows: usize) -> Self {
        Self { read_at_most: rows.max(1), ..self }
    }

    /// The rows among which a store looks for the events: the fewest that an index leads to.
    #[must_use]
    pub fn rows(&self) -> RowSet {
        match (&self.event_id, self.status) {
            (Some(_), _) => RowSet::OfEvent,
            (None, Some(Status::New)) => RowSet::New,
            (None, Some(Status::Retry)) => RowSet::Retry,
            (None, Some(Status::Dead)) => RowSet::Dead,
            (None, Some(Status::Done) | None) => RowSet::All,
        }
    }

    /// True if a page may have to pass over rows, so that reading needs a bound besides the number of events.
    #[must_use]
    pub fn passes_over_rows(&self) -> bool {
        let Self { attributes, event_id, status: _, since, before, error, read_at_most: _ } = self;
        let all = match self.rows() {
            RowSet::All => self.status.is_none(),
            RowSet::Dead => true,
            RowSet::New | RowSet::Retry => false,
            RowSet::OfEvent => return false,
        };
        !all || *attributes != Attributes::default()
            || since.is_some()
            || before.is_some()
            || error.is_some()
            || event_id.is_some()
    }

    /// The texts that a row is compared with.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.attributes.texts().into_iter().chain([&self.event_id, &self.error]).flatten().map(String::as_str)
    }
}

/// The rows among which events are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowSet {
    /// All rows, by their primary key.
    All,
    /// The rows of one event, by its id.
    OfEvent,
    /// The NEW rows, by the indexes of pending ones.
    New,
    /// The RETRY rows, by the indexes of pending ones.
    Retry,
    /// The DEAD rows, by their index.
    Dead,
}

/// An event in any state. Its payload is in its [`Record`](super::Record).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEvent {
    /// Its place in the order of the table.
    pub seq: i64,
    /// Its id, as stored.
    pub event_id: String,
    /// The event type.
    pub event_type: String,
    /// The kind of thing it happened to; `__GLOBAL__` where the row names none.
    pub aggregate_type: String,
    /// The id of the thing it happened to.
    pub aggregate_id: Option<String>,
    /// The tenant it belongs to.
    pub tenant_id: Option<String>,
    /// The ordering key as stored.
    pub key: Option<String>,
    /// The handler it is for, if its event has several.
    pub handler: Option<String>,
    /// The number of its state, as stored.
    pub status: i16,
    /// Failed handler calls.
    pub attempts: i32,
    /// The error of the last failed call, or the reason for its end.
    pub last_error: Option<String>,
    /// The time at which it was written.
    pub created_at: Timestamp,
    /// The time at which it is due, or has been since; `None` if it was due when it was written, or has ended.
    pub due_at: Option<Timestamp>,
    /// The time at which it was delivered, cancelled or given up; `None` if it is pending, or the row does not say.
    pub done_at: Option<Timestamp>,
    /// The node that the row names as its holder.
    pub held_by: Option<String>,
}

/// A page of events of any state, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The events, descending by `seq`.
    pub events: Vec<ListedEvent>,
    /// The `below` of the next page; `None` if there is nothing left to read.
    pub next: Option<i64>,
    /// The creation of the last row that was read, if there is a next page: so far back the search has gone.
    pub searched_back_to: Option<Timestamp>,
}

impl EventPage {
    /// The page of a filter with the events that a store has found, at most `limit`, above `end`: the last row that it may read, if that is
    /// not the last one of all.
    #[must_use]
    pub fn new(filter: &EventFilter, events: Vec<ListedEvent>, limit: usize, end: Option<(i64, Timestamp)>) -> Self {
        let full = events.len() >= limit;
        let last = events.last().filter(|_| full).map(|last| (last.seq, last.created_at));
        let end =
            last.or(end).filter(|(_, created_at)| filter.since.is_none_or(|since| created_at.plus(DISORDER) >= since));
        Self { events, next: end.map(|(seq, _)| seq), searched_back_to: end.map(|(_, created_at)| created_at) }
    }
}
