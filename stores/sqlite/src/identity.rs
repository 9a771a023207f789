//! Rows by their places in the table: the event that stands there, and the questions of a user's transaction.

use pillarbox_core::event::EventId;
use pillarbox_core::store::{Lookup, Question, RowId, Statement};
use sqlx::query_as;

use crate::json;
use crate::sql::Sql;
use crate::store::Session;

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

/// The same query for the commit of a user, with nothing to bind.
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
