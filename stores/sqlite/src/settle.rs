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
    let mut changed = HashSet::with_capacity(verdicts.len());
    let mut done: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for verdict in verdicts {
        if verdict.change == Change::Done {
            done.entry(verdict.expected_attempts).or_default().push(verdict.seq);
        } else if failed(connection, sql, verdict).await? {
            changed.insert(verdict.seq);
        }
    }
    // Nearly all rows are delivered at the first attempt: one statement for them, and one for each number of failures.
    for (attempts, seqs) in done {
        let delivered =
            query_scalar(AssertSqlSafe(Arc::clone(&sql.settle_done))).bind(json::array(seqs)).bind(attempts);
        let delivered: Vec<i64> = delivered.fetch_all(&mut *connection).await?;
        changed.extend(delivered);
    }
    Ok(verdicts.iter().map(|verdict| verdict.seq).filter(|seq| !changed.contains(seq)).collect())
}

/// Makes a row RETRY or DEAD and returns whether it was changed. Its error text is bound as it is, byte for byte.
async fn failed(connection: &mut SqliteConnection, sql: &Sql, verdict: &Verdict) -> Result<bool, sqlx::Error> {
    let text = |sql: &Arc<str>| query(AssertSqlSafe(Arc::clone(sql))).bind(verdict.seq).bind(verdict.expected_attempts);
    let update = match &verdict.change {
        Change::Retry { attempts, delay, error } => {
            text(&sql.settle_retry).bind(*attempts).bind(span(*delay)).bind(error.as_deref())
        }
        Change::Dead { attempts, error } => text(&sql.settle_dead).bind(*attempts).bind(error.as_str()),
        Change::Done => text(&sql.settle_done),
    };
    Ok(update.execute(connection).await?.rows_affected() > 0)
}
