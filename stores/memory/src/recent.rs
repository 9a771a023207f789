//! Rows as operators list them.

use std::collections::BTreeMap;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::row::Status;
use pillarbox_core::store::{
    Attributes, DeadEvent, DeadFilter, EventFilter, EventPage, ListedEvent, PendingEvent, PendingFilter, PendingState,
    RowSet,
};

use super::row::Stored;

/// A page of events of any state, newest first.
pub(super) fn page(
    rows: &BTreeMap<i64, Stored>,
    filter: &EventFilter,
    below: Option<i64>,
    limit: usize,
    now: Timestamp,
) -> EventPage {
    let set = filter.rows();
    let in_set = |row: &Stored| match set {
        RowSet::All | RowSet::OfEvent => true,
        RowSet::New => row.status == Status::New,
        RowSet::Retry => row.status == Status::Retry,
        RowSet::Dead => row.status == Status::Dead,
    };
    let below = rows.range(..below.unwrap_or(i64::MAX)).rev().filter(|(_, row)| in_set(row));
    let most = if filter.passes_over_rows() { filter.read_at_most } else { usize::MAX };
    let read: Vec<_> = below.take(most).collect();
    let end = read.last().filter(|_| read.len() >= most).map(|(seq, row)| (**seq, row.created_at));
    let matching = read.into_iter().filter(|(_, row)| is_wanted(row, filter)).take(limit);
    EventPage::new(filter, matching.map(|(seq, row)| listed(*seq, row, now)).collect(), limit, end)
}

fn is_wanted(row: &Stored, filter: &EventFilter) -> bool {
    has(row, &filter.attributes)
        && filter.event_id.as_deref().is_none_or(|id| row.event.event_id() == id)
        && filter.status.is_none_or(|status| row.status == status)
        && filter.since.is_none_or(|since| row.created_at >= since)
        && filter.before.is_none_or(|before| row.created_at < before)
        && has_error(row, &filter.error)
}

fn listed(seq: i64, row: &Stored, now: Timestamp) -> ListedEvent {
    let event = row.event.envelope();
    ListedEvent {
        seq,
        event_id: event.id().as_str().to_owned(),
        event_type: event.event_type().to_owned(),
        aggregate_type: event.aggregate_type().to_owned(),
        aggregate_id: event.aggregate_id().map(str::to_owned),
        tenant_id: event.tenant_id().map(str::to_owned),
        key: event.key().map(str::to_owned),
        handler: row.handler.as_deref().map(str::to_owned),
        status: row.status.code(),
        attempts: i32::try_from(row.attempts).unwrap_or(i32::MAX),
        last_error: row.last_error.clone(),
        created_at: row.created_at,
        due_at: pending_state(row, now).and_then(|_| row.due_at()),
        done_at: row.done_at,
        held_by: PendingEvent::holder(row.locked_by.as_deref()),
    }
}

/// The reason for which a row is pending, if it is.
fn pending_state(row: &Stored, now: Timestamp) -> Option<PendingState> {
    match row.status {
        Status::Retry => Some(PendingState::Retrying),
        Status::New if row.due_at().is_some_and(|due| due > now) => Some(PendingState::Delayed),
        Status::New => Some(PendingState::New),
        Status::Done | Status::Dead => None,
    }
}

/// The row as a pending event, if it is one and matches.
pub(super) fn pending_event(seq: i64, row: &Stored, filter: &PendingFilter, now: Timestamp) -> Option<PendingEvent> {
    let event = row.event.envelope();
    let state = pending_state(row, now)?;
    let matches = has(row, &filter.attributes) && filter.state.is_none_or(|wanted| wanted == state);
    matches.then(|| PendingEvent {
        seq,
        event_id: event.id().as_str().to_owned(),
        event_type: event.event_type().to_owned(),
        aggregate_type: event.aggregate_type().to_owned(),
        aggregate_id: event.aggregate_id().map(str::to_owned),
        tenant_id: event.tenant_id().map(str::to_owned),
        key: event.key().map(str::to_owned),
        handler: row.handler.as_deref().map(str::to_owned),
        state,
        attempts: i32::try_from(row.attempts).unwrap_or(i32::MAX),
        last_error: row.last_error.clone(),
        created_at: row.created_at,
        due_at: row.due_at(),
        held_by: PendingEvent::holder(row.locked_by.as_deref()),
    })
}

/// True if the row is DEAD and matches.
pub(super) fn matches(row: &Stored, filter: &DeadFilter) -> bool {
    row.status == Status::Dead
        && has(row, &filter.attributes)
        && filter.since.is_none_or(|since| row.done_at.unwrap_or(row.created_at) >= since)
        && filter.before.is_none_or(|before| row.done_at.unwrap_or(row.created_at) < before)
        && has_error(row, &filter.error)
}

fn has(row: &Stored, attributes: &Attributes) -> bool {
    let event = row.event.envelope();
    let is =
        |wanted: &Option<String>, value: Option<&str>| wanted.as_deref().is_none_or(|wanted| value == Some(wanted));
    is(&attributes.event_type, Some(event.event_type()))
        && is(&attributes.aggregate_type, Some(event.aggregate_type()))
        && is(&attributes.tenant_id, event.tenant_id())
        && is(&attributes.handler, row.handler.as_deref())
        && is_of(&attributes.key, row)
}

fn has_error(row: &Stored, text: &Option<String>) -> bool {
    text.as_deref().is_none_or(|text| row.last_error.as_deref().is_some_and(|error| error.contains(text)))
}

pub(super) fn is_of(key: &Option<String>, row: &Stored) -> bool {
    let event = row.event.envelope();
    key.as_deref().is_none_or(|key| event.key().or(event.aggregate_id()) == Some(key))
}

pub(super) fn dead_event(seq: i64, row: &Stored) -> DeadEvent {
    let event = row.event.envelope();
    DeadEvent {
        seq,
        event_id: event.id().as_str().to_owned(),
        event_type: event.event_type().to_owned(),
        aggregate_type: event.aggregate_type().to_owned(),
        aggregate_id: event.aggregate_id().map(str::to_owned),
        tenant_id: event.tenant_id().map(str::to_owned),
        key: event.key().map(str::to_owned),
        handler: row.handler.as_deref().map(str::to_owned),
        attempts: i32::try_from(row.attempts).unwrap_or(i32::MAX),
        last_error: row.last_error.clone(),
        created_at: row.created_at,
        dead_at: row.done_at,
    }
}
