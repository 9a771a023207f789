use std::collections::HashMap;
use std::time::Duration;

use pillarbox_core::ownership::{Fence, NodeId, begun_by};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{BegunAttempt, RowId};

use crate::answer::{Answers, int, is_true, text};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::sql::{Sql, script};
use crate::store::Inner;

/// Records verdicts in one transaction of two round trips, and returns those that were refused.
///
/// MySQL has no `UPDATE … RETURNING`. If every event succeeded at once, which is the common case, the number of rows that
/// the change matched says that none was refused. Otherwise the rows that may still be changed are locked and read before any
/// is changed.
pub(crate) async fn settle(
    store: &Inner,
    node: &NodeId,
    fence: Fence,
    verdicts: &[Verdict],
) -> Result<Vec<i64>, Failure> {
    if verdicts.is_empty() {
        return Ok(Vec::new());
    }
    let mut session = store.sessions.session().await?;
    let seqs: Vec<i64> = verdicts.iter().map(|verdict| verdict.row.seq).collect();
    if let Some(change) = at_once(&store.sql, verdicts)
        && let Some(events) = events(&store.sql, verdicts)
        && settle_at_once(store, &mut session, node, fence, change, verdicts, &events).await?
    {
        session.finish();
        return Ok(Vec::new());
    }
    let mut open = lock(store, &mut session, node, fence, seqs).await?;
    let mut applies = |verdict: &&Verdict| {
        let Some(locked) = open.get_mut(&verdict.row.seq) else { return false };
        let found = locked.is(&verdict.row, verdict.expected);
        if found {
            match left_open(&verdict.change, fence) {
                Some(attempts) => locked.attempts = attempts,
                None => drop(open.remove(&verdict.row.seq)),
            }
        }
        found
    };
    let (applied, refused): (Vec<&Verdict>, Vec<&Verdict>) = verdicts.iter().partition(&mut applies);
    end(&mut session, changes(&store.sql, node, &applied)).await?;
    session.finish();
    Ok(refused.into_iter().map(|verdict| verdict.row.seq).collect())
}

/// The statement that records all of these verdicts at once, if there is one.
fn at_once<'a>(sql: &'a Sql, verdicts: &[Verdict]) -> Option<&'a str> {
    let all = |is: fn(&Change) -> bool| {
        verdicts.iter().all(|verdict| is(&verdict.change) && verdict.expected == Expected::FIRST)
    };
    if all(|change| matches!(change, Change::Done | Change::DeliveredAs(_))) {
        Some(&sql.settle_done_at_once)
    } else if all(|change| *change == Change::Remove) {
        Some(&sql.settle_removed_at_once)
    } else {
        None
    }
}

/// The condition that rows are of these events, if one says it of all of them.
fn events(sql: &Sql, verdicts: &[Verdict]) -> Option<Literal> {
    let rows = || verdicts.iter().map(|verdict| &verdict.row);
    if rows().all(|row| row.handler.is_none()) {
        let events: Vec<&str> = rows().map(|row| row.event_id.as_str()).collect();
        return Some(Literal::clause(fill(&sql.of_events, &[("events", &Literal::byte_list(&events))])));
    }
    let pairs: Option<Vec<_>> = rows().map(|row| Some((row.event_id.as_str(), row.handler.as_deref()?))).collect();
    Some(Literal::clause(fill(&sql.of_handlers, &[("pairs", &Literal::byte_pairs(pairs?))])))
}

/// Makes one change to all rows; false if it did not meet every one of them, and then it was not made.
async fn settle_at_once(
    store: &Inner,
    session: &mut Session,
    node: &NodeId,
    fence: Fence,
    change: &str,
    verdicts: &[Verdict],
    events: &Literal,
) -> Result<bool, Failure> {
    let mut seqs: Vec<i64> = verdicts.iter().map(|verdict| verdict.row.seq).collect();
    seqs.sort_unstable();
    let (position, held) = (position(&store.sql, verdicts), held(store, node, fence));
    let values = [("seqs", &Literal::ints(&seqs)), ("events", events), ("held", &held), ("position", &position)];
    let change = fill(change, &values);
    let answers = session.run(script(["START TRANSACTION", &fenced(store, node), &change])).await?;
    let made = is_its_turn(&answers, fence)? && answers.matched(2) == seqs.len() as u64;
    session.run(if made { "COMMIT" } else { "ROLLBACK" }).await?;
    Ok(made)
}

