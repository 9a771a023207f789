use mysql_async::Row;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::store::{DeadEvent, DeadFilter};

use super::filter::{has_error, is_within, of_attributes};
use crate::answer::{self, EPOCH, int, owned, time};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::sql::script;
use crate::store::Inner;

/// A page of DEAD events.
pub(super) async fn list(
    store: &Inner,
    filter: &DeadFilter,
    above: i64,
    limit: usize,
) -> Result<Vec<DeadEvent>, Failure> {
    let values = [("above", &Literal::int(above)), ("filter", &clause(filter)), ("limit", &Literal::count(limit))];
    let answers = store.sessions.run(fill(&store.sql.dead, &values)).await?;
    answers.rows(0).iter().map(read).collect()
}

/// The number of DEAD rows that match.
pub(super) async fn count(store: &Inner, filter: &DeadFilter) -> Result<u64, Failure> {
    let answers = store.sessions.run(fill(&store.sql.count_dead, &[("filter", &clause(filter))])).await?;
    answers.first(0).map_or(Ok(0), |row| answer::count(row, 0))
}

/// Makes DEAD rows NEW.
pub(super) async fn replay(store: &Inner, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    change(store, &store.sql.dead_lock, &store.sql.replay, seqs).await
}

/// Deletes DEAD rows.
pub(super) async fn discard(store: &Inner, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
    change(store, &store.sql.dead_lock, &store.sql.delete, seqs).await
}

/// Locks those of the rows that `lock` finds, changes them and says which they were.
pub(super) async fn change(store: &Inner, lock: &str, statement: &str, seqs: &[i64]) -> Result<Vec<i64>, Failure> {
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
