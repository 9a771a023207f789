use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::settle::{Change, Verdict};
use pillarbox_core::store::BegunAttempt;
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_scalar};

use crate::json;
use crate::ownership::{is_owner, is_registered, span};
use crate::sql::{Settle, Sql};

/// Checks the fence and returns whom a row must name as its holder, or its partition as the owner, if that is what counts.
/// `None` if the node has no right to any row.
///
/// The open transaction holds the write lock, so that ownership cannot change between the fence and the updates.
async fn fence<'n>(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &'n NodeId,
    fence: Fence,
) -> Result<Option<Option<&'n str>>, sqlx::Error> {
    Ok(match fence {
        Fence::Table => is_owner(connection, sql, node).await?.then_some(None),
        Fence::Partition | Fence::Row => is_registered(connection, sql, node).await?.then_some(Some(node.as_str())),
    })
}

/// Announces an attempt inside the open transaction and returns whether the row was still the node's.
pub(crate) async fn begin_attempt(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    by: Fence,
    attempt: &BegunAttempt,
) -> Result<bool, sqlx::Error> {
    let Some(owner) = fence(connection, sql, node, by).await? else { return Ok(false) };
    let begin = query(AssertSqlSafe(Arc::clone(&sql.settle(by).begin)))
        .bind(owner)
        .bind(node.as_str())
        .bind(attempt.seq)
        .bind(attempt.expected_attempts)
        .bind(attempt.attempts)
        .bind(attempt.error.as_deref());
    Ok(begin.execute(connection).await?.rows_affected() > 0)
}

/// Records verdicts inside the open transaction and returns the `seq` of those that changed nothing.
pub(crate) async fn settle(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    by: Fence,
    verdicts: &[Verdict],
) -> Result<Vec<i64>, sqlx::Error> {
    let Some(owner) = fence(connection, sql, node, by).await? else {
        return Ok(verdicts.iter().map(|verdict| verdict.seq).collect());
    };
    let sql = sql.settle(by);
    let mut refused = HashSet::new();
    let mut over: BTreeMap<(u32, bool), Vec<i64>> = BTreeMap::new();
    for verdict in verdicts {
        let bound =
            |sql| query(AssertSqlSafe(Arc::clone(sql))).bind(owner).bind(verdict.seq).bind(verdict.expected_attempts);
        let update = match &verdict.change {
            Change::Done | Change::Remove => {
                let kept = verdict.change == Change::Done;
                over.entry((verdict.expected_attempts, kept)).or_default().push(verdict.seq);
                continue;
            }
            Change::Retry { attempts, delay, error } => {
                bound(&sql.retry).bind(*attempts).bind(span(*delay)).bind(error.as_deref())
            }
            Change::Hold { attempts, error } => bound(&sql.hold).bind(*attempts).bind(error.as_str()),
            Change::Dead { attempts, error } => bound(&sql.dead).bind(*attempts).bind(error.as_str()),
        };
        if update.execute(&mut *connection).await?.rows_affected() == 0 {
            refused.insert(verdict.seq);
        }
    }
    // Nearly all rows are delivered at the first attempt: one batch for them, and one for each number of failures.
    for ((attempts, kept), seqs) in over {
        refused.extend(delivered(connection, sql, owner, attempts, kept, seqs).await?);
    }
    Ok(verdicts.iter().map(|verdict| verdict.seq).filter(|seq| refused.contains(seq)).collect())
}

/// Makes rows DONE, or deletes them, and returns those of which that cannot be.
async fn delivered(
    connection: &mut SqliteConnection,
    sql: &Settle,
    owner: Option<&str>,
    attempts: u32,
    kept: bool,
    seqs: Vec<i64>,
) -> Result<Vec<i64>, sqlx::Error> {
    let wanted = seqs.len() as u64;
    let seqs = json::array(seqs);
    let change = async |connection: &mut SqliteConnection| {
        let change = query(AssertSqlSafe(Arc::clone(if kept { &sql.done } else { &sql.remove }))).bind(owner);
        Ok::<_, sqlx::Error>(change.bind(seqs.as_str()).bind(attempts).execute(connection).await?.rows_affected())
    };
    // Nearly always none is refused, and then their number says so. `RETURNING` would hand over every row that was changed.
    query("SAVEPOINT delivered").execute(&mut *connection).await?;
    let mut refused = Vec::new();
    if change(&mut *connection).await? < wanted {
        query("ROLLBACK TO delivered").execute(&mut *connection).await?;
        let which = query_scalar(AssertSqlSafe(Arc::clone(&sql.refused))).bind(owner);
        refused = which.bind(seqs.as_str()).bind(attempts).fetch_all(&mut *connection).await?;
        change(&mut *connection).await?;
    }
    query("RELEASE delivered").execute(connection).await?;
    Ok(refused)
}
