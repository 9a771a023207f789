use std::collections::{BTreeMap, HashSet};

use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::BegunAttempt;
use sqlx::{SqlStr, SqliteConnection, query, query_as, query_scalar};

use crate::json;
use crate::ownership::{is_owner, is_registered, span};
use crate::sql::Settle;
use crate::store::Session;

/// Checks the fence and returns the node that the row's holder or its partition's owner must equal, if the fence checks either.
/// `None` if the node has no right to any row.
///
/// The open transaction holds the write lock, so that ownership cannot change between the fence and the updates.
async fn fence<'n>(session: &mut Session<'_>, node: &'n NodeId, fence: Fence) -> sqlx::Result<Option<Option<&'n str>>> {
    Ok(match fence {
        Fence::Table => is_owner(session, node).await?.then_some(None),
        Fence::Partition | Fence::Row => is_registered(session, node).await?.then_some(Some(node.as_str())),
    })
}

/// Announces an attempt inside the open transaction and returns whether the row was still the node's.
pub(crate) async fn begin_attempt(
    session: &mut Session<'_>,
    node: &NodeId,
    by: Fence,
    attempt: &BegunAttempt,
) -> sqlx::Result<bool> {
    let Some(owner) = fence(session, node, by).await? else { return Ok(false) };
    let begin = query(session.sql.settle(by).begin.clone())
        .bind(owner)
        .bind(node.as_str())
        .bind(attempt.row.seq)
        .bind(attempt.expected.attempts)
        .bind(attempt.attempts)
        .bind(attempt.error.as_deref())
        .bind(attempt.row.event_id.as_str())
        .bind(attempt.row.handler.as_deref())
        .bind(attempt.expected.replays);
    Ok(begin.execute(&mut *session.connection).await?.rows_affected() > 0)
}

/// Records verdicts inside the open transaction and returns the `seq` of those that changed nothing.
pub(crate) async fn settle(
    session: &mut Session<'_>,
    node: &NodeId,
    by: Fence,
    verdicts: &[Verdict],
) -> sqlx::Result<Vec<i64>> {
    let Some(owner) = fence(session, node, by).await? else {
        return Ok(verdicts.iter().map(|verdict| verdict.row.seq).collect());
    };
    let sql = session.sql.settle(by);
    let mut refused = HashSet::new();
    let mut over: BTreeMap<Batch<'_>, Vec<&Verdict>> = BTreeMap::new();
    for verdict in verdicts {
        let bound = |sql: &SqlStr| query(sql.clone()).bind(owner).bind(verdict.row.seq).bind(verdict.expected.attempts);
        let update = match &verdict.change {
            Change::Done | Change::DeliveredAs(_) | Change::Remove => {
                let kept = match verdict.change {
                    Change::Remove => Kept::Nothing,
                    Change::DeliveredAs(_) => Kept::Positions,
                    _ => Kept::Rows,
                };
                let batch = (verdict.expected, kept, verdict.row.handler.as_deref());
                over.entry(batch).or_default().push(verdict);
                continue;
            }
            Change::Retry { attempts, delay, error } => {
                bound(&sql.retry).bind(*attempts).bind(span(*delay)).bind(error.as_deref())
            }
            Change::RetryInPlace { attempts, error } => bound(&sql.retry_in_place).bind(*attempts).bind(error.as_str()),
            Change::Rescued { attempts, error } | Change::Dead { attempts, error } => {
                bound(&sql.ended).bind(*attempts).bind(error.as_str()).bind(verdict.change.status().code())
            }
        };
        // A row that makes no event goes DEAD, and is named anew first if it cannot be told from others.
        let renamed = match &verdict.change {
            Change::Dead { .. } => name(session, verdict.row.seq).await?,
            _ => None,
        };
        let (event, handler) = match &renamed {
            Some((event, handler)) => (event.as_str(), handler.as_deref()),
            None => (verdict.row.event_id.as_str(), verdict.row.handler.as_deref()),
        };
        let update = update.bind(event).bind(handler).bind(verdict.expected.replays).bind(node.as_str());
        // Only a retry may have an error that is no failed attempt.
        let update = match &verdict.change {
            Change::Retry { .. } => update.bind(verdict.failure().map(|(_, error)| error)),
            _ => update,
        };
        if update.execute(&mut *session.connection).await?.rows_affected() == 0 {
            refused.insert(verdict.row.seq);
        }
    }
    // Nearly all rows are delivered at the first attempt: one batch for them, and one for each other state. Of
    // events with several handlers, each handler's rows are a batch.
    for (batch, verdicts) in over {
        refused.extend(delivered(session.connection, sql, owner, batch, verdicts).await?);
    }
    Ok(verdicts.iter().map(|verdict| verdict.row.seq).filter(|seq| refused.contains(seq)).collect())
}

