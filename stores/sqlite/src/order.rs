use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::EventId;
use pillarbox_core::store::{Lookup, Question, RowId, Statement, Writers};
use sqlx::{query, query_as, query_scalar};

use crate::json;
use crate::sql::Sql;
use crate::store::Session;

/// Writes partitions into rows that have none.
pub(crate) async fn assign_partitions(session: &mut Session<'_>, rows: &[(RowId, u8)]) -> sqlx::Result<()> {
    query(session.sql.assign_partitions.clone()).bind(json::partitions(rows)).execute(&mut *session.connection).await?;
    Ok(())
}

/// Takes the due time from pending rows whose time has come.
pub(crate) async fn promote_due(session: &mut Session<'_>, rows: &[RowId]) -> sqlx::Result<()> {
    let promote_due = query(session.sql.promote_due.clone()).bind(json::array(rows.iter().map(|row| row.seq)));
    promote_due.bind(json::events(rows)).execute(&mut *session.connection).await?;
    Ok(())
}

/// The same query for the commit of a user, who binds nothing.
pub(crate) fn identify_sql(sql: &Sql, seqs: &[i64]) -> String {
    sql.identify.as_str().replace("?1", &format!("'{}'", json::array(seqs.iter().copied())))
}

/// The answer to a question that a user's transaction asks.
pub(crate) fn lookup<'a>(sql: &Sql, question: Question<'a>) -> Lookup<'a> {
    let text = match question {
        Question::Newest(limit) => Some(sql.newest.as_str().replace("?1", &limit.to_string())),
        Question::Records(seqs) => {
            let seqs = format!("'{}'", json::array(seqs.iter().copied()));
            Some(sql.record_json.as_str().replace("?1", &seqs))
        }
        _ => None,
    };
    let statement = |sql: String| Statement { sql: sql.into(), binds: Vec::new(), reusable: false };
    Lookup { question, statements: text.map(statement).into_iter().collect() }
}

/// The rows that stand at these places.
pub(crate) async fn identify(session: &mut Session<'_>, seqs: &[i64]) -> sqlx::Result<Vec<RowId>> {
    let identify = query_as(session.sql.identify.clone()).bind(json::array(seqs.iter().copied()));
    let rows: Vec<(i64, String, Option<String>)> = identify.fetch_all(&mut *session.connection).await?;
    let row = |(seq, event_id, handler): (i64, String, Option<String>)| RowId {
        seq,
        event_id: EventId::from_stored(&event_id),
        handler: handler.map(String::into_boxed_str),
    };
    Ok(rows.into_iter().map(row).collect())
}

/// The highest `seq` of the table. One connection writes at a time, so events are committed in the order of their `seq`: what is not
/// visible below the highest one never will be.
pub(crate) async fn writers(session: &mut Session<'_>) -> sqlx::Result<Writers> {
    let highest = query_scalar(session.sql.highest.clone()).fetch_one(&mut *session.connection).await?;
    Ok(Writers { highest, open: Some(Vec::new()), prepared: Vec::new() })
}

/// The database's time.
pub(crate) async fn now(session: &mut Session<'_>) -> sqlx::Result<Timestamp> {
    let now = query_scalar(session.sql.now.clone()).fetch_one(&mut *session.connection).await?;
    Ok(Timestamp::from_micros(now))
}
