use mysql_async::Row;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::store::{PendingEvent, PendingFilter, PendingState};

use super::dead::change;
use super::filter::of_attributes;
use crate::answer::{self, EPOCH, int, owned, text, time};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::store::Inner;

/// A page of pending events.
pub(super) async fn list(
    store: &Inner,
    filter: &PendingFilter,
    above: i64,
    limit: usize,
) -> Result<Vec<PendingEvent>, Failure> {
    let values = [("above", &Literal::int(above)), ("filter", &clause(filter)), ("limit", &Literal::count(limit))];
    let answers = store.sessions.run(fill(&store.sql.pending, &values)).await?;
    answers.rows(0).iter().map(read).collect()
}

/// The number of pending rows that match.
pub(super) async fn count(store: &Inner, filter: &PendingFilter) -> Result<u64, Failure> {
    let answers = store.sessions.run(fill(&store.sql.count_pending, &[("filter", &clause(filter))])).await?;
    answers.first(0).map_or(Ok(0), |row| answer::count(row, 0))
}

/// Makes rows due that wait for a time.
pub(super) async fn retry_now(store: &Inner, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    change(store, &store.sql.waiting_lock, &store.sql.retry_now, seqs).await
}

/// Ends pending rows without a delivery.
pub(super) async fn cancel(store: &Inner, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    change(store, &store.sql.pending_lock, &store.sql.cancel, seqs).await
}

/// The conditions of a filter.
fn clause(filter: &PendingFilter) -> Literal {
    let PendingFilter { attributes, state } = filter;
    let mut clause = of_attributes(attributes);
    clause.push_str(match state {
        None => "",
        Some(PendingState::New) => " AND `status` = 0 AND (`due_at` IS NULL OR `due_at` <= UTC_TIMESTAMP(6))",
        Some(PendingState::Delayed) => " AND `status` = 0 AND `due_at` > UTC_TIMESTAMP(6)",
        Some(PendingState::Retrying) => " AND `status` = 2",
    });
    Literal::clause(clause)
}

fn read(row: &Row) -> Result<PendingEvent, Failure> {
    Ok(PendingEvent {
        seq: int(row, 0)?,
        event_id: owned(row, 1)?.unwrap_or_default(),
        event_type: owned(row, 2)?.unwrap_or_default(),
        aggregate_type: owned(row, 3)?.unwrap_or_else(|| GLOBAL_AGGREGATE.to_owned()),
        aggregate_id: owned(row, 4)?,
        tenant_id: owned(row, 5)?,
        key: owned(row, 6)?,
        handler: owned(row, 7)?,
        state: PendingState::of_code(int(row, 8)?),
        attempts: i32::try_from(int(row, 9)?).unwrap_or(i32::MAX),
        last_error: owned(row, 10)?,
        created_at: time(row, 11)?.unwrap_or(EPOCH),
        due_at: time(row, 12)?,
        held_by: PendingEvent::holder(text(row, 13)?),
    })
}
