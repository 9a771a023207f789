//! Rows by their places in the table: the event that stands there, and the questions of a user's transaction.

use pillarbox_core::event::EventId;
use pillarbox_core::store::{Lookup, Question, RowId, Statement};
use tokio_postgres::types::Type;

use crate::error::Failure;
use crate::sql::Sql;
use crate::store::Inner;

/// The rows that stand at these places.
pub(crate) async fn identify(store: &Inner, seqs: &[i64]) -> Result<Vec<RowId>, Failure> {
    let session = store.sessions.session().await?;
    let found = session.query(&store.sql.identify, &[(&seqs, Type::INT8_ARRAY)]).await?;
    session.finish();
    let row = |row: &tokio_postgres::Row| {
        let handler: Option<&str> = row.try_get(2)?;
        Ok(RowId {
            seq: row.try_get(0)?,
            event_id: EventId::from_stored(row.try_get(1)?),
            handler: handler.map(Box::from),
        })
    };
    found.iter().map(row).collect()
}

/// The same query for the commit of a user. With literals it is planned each time: the plan of a prepared statement that was made
/// for a small table would read the whole of a large one.
pub(crate) fn identify_sql(sql: &Sql, seqs: &[i64]) -> String {
    sql.identify.replace("$1", &literal(seqs))
}

/// An array of numbers.
fn literal(seqs: &[i64]) -> String {
    let list: Vec<String> = seqs.iter().map(i64::to_string).collect();
    format!("'{{{}}}'", list.join(","))
}

/// The answer to a question that a user's transaction asks. With literals, as [`identify_sql`].
pub(crate) fn lookup<'a>(sql: &Sql, question: Question<'a>) -> Lookup<'a> {
    let text = match question {
        Question::Newest(limit) => Some(sql.newest.replace("$1", &limit.to_string())),
        Question::Records(seqs) => Some(sql.record_json.replace("$1", &literal(seqs))),
        _ => None,
    };
    let statement = |sql: String| Statement { sql: sql.into(), binds: Vec::new(), reusable: false };
    Lookup { question, statements: text.map(statement).into_iter().collect() }
}
