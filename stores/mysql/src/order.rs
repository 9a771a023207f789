//! The place of a row in the order: its partition, its turn, and whether rows before it may still come.

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::EventId;
use pillarbox_core::store::{Lookup, Question, RowId, Statement, Writers};

use crate::answer::{int, text};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::sql::Sql;
use crate::store::Inner;

/// Writes partitions into rows that have none.
pub(crate) async fn assign_partitions(store: &Inner, rows: &[(RowId, u8)]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    // Ascending, as every other statement locks rows.
    let mut sorted: Vec<&(RowId, u8)> = rows.iter().collect();
    sorted.sort_unstable_by_key(|(row, _)| row.seq);
    store.sessions.run(fill(&store.sql.assign_partitions, &[("partitions", &Literal::partitions(sorted))])).await?;
    Ok(())
}

/// Takes the due time from pending rows whose time has come.
pub(crate) async fn promote_due(store: &Inner, rows: &[RowId]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let (seqs, events) = places(rows);
    store.sessions.run(fill(&store.sql.promote_due, &[("seqs", &seqs), ("events", &events)])).await?;
    Ok(())
}

/// The places of rows, ascending, and their events.
pub(crate) fn places(rows: &[RowId]) -> (Literal, Literal) {
    let mut seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    seqs.sort_unstable();
    let events: Vec<&str> = rows.iter().map(|row| row.event_id.as_str()).collect();
    (Literal::ints(&seqs), Literal::byte_list(&events))
}

/// The same query for the commit of a user.
pub(crate) fn identify_sql(sql: &Sql, seqs: &[i64]) -> String {
    fill(&sql.identify, &[("seqs", &Literal::ints(seqs))])
}

/// The answer to a question that a user's transaction asks.
pub(crate) fn lookup<'a>(sql: &Sql, question: Question<'a>) -> Lookup<'a> {
    let text = match question {
        Question::Newest(limit) => Some(fill(&sql.newest, &[("limit", &Literal::count(limit))])),
        Question::Records(seqs) => Some(fill(&sql.record_json, &[("seqs", &Literal::ints(seqs))])),
        _ => None,
    };
    let statement = |sql: String| Statement { sql: sql.into(), binds: Vec::new(), reusable: false };
    Lookup { question, statements: text.map(statement).into_iter().collect() }
}

/// The rows that stand at these places.
pub(crate) async fn identify(store: &Inner, seqs: &[i64]) -> Result<Vec<RowId>, Failure> {
    let answers = store.sessions.run(identify_sql(&store.sql, seqs)).await?;
    let row = |row| {
        let (event_id, handler) = (text(row, 1)?.unwrap_or_default(), text(row, 2)?.map(Box::from));
        Ok(RowId { seq: int(row, 0)?, event_id: EventId::from_stored(event_id), handler })
    };
    answers.rows(0).iter().map(row).collect()
}

/// The highest `seq` of the table. The server names the transactions that may still commit rows below that only to users who may see
/// all of its sessions, and not by table.
pub(crate) async fn writers(store: &Inner) -> Result<Writers, Failure> {
    let answers = store.sessions.run(&store.sql.highest).await?;
    Ok(Writers { highest: answers.first(0).map_or(Ok(0), |row| int(row, 0))?, open: None, prepared: Vec::new() })
}

/// The database's time.
pub(crate) async fn now(store: &Inner) -> Result<Timestamp, Failure> {
    let answers = store.sessions.run(&store.sql.now).await?;
    Ok(Timestamp::from_micros(answers.first(0).map_or(Ok(0), |row| int(row, 0))?))
}