/// Names a row anew whose id or handler is no text, which a cast can make: it could not be told from others. `None` if both are text.
async fn name(session: &mut Session<'_>, seq: i64) -> sqlx::Result<Option<(String, Option<String>)>> {
    let names = query_as(session.sql.names.clone()).bind(seq).fetch_optional(&mut *session.connection).await?;
    let Some::<(Vec<u8>, Option<Vec<u8>>)>((event, handler)) = names else { return Ok(None) };
    let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
    if is_text(&event) && handler.as_deref().is_none_or(is_text) {
        return Ok(None);
    }
    let readable = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(36).collect::<String>();
    let handler = handler.map(|handler| String::from_utf8_lossy(&handler).into_owned());
    // If another event has the readable form of it already, the row is named after its number.
    for event in [readable(&event), format!("unreadable-{seq}")] {
        let rename = query(session.sql.rename.clone()).bind(seq).bind(&event).bind(handler.as_deref());
        match rename.execute(&mut *session.connection).await {
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(Some((event, handler))),
        }
    }
    Ok(None)
}

/// The part of delivered rows that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    Nothing,
    Rows,
    /// The rows, each with the position at which the receiver has its event.
    Positions,
}

/// The common properties of delivered rows that are changed at once: their state before, the part that is kept, and their handler.
type Batch<'v> = (Expected, Kept, Option<&'v str>);

/// Makes rows DONE, or deletes them, and returns those of which that cannot be.
async fn delivered(
    connection: &mut SqliteConnection,
    sql: &Settle,
    owner: Option<&str>,
    (expected, kept, handler): Batch<'_>,
    mut verdicts: Vec<&Verdict>,
) -> sqlx::Result<Vec<i64>> {
    let change = async |connection: &mut SqliteConnection, verdicts: &[&Verdict]| {
        let seqs = || json::array(verdicts.iter().map(|verdict| verdict.row.seq));
        let (change, rows) = match kept {
            Kept::Nothing => (&sql.removed, seqs()),
            Kept::Rows => (&sql.done, seqs()),
            Kept::Positions => (&sql.done_as, json::positions(verdicts.iter().filter_map(|verdict| placed(verdict)))),
        };
        let change = query(change.clone()).bind(owner).bind(rows).bind(expected.attempts);
        let change = change.bind(json::events(verdicts.iter().map(|verdict| &verdict.row)));
        let change = change.bind(handler).bind(expected.replays);
        Ok::<_, sqlx::Error>(change.execute(connection).await?.rows_affected())
    };
    // Nearly always none is refused, and then their number says so. `RETURNING` would hand over every row that was changed.
    query("SAVEPOINT delivered").execute(&mut *connection).await?;
    let mut refused: Vec<i64> = Vec::new();
    if change(&mut *connection, &verdicts).await? < verdicts.len() as u64 {
        query("ROLLBACK TO delivered").execute(&mut *connection).await?;
        let which = query_scalar(sql.refused.clone()).bind(owner);
        let which =
            which.bind(json::places(verdicts.iter().map(|verdict| &verdict.row))).bind(expected.attempts).bind(handler);
        let which = which.bind(expected.replays);
        refused = which.fetch_all(&mut *connection).await?;
        let left_out: HashSet<i64> = refused.iter().copied().collect();
        verdicts.retain(|verdict| !left_out.contains(&verdict.row.seq));
        change(&mut *connection, &verdicts).await?;
    }
    query("RELEASE delivered").execute(connection).await?;
    Ok(refused)
}

/// The place of a row, and the position that it keeps.
fn placed(verdict: &Verdict) -> Option<(i64, &str)> {
    match &verdict.change {
        Change::DeliveredAs(position) => Some((verdict.row.seq, position.as_str())),
        _ => None,
    }
}