/// The attempts of a row that a further verdict of the same batch may still change after this one.
fn left_open(change: &Change, fence: Fence) -> Option<i64> {
    match change {
        Change::RetryInPlace { attempts, .. } => Some(i64::from(*attempts)),
        // It names no holder any more.
        Change::Retry { attempts, .. } => (fence != Fence::Row).then_some(i64::from(*attempts)),
        Change::Done | Change::DeliveredAs(_) | Change::Rescued { .. } | Change::Remove | Change::Dead { .. } => None,
    }
}

/// Announces an attempt; false if the row is not the node's any more.
pub(crate) async fn begin_attempt(
    store: &Inner,
    node: &NodeId,
    fence: Fence,
    attempt: &BegunAttempt,
) -> Result<bool, Failure> {
    let mut session = store.sessions.session().await?;
    let open = lock(store, &mut session, node, fence, vec![attempt.row.seq]).await?;
    let applies = open.get(&attempt.row.seq).is_some_and(|locked| locked.is(&attempt.row, attempt.expected));
    let change = applies.then(|| {
        let values = [
            ("begun", &Literal::text(&begun_by(node))),
            ("attempts", &count(attempt.attempts)),
            ("error", &Literal::optional_text(attempt.error.as_deref())),
            ("failures", &failures(&store.sql, node, attempt.error.as_deref().map(|error| (attempt.attempts, error)))),
            ("seq", &Literal::int(attempt.row.seq)),
        ];
        fill(&store.sql.begin_attempt, &values)
    });
    end(&mut session, change.into_iter().collect()).await?;
    session.finish();
    Ok(applies)
}

/// A row that may still be changed.
struct Locked {
    attempts: i64,
    replays: i64,
    event_id: String,
    handler: Option<String>,
}

impl Locked {
    /// True if it is that row, and in that state.
    fn is(&self, row: &RowId, expected: Expected) -> bool {
        self.attempts == i64::from(expected.attempts)
            && self.replays == i64::from(expected.replays.cast_signed())
            && self.event_id == row.event_id.as_str()
            && self.handler.as_deref() == row.handler.as_deref()
    }
}

/// Begins a transaction, and locks those of the rows that are pending and the node's.
async fn lock(
    store: &Inner,
    session: &mut Session,
    node: &NodeId,
    fence: Fence,
    mut seqs: Vec<i64>,
) -> Result<HashMap<i64, Locked>, Failure> {
    // Ascending, so that two settles lock the rows they share in the same order.
    seqs.sort_unstable();
    let values = [("seqs", &Literal::ints(&seqs)), ("held", &held(store, node, fence))];
    let rows = fill(&store.sql.settle_lock, &values);
    let answers = session.run(script(["START TRANSACTION", &fenced(store, node), &rows])).await?;
    if !is_its_turn(&answers, fence)? {
        return Ok(HashMap::new());
    }
    let locked = |row| {
        let (event_id, handler) = (text(row, 2)?.unwrap_or_default().to_owned(), text(row, 3)?.map(str::to_owned));
        Ok((int(row, 0)?, Locked { attempts: int(row, 1)?, replays: int(row, 4)?, event_id, handler }))
    };
    answers.rows(2).iter().map(locked).collect()
}

/// The condition under which a row is the node's.
fn held(store: &Inner, node: &NodeId, fence: Fence) -> Literal {
    let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(node)));
    match fence {
        Fence::Table => Literal::nothing(),
        Fence::Partition => Literal::clause(fill(&store.sql.held_partition, &[("id", &id)])),
        Fence::Row => Literal::clause(fill(&store.sql.held, &[("id", &id), ("begun", &begun)])),
    }
}

/// The statement that fences the node; second in its transaction.
fn fenced(store: &Inner, node: &NodeId) -> String {
    fill(&store.sql.fence, &[("id", &Literal::text(node.as_str()))])
}

/// True if the fence found the node, and as the owner where there is one.
fn is_its_turn(answers: &Answers, fence: Fence) -> Result<bool, Failure> {
    match (answers.first(1), fence) {
        (None, _) => Ok(false),
        (Some(row), Fence::Table) => is_true(row, 0),
        (Some(_), Fence::Partition | Fence::Row) => Ok(true),
    }
}

/// Makes the changes and commits them.
async fn end(session: &mut Session, mut changes: Vec<String>) -> Result<(), Failure> {
    if changes.is_empty() {
        session.run("ROLLBACK").await?;
        return Ok(());
    }
    changes.push("COMMIT".to_owned());
    for part in parts(changes) {
        session.run(part).await?;
    }
    Ok(())
}

