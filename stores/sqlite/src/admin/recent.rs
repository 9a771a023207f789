use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::row::Status;
use pillarbox_core::store::{EventFilter, EventPage, ListedEvent, PendingEvent};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, query_as};

use super::filter::with_attributes;
use super::record::{attempts, required, text, time};
use crate::store::Session;

/// A page of events of any state, newest first.
pub(super) async fn page(
    session: &mut Session<'_>,
    filter: &EventFilter,
    below: Option<i64>,
    limit: usize,
) -> sqlx::Result<EventPage> {
    let (statements, below) = (session.sql.recent.among(filter.rows()), below.unwrap_or(i64::MAX));
    let size = |rows: usize| i64::try_from(rows).unwrap_or(i64::MAX);
    let end: Option<(i64, i64)> = if filter.passes_over_rows() {
        let end = query_as(statements.end.clone()).bind(below).bind(size(filter.read_at_most));
        end.fetch_optional(&mut *session.connection).await?
    } else {
        None
    };
    let times = [filter.since, filter.before].map(|time| time.map(Timestamp::as_micros));
    let page =
        times.into_iter().fold(with_attributes(&statements.page, &filter.attributes), |page, time| page.bind(time));
    let page =
        page.bind(filter.error.as_deref()).bind(filter.status.map(Status::code)).bind(filter.event_id.as_deref());
    let page = page.bind(below).bind(end.map_or(i64::MIN, |(seq, _)| seq)).bind(size(limit));
    let events = page.fetch_all(&mut *session.connection).await?.iter().map(decode).collect::<Result<_, _>>()?;
    Ok(EventPage::new(filter, events, limit, end.map(|(seq, created_at)| (seq, Timestamp::from_micros(created_at)))))
}

fn decode(row: &SqliteRow) -> sqlx::Result<ListedEvent> {
    Ok(ListedEvent {
        seq: row.try_get(0)?,
        event_id: required(row, 1)?,
        event_type: required(row, 2)?,
        aggregate_type: text(row, 3)?.unwrap_or_else(|| GLOBAL_AGGREGATE.to_owned()),
        aggregate_id: text(row, 4)?,
        tenant_id: text(row, 5)?,
        key: text(row, 6)?,
        handler: text(row, 7)?,
        status: row.try_get(8)?,
        attempts: attempts(row, 9)?,
        last_error: text(row, 10)?,
        created_at: Timestamp::from_micros(row.try_get(11)?),
        due_at: time(row, 12)?,
        done_at: time(row, 13)?,
        held_by: PendingEvent::holder(text(row, 14)?.as_deref()),
    })
}
