use pillarbox_core::clock::Timestamp;
use pillarbox_core::row::Status;
use pillarbox_core::store::{EventFilter, EventPage, ListedEvent, PendingEvent};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::filter::attributes;
use crate::error::Failure;
use crate::fetch::size;
use crate::row::Micros;
use crate::store::Inner;

/// A page of events of any state, newest first.
pub(super) async fn page(
    store: &Inner,
    filter: &EventFilter,
    below: Option<i64>,
    limit: usize,
) -> Result<EventPage, Failure> {
    // The server refuses text with a NUL, which no row has.
    if filter.texts().any(|text| text.contains('\0')) {
        return Ok(EventPage::default());
    }
    let (statements, below) = (store.sql.recent.among(filter.rows()), below.unwrap_or(i64::MAX));
    let mut session = store.sessions.session().await?;
    let end = if filter.passes_over_rows() {
        let most = size(filter.read_at_most);
        session.query_by_index(&statements.end, &[(&below, Type::INT8), (&most, Type::INT8)]).await?
    } else {
        Vec::new()
    };
    let end = end.first().map(|row| Ok::<_, Failure>((row.try_get::<_, i64>(0)?, row.try_get::<_, Micros>(1)?.into())));
    let end: Option<(i64, Timestamp)> = end.transpose()?;
    let [since, before] = [filter.since, filter.before].map(|time| time.map(Micros::from));
    let (status, from, most) = (filter.status.map(Status::code), end.map_or(i64::MIN, |(seq, _)| seq), size(limit));
    let mut params = attributes(&filter.attributes);
    params.extend([
        (&since as _, Type::TIMESTAMPTZ),
        (&before as _, Type::TIMESTAMPTZ),
        (&filter.error as _, Type::TEXT),
        (&status as _, Type::INT2),
        (&filter.event_id as _, Type::TEXT),
        (&below as _, Type::INT8),
        (&from as _, Type::INT8),
        (&most as _, Type::INT8),
    ]);
    let rows = session.query_by_index(&statements.page, &params).await?;
    session.finish();
    let events = rows.iter().map(decode).collect::<Result<_, _>>()?;
    Ok(EventPage::new(filter, events, limit, end))
}

fn decode(row: &Row) -> Result<ListedEvent, Failure> {
    Ok(ListedEvent {
        seq: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event_type: row.try_get(2)?,
        aggregate_type: row.try_get(3)?,
        aggregate_id: row.try_get(4)?,
        tenant_id: row.try_get(5)?,
        key: row.try_get(6)?,
        handler: row.try_get(7)?,
        status: row.try_get(8)?,
        attempts: row.try_get(9)?,
        last_error: row.try_get(10)?,
        created_at: row.try_get::<_, Micros>(11)?.into(),
        due_at: row.try_get::<_, Option<Micros>>(12)?.map(Timestamp::from),
        done_at: row.try_get::<_, Option<Micros>>(13)?.map(Timestamp::from),
        held_by: PendingEvent::holder(row.try_get(14)?),
    })
}
