//! The conditions of a PostgreSQL server that harm an outbox.
//!
//! Each check is one statement of `sql/examine/`, in a transaction of its own that only reads, and a pure judgement of its rows. The
//! statements read the catalog and the statistics, and of the outbox a handful of rows by index: none waits for a lock on the event table
//! for longer than the limit, and none of theirs is one that a writer waits for.

mod checks;
mod judge;
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

/// A check, its statement, and the judgement of the rows.
struct Question {
    check: &'static Check,
    sql: &'static str,
    /// The seconds that stand in the statement.
    seconds: fn(&Thresholds) -> u64,
    judge: fn(&'static Check, &Context<'_>, &[Row]) -> Result<Checked, Failure>,
}

/// What a judgement knows beside the rows.
struct Context<'a> {
    store: &'a Inner,
    thresholds: &'a Thresholds,
}

macro_rules! questions {
    ($($check:ident: $file:literal, $seconds:expr, $judge:path;)*) => {
        const QUESTIONS: &[Question] = &[$(Question {
            check: &checks::$check,
            sql: include_str!(concat!("../../sql/examine/", $file, ".sql")),
            seconds: $seconds,
            judge: $judge,
        },)*];
    };
}

questions! {
    STANDBY: "standby", |_| 0, judge::standby;
    READ_ONLY: "read_only", |_| 0, judge::read_only;
    POOLER: "pooler", |_| 0, judge::pooler;
    PRIVILEGES: "privileges", |_| 0, judge::privileges;
    INDEXES: "indexes", |_| 0, judge::indexes;
    ROW_SECURITY: "row_security", |_| 0, judge::row_security;
    LOCKED: "locked", |_| 0, sessions::judge;
    SNAPSHOTS: "snapshots", |thresholds| thresholds.pinned_after.as_secs(), sessions::judge;
    WRITERS: "writers", |thresholds| thresholds.pinned_after.as_secs(), sessions::judge;
    AUTOVACUUM: "autovacuum", |_| 0, judge::autovacuum;
    DEAD_ROWS: "dead_rows", |_| 0, judge::dead_rows;
    CONNECTIONS: "connections", |_| 0, judge::connections;
    DURABILITY: "durability", |_| 0, judge::durability;
    REPLICATION: "replication", |_| 0, judge::replication;
    TABLE_UNLOGGED: "table_kind", |_| 0, judge::unlogged;
    NUMBERS: "numbers", |_| 0, judge::numbers;
    BEHIND: "numbers_behind", |_| 0, judge::behind;
    SUBSCRIBER: "numbers", |_| 0, judge::subscriber;
    ENCODING: "encoding", |_| 0, judge::encoding;
    KEPT: "kept", |_| 0, judge::kept;
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
        .replace("{tables}", &judge::needed_privileges(&store.table))
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
    (question.judge)(question.check, &Context { store, thresholds }, &rows)
}
