use mysql_async::Row;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::row::Status;
use pillarbox_core::store::{EventFilter, EventPage, ListedEvent, PendingEvent, RowSet};

use super::filter::{has_error, is_within, of_attributes};
use crate::answer::{EPOCH, int, owned, text, time};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::sql::Sql;
use crate::store::Inner;

/// A page of events of any state, newest first.
pub(super) async fn page(
    store: &Inner,
    filter: &EventFilter,
    below: Option<i64>,
    limit: usize,
) -> Result<EventPage, Failure> {
    let mut session = store.sessions.session().await?;
    let end = if filter.passes_over_rows() {
        let answers = session.run(end_of_page(&store.sql, filter, below)).await?;
        answers.first(0).map(|row| Ok::<_, Failure>((int(row, 0)?, time(row, 1)?.unwrap_or(EPOCH)))).transpose()?
    } else {
        None
    };
    let answers = session.run(rows(&store.sql, filter, below, end, limit)).await?;
    session.finish();
    let events = answers.rows(0).iter().map(read).collect::<Result<_, _>>()?;
    Ok(EventPage::new(filter, events, limit, end))
}

/// The statement that finds where a page has to stop.
pub(crate) fn end_of_page(sql: &Sql, filter: &EventFilter, below: Option<i64>) -> String {
    let (index, of) = entry(filter);
    let (most, but_one) = (filter.read_at_most, filter.read_at_most.saturating_sub(1));
    let values = [
        ("index", &index),
        ("of", &of),
        ("below", &Literal::int(below.unwrap_or(i64::MAX))),
        ("most", &Literal::count(most)),
        ("but_one", &Literal::count(but_one)),
    ];
    fill(if is_pending(filter) { &sql.recent_end_pending } else { &sql.recent_end }, &values)
}

/// The statement that reads a page down to its end.
pub(crate) fn rows(
    sql: &Sql,
    filter: &EventFilter,
    below: Option<i64>,
    end: Option<(i64, Timestamp)>,
    limit: usize,
) -> String {
    let (index, of) = entry(filter);
    let values = [
        ("index", &index),
        ("of", &of),
        ("below", &Literal::int(below.unwrap_or(i64::MAX))),
        ("from", &Literal::int(end.map_or(i64::MIN, |(seq, _)| seq))),
        ("filter", &clause(filter)),
        ("limit", &Literal::count(limit)),
    ];
    fill(if is_pending(filter) { &sql.recent_pending } else { &sql.recent }, &values)
}

fn is_pending(filter: &EventFilter) -> bool {
    matches!(filter.rows(), RowSet::New | RowSet::Retry)
}

/// The index by which the rows are entered, and its condition.
fn entry(filter: &EventFilter) -> (Literal, Literal) {
    let (index, of) = match (filter.rows(), &filter.event_id) {
        (RowSet::OfEvent, Some(id)) => ("`pillarbox_event_id`", format!(" AND `event_id` = {}", Literal::text(id))),
        (RowSet::Dead, _) => ("`pillarbox_queue`", " AND `queue` = 3 AND `due_at` IS NULL".to_owned()),
        _ => ("PRIMARY", String::new()),
    };
    (Literal::clause(index.to_owned()), Literal::clause(of))
}

/// The conditions of a filter.
fn clause(filter: &EventFilter) -> Literal {
    let EventFilter { attributes, event_id, status, since, before, error, read_at_most: _ } = filter;
    let mut clause = of_attributes(attributes);
    if let Some(id) = event_id {
        clause.push_str(&format!(" AND CAST(`event_id` AS BINARY) = {}", Literal::bytes(id)));
    }
    if let Some(status) = status {
        clause.push_str(&format!(" AND `status` = {}", Status::code(*status)));
    }
    clause.push_str(&is_within("`created_at`", *since, *before));
    clause.push_str(&has_error(error));
    Literal::clause(clause)
}

fn read(row: &Row) -> Result<ListedEvent, Failure> {
    Ok(ListedEvent {
        seq: int(row, 0)?,
        event_id: owned(row, 1)?.unwrap_or_default(),
        event_type: owned(row, 2)?.unwrap_or_default(),
        aggregate_type: owned(row, 3)?.unwrap_or_else(|| GLOBAL_AGGREGATE.to_owned()),
        aggregate_id: owned(row, 4)?,
        tenant_id: owned(row, 5)?,
        key: owned(row, 6)?,
        handler: owned(row, 7)?,
        status: i16::try_from(int(row, 8)?).unwrap_or(i16::MAX),
        attempts: i32::try_from(int(row, 9)?).unwrap_or(i32::MAX),
        last_error: owned(row, 10)?,
        created_at: time(row, 11)?.unwrap_or(EPOCH),
        due_at: time(row, 12)?,
        done_at: time(row, 13)?,
        held_by: PendingEvent::holder(text(row, 14)?),
    })
}
