//! The conditions of a PostgreSQL server that harm an outbox.
//!
//! Each check is one statement of `sql/examine/`, in a transaction of its own that only reads, and a pure evaluation of its rows. The
//! statements read the catalog and the statistics, and of the outbox a handful of rows by index: none waits for a lock on the event table
//! for longer than the limit, and none of theirs is one that a writer waits for.

mod checks;
mod evaluate;
mod sessions;

use async_trait::async_trait;
use pillarbox_core::examine::{Check, Checked, Thresholds};
use pillarbox_core::store::{Examine, operation};
use tokio_postgres::Row;

pub use checks::ALL;

use crate::PostgresStore;
use crate::error::Failure;
use crate::session::EXAMINATION;
use crate::sql::{render, without_comments};
use crate::store::Inner;

/// A check, its statement, and the evaluation of the rows.
struct Question {
    check: &'static Check,
    sql: &'static str,
    /// The seconds that stand in the statement.
    seconds: fn(&Thresholds) -> u64,
    evaluate: fn(&'static Check, &Context<'_>, &[Row]) -> Result<Checked, Failure>,
}

/// The context of an evaluation: all it knows beside the rows.
struct Context<'a> {
    store: &'a Inner,
    thresholds: &'a Thresholds,
}

macro_rules! questions {
    ($($check:ident: $file:literal, $seconds:expr, $evaluate:path;)*) => {
        const QUESTIONS: &[Question] = &[$(Question {
            check: &checks::$check,
            sql: include_str!(concat!("../../sql/examine/", $file, ".sql")),
            seconds: $seconds,
            evaluate: $evaluate,
        },)*];
    };
}

questions! {
    STANDBY: "standby", |_| 0, evaluate::standby;
    READ_ONLY: "read_only", |_| 0, evaluate::read_only;
    POOLER: "pooler", |_| 0, evaluate::pooler;
    PRIVILEGES: "privileges", |_| 0, evaluate::privileges;
    INDEXES: "indexes", |_| 0, evaluate::indexes;
    ROW_SECURITY: "row_security", |_| 0, evaluate::row_security;
    LOCKED: "locked", |_| 0, sessions::evaluate;
    SNAPSHOTS: "snapshots", |thresholds| thresholds.pinned_after.as_secs(), sessions::evaluate;
    WRITERS: "writers", |thresholds| thresholds.pinned_after.as_secs(), sessions::evaluate;
    AUTOVACUUM: "autovacuum", |_| 0, evaluate::autovacuum;
    DEAD_ROWS: "dead_rows", |_| 0, evaluate::dead_rows;
    CONNECTIONS: "connections", |_| 0, evaluate::connections;
    DURABILITY: "durability", |_| 0, evaluate::durability;
    REPLICATION: "replication", |_| 0, evaluate::replication;
    TABLE_UNLOGGED: "table_kind", |_| 0, evaluate::unlogged;
    NUMBERS: "numbers", |_| 0, evaluate::numbers;
    BEHIND: "numbers_behind", |_| 0, evaluate::behind;
    SUBSCRIBER: "numbers", |_| 0, evaluate::subscriber;
    ENCODING: "encoding", |_| 0, evaluate::encoding;
    KEPT: "kept", |_| 0, evaluate::kept;
}

#[async_trait]
impl Examine for PostgresStore {
    async fn examine(&self, thresholds: &Thresholds) -> Vec<Checked> {
        let mut results = Vec::with_capacity(QUESTIONS.len());
        for question in QUESTIONS {
            let inner = self.inner();
            let answer = inner.sessions.call(operation::EXAMINE, answer(inner, question, thresholds)).await;
            results.push(answer.unwrap_or_else(|error| question.check.not_checked(error.to_string())));
        }
        results
    }
}

async fn answer(store: &Inner, question: &Question, thresholds: &Thresholds) -> Result<Checked, Failure> {
    let sql = render(&without_comments(question.sql), &store.table)
        .replace("{seconds}", &(question.seconds)(thresholds).to_string())
        .replace("{examination}", EXAMINATION)
        .replace("{tables}", &evaluate::needed_privileges(&store.table))
        .replace("{schema}", &store.table.schema().map_or_else(|| "NULL".to_owned(), |schema| format!("'{schema}'")));
    let limit = store.sessions.statement_limit().as_millis();
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    let settings =
        format!("SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {limit}");
    transaction.batch_execute(&settings).await?;
    let rows = transaction.query_typed(&sql, &[]).await?;
    transaction.commit().await?;
    session.finish();
    (question.evaluate)(question.check, &Context { store, thresholds }, &rows)
}
