use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pillarbox_core::ownership::NodeId;
use pillarbox_core::settle::{Change, Verdict};
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_scalar};

use crate::json;
use crate::ownership::span;
use crate::sql::Sql;

/// Records verdicts inside the open transaction and returns the `seq` of those that changed nothing.
///
/// The transaction holds the write lock, so that ownership cannot change between the fence and the updates.
pub(crate) async fn settle(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    verdicts: &[Verdict],
) -> Result<Vec<i64>, sqlx::Error> {
    let owner: bool = query_scalar(AssertSqlSafe(Arc::clone(&sql.settle_fence)))
        .bind(node.as_str())
        .fetch_one(&mut *connection)
        .await?;
    if !owner {
        return Ok(verdicts.iter().map(|verdict| verdict.seq).collect());
    }
    let mut refused = HashSet::new();
    let mut done: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for verdict in verdicts {
        let bound = |sql| query(AssertSqlSafe(Arc::clone(sql))).bind(verdict.seq).bind(verdict.expected_attempts);
        let update = match &verdict.change {
            Change::Done => {
                done.entry(verdict.expected_attempts).or_default().push(verdict.seq);
                continue;
            }
            Change::Retry { attempts, delay, error } => {
                bound(&sql.settle_retry).bind(*attempts).bind(span(*delay)).bind(error.as_deref())
            }
            Change::Dead { attempts, error } => bound(&sql.settle_dead).bind(*attempts).bind(error.as_str()),
        };
        if update.execute(&mut *connection).await?.rows_affected() == 0 {
            refused.insert(verdict.seq);
        }
    }
    // Nearly all rows are delivered at the first attempt: one batch for them, and one for each number of failures.
    for (attempts, seqs) in done {
        refused.extend(delivered(connection, sql, attempts, seqs).await?);
    }
    Ok(verdicts.iter().map(|verdict| verdict.seq).filter(|seq| refused.contains(seq)).collect())
}

/// Makes rows DONE and returns those that cannot be.
async fn delivered(
    connection: &mut SqliteConnection,
    sql: &Sql,
    attempts: u32,
    seqs: Vec<i64>,
) -> Result<Vec<i64>, sqlx::Error> {
    let seqs = json::array(seqs);
    // Asked beforehand, because it is nearly always none: `RETURNING` would hand over every row that was changed instead.
    let refused = query_scalar(AssertSqlSafe(Arc::clone(&sql.settle_refused))).bind(seqs.as_str()).bind(attempts);
    let refused = refused.fetch_all(&mut *connection).await?;
    query(AssertSqlSafe(Arc::clone(&sql.settle_done))).bind(seqs).bind(attempts).execute(connection).await?;
    Ok(refused)
}