/// Cuts statements into texts that every server takes.
fn parts(statements: Vec<String>) -> Vec<String> {
    const MAX_BYTES: usize = 1 << 20;
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut size = MAX_BYTES;
    for statement in statements {
        size += statement.len();
        if size > MAX_BYTES {
            parts.push(Vec::new());
            size = statement.len();
        }
        if let Some(part) = parts.last_mut() {
            part.push(statement);
        }
    }
    parts.into_iter().map(script).collect()
}

/// One statement for each verdict in its turn, and at the end one for all rows that succeeded, and
/// one for all that are to be deleted.
fn changes(sql: &Sql, node: &NodeId, verdicts: &[&Verdict]) -> Vec<String> {
    let (mut done, mut removed) = (Vec::new(), Vec::new());
    let mut changes = Vec::new();
    for verdict in verdicts {
        let (seq, failures) = (Literal::int(verdict.row.seq), failures(sql, node, verdict.failure()));
        let both = [("seq", &seq), ("failures", &failures)];
        changes.push(match &verdict.change {
            Change::Done | Change::DeliveredAs(_) => {
                done.push(verdict.row.seq);
                continue;
            }
            Change::Remove => {
                removed.push(verdict.row.seq);
                continue;
            }
            Change::Retry { attempts, delay, error } => {
                let (delay, error) = (Literal::int(micros(*delay)), Literal::optional_text(error.as_deref()));
                let values = [("attempts", &count(*attempts)), ("delay", &delay), ("error", &error)];
                fill(&sql.settle_retry, &[&values[..], &both].concat())
            }
            Change::RetryInPlace { attempts, error } => {
                let values = [("attempts", &count(*attempts)), ("error", &Literal::text(error))];
                fill(&sql.settle_retry_in_place, &[&values[..], &both].concat())
            }
            Change::Rescued { attempts, error } | Change::Dead { attempts, error } => {
                let (status, error) = (Literal::int(verdict.change.status().code()), Literal::text(error));
                let values = [("status", &status), ("attempts", &count(*attempts)), ("error", &error)];
                fill(&sql.settle_ended, &[&values[..], &both].concat())
            }
        });
    }
    for (statement, mut seqs) in [(&sql.settle_done, done), (&sql.delete, removed)] {
        if !seqs.is_empty() {
            seqs.sort_unstable();
            let position = position(sql, verdicts.iter().copied());
            changes.push(fill(statement, &[("seqs", &Literal::ints(&seqs)), ("position", &position)]));
        }
    }
    changes
}

/// The assignment of the positions that rows keep; nothing if none keeps one.
fn position<'a>(sql: &Sql, verdicts: impl IntoIterator<Item = &'a Verdict>) -> Literal {
    let (mut seqs, mut positions) = (Vec::new(), Vec::new());
    for verdict in verdicts {
        if let Change::DeliveredAs(position) = &verdict.change {
            seqs.push(verdict.row.seq);
            positions.push(position.as_str());
        }
    }
    if seqs.is_empty() {
        return Literal::nothing();
    }
    let values = [("placed", &Literal::ints(&seqs)), ("positions", &Literal::texts(&positions))];
    Literal::clause(fill(&sql.position, &values))
}

/// The failed attempts of a row after a change, with this one if it is one.
fn failures(sql: &Sql, node: &NodeId, failure: Option<(u32, &str)>) -> Literal {
    let Some((attempts, error)) = failure else { return Literal::clause("`failures`".to_owned()) };
    let (node, error) = (Literal::text(node.as_str()), Literal::text(error));
    Literal::clause(fill(&sql.failed, &[("attempts", &count(attempts)), ("failed_by", &node), ("error", &error)]))
}

fn count(attempts: u32) -> Literal {
    Literal::int(i32::try_from(attempts).unwrap_or(i32::MAX))
}

/// A duration for SQL, at most a century: longer ones could leave the range of the database's times.
pub(crate) fn micros(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 86_400 * 1_000_000;
    i64::try_from(duration.as_micros()).map_or(CENTURY, |micros| micros.min(CENTURY))
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn long_scripts_are_cut_between_statements() {
        let long = "x".repeat(700_000);
        let parts = parts(vec![long.clone(), long.clone(), "y".to_owned()]);
        assert_eq!(parts, [long.clone(), format!("{long};\ny")]);
    }
}
