//! Rows by their places in the table: the event that stands there, and the questions of a user's transaction.

use pillarbox_core::event::EventId;
use pillarbox_core::store::{Lookup, Question, RowId, Statement};

use crate::answer::{int, text};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::sql::Sql;
use crate::store::Inner;

/// The rows that stand at these places.
pub(crate) async fn identify(store: &Inner, seqs: &[i64]) -> Result<Vec<RowId>, Failure> {
    let answers = store.sessions.run(identify_sql(&store.sql, seqs)).await?;
    let row = |row| {
        let (event_id, handler) = (text(row, 1)?.unwrap_or_default(), text(row, 2)?.map(Box::from));
        Ok(RowId { seq: int(row, 0)?, event_id: EventId::from_stored(event_id), handler })
    };
    answers.rows(0).iter().map(row).collect()
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
