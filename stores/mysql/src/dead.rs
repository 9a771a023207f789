use mysql_async::Row;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::store::{Attributes, DeadEvent, DeadFilter};

use crate::answer::{count, int};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::sql::script;
use crate::store::Inner;
use crate::upkeep::{EPOCH, owned, time};

pub(crate) async fn list(
    store: &Inner,
    filter: &DeadFilter,
    above: i64,
    limit: usize,
) -> Result<Vec<DeadEvent>, Failure> {
    let values = [("above", &Literal::int(above)), ("filter", &clause(filter)), ("limit", &Literal::count(limit))];
    let answers = store.sessions.run(fill(&store.sql.dead, &values)).await?;
    answers.rows(0).iter().map(read).collect()
}

pub(crate) async fn number(store: &Inner, filter: &DeadFilter) -> Result<u64, Failure> {
    let answers = store.sessions.run(fill(&store.sql.count_dead, &[("filter", &clause(filter))])).await?;
    answers.first(0).map_or(Ok(0), |row| count(row, 0))
}

/// Makes DEAD rows NEW.
pub(crate) async fn replay(store: &Inner, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    change(store, &store.sql.dead_lock, &store.sql.replay, seqs).await
}

/// Deletes DEAD rows.
pub(crate) async fn discard(store: &Inner, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    change(store, &store.sql.dead_lock, &store.sql.delete, seqs).await
}

/// Locks those of the rows that `lock` finds, changes them and says which they were.
pub(crate) async fn change(store: &Inner, lock: &str, statement: &str, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let lock = fill(lock, &[("seqs", &Literal::ints(seqs))]);
    let mut session = store.sessions.session().await?;
    let found = session.run(script(["START TRANSACTION", &lock])).await?.ints(1)?;
    let change = fill(statement, &[("seqs", &Literal::ints(&found))]);
    let change: &[&str] = if found.is_empty() { &[] } else { &[&change, &store.sql.intervene] };
    session.run(script(change.iter().copied().chain(["COMMIT"]))).await?;
    session.finish();
    Ok(found)
}

/// The conditions of a filter.
fn clause(filter: &DeadFilter) -> Literal {
    let DeadFilter { attributes, since, before, error } = filter;
    let ended = is_within("COALESCE(`done_at`, `created_at`)", *since, *before);
    Literal::clause(of_attributes(attributes) + &ended + &has_error(error))
}

/// The conditions on a time of a row. Whole numbers compare at any time; a date that the server does not know would be NULL.
pub(crate) fn is_within(row_time: &str, since: Option<Timestamp>, before: Option<Timestamp>) -> String {
    let bounds = [(since, ">="), (before, "<")].into_iter();
    let bounds = bounds.filter_map(|(time, relation)| Some((time?.as_micros(), relation)));
    bounds
        .map(|(time, relation)| {
            format!(" AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {row_time}) {relation} {}", Literal::int(time))
        })
        .collect()
}

/// The condition on a row's error; nothing for any.
pub(crate) fn has_error(text: &Option<String>) -> String {
    let condition = |text| format!(" AND LOCATE({}, CAST(`last_error` AS BINARY)) > 0", Literal::bytes(text));
    text.as_deref().map(condition).unwrap_or_default()
}

/// The conditions on the attributes of a row. They compare bytes: to the column's collation a name and the same with a space behind it are
/// one.
pub(crate) fn of_attributes(attributes: &Attributes) -> String {
    let Attributes { event_type, aggregate_type, tenant_id, handler, key } = attributes;
    let mut clause = String::new();
    for (column, wanted) in [("event_type", event_type), ("tenant_id", tenant_id), ("handler", handler)] {
        if let Some(wanted) = wanted {
            clause.push_str(&format!(" AND CAST(`{column}` AS BINARY) = {}", Literal::bytes(wanted)));
        }
    }
    if let Some(wanted) = aggregate_type {
        let unnamed = if wanted == GLOBAL_AGGREGATE { " OR `aggregate_type` IS NULL" } else { "" };
        let wanted = Literal::bytes(wanted);
        clause.push_str(&format!(" AND (CAST(`aggregate_type` AS BINARY) = {wanted}{unnamed})"));
    }
    clause.push_str(&of_key(key));
    clause
}

/// The condition on a row's key; nothing for any key.
pub(crate) fn of_key(key: &Option<String>) -> String {
    let condition =
        |key| format!(" AND CAST(COALESCE(`ordering_key`, `aggregate_id`) AS BINARY) <=> {}", Literal::bytes(key));
    key.as_deref().map(condition).unwrap_or_default()
}

fn read(row: &Row) -> Result<DeadEvent, Failure> {
    Ok(DeadEvent {
        seq: int(row, 0)?,
        event_id: owned(row, 1)?.unwrap_or_default(),
        event_type: owned(row, 2)?.unwrap_or_default(),
        aggregate_type: owned(row, 3)?.unwrap_or_else(|| GLOBAL_AGGREGATE.to_owned()),
        aggregate_id: owned(row, 4)?,
        tenant_id: owned(row, 5)?,
        key: owned(row, 6)?,
        handler: owned(row, 11)?,
        attempts: i32::try_from(int(row, 7)?).unwrap_or(i32::MAX),
        last_error: owned(row, 8)?,
        created_at: time(row, 9)?.unwrap_or(EPOCH),
        dead_at: time(row, 10)?,
    })
}
