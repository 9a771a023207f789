use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::schema::LOCK_PAUSE;
use pillarbox_core::store::{TableName, refusal};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::adopt;
use super::blockers::blockers;
use super::build_index::build;
use super::check::{check, found, missing};
use super::run_script::run;
use super::versions::{adoption, create_schema, record, script};
use crate::compatible;
use crate::connector::Wire;
use crate::error::Failure;
use crate::sql::{qualified, render, without_comments};
use crate::store::Inner;

const SCHEMA: &str = include_str!("../../sql/schema.sql");

/// Creates or upgrades the tables, one process at a time. An outbox-java table is adopted.
///
/// New tables come in one transaction. Existing ones are upgraded version by version while their writers go on: indexes are
/// built concurrently, and no statement waits for a lock for longer than [`LOCK_WAIT`](pillarbox_core::store::schema::LOCK_WAIT), since all that need the table queue
/// behind one that waits. A statement that did not get its lock is tried again for as long as `patience`. At `until` it
/// gives up, and the server ends the statement that is under way.
///
/// A migration of complete tables locks and writes nothing, and needs no privilege to create tables. A table that was lost since a
/// migration has made it is an error.
pub(crate) async fn migrate(store: &Inner, patience: Duration, until: Instant) -> Result<(), Failure> {
    if !is_migrated(store).await? {
        // The lock of migrations is held by a connection of its own: an index is built concurrently outside of any transaction.
        let (client, wire) = store.sessions.connect().await?;
        driving(wire, migrate_alone(store, &client, patience, until)).await?;
    }
    check(store).await
}

/// Returns true if nothing is missing, on a server that may have the tables.
async fn is_migrated(store: &Inner) -> Result<bool, Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    compatible::check_server(&transaction).await?;
    let found = found(&transaction, &store.table).await?;
    transaction.commit().await?;
    session.finish();
    Ok(missing(&store.table, found)?.is_empty())
}

/// Does work with a connection beside the pool, and moves what is sent and received meanwhile.
pub(super) async fn driving(mut wire: Wire, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        while let Poll::Ready(message) = wire.poll_message(cx) {
            let closed =
                || Failure::Refused(StoreErrorKind::Unavailable, "the server closed the connection".to_owned());
            match message {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(error.into())),
                None => return Poll::Ready(Err(closed())),
            }
        }
        work.as_mut().poll(cx)
    })
    .await
}

/// The interval at which a process asks whether another one's migration has ended.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Begins the transaction that holds the lock of migrations, for as long as they take.
const BEGIN_GUARD: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0";

/// Migrates while `client` holds the lock of migrations. The lock is its transaction's, so it cannot outlive the connection.
async fn migrate_alone(store: &Inner, client: &Client, patience: Duration, until: Instant) -> Result<(), Failure> {
    let schema = schema_of(client, &store.table).await?;
    // An index that is built waits until all transactions have ended that have a snapshot. So a process waits for the lock in
    // short ones, and keeps none while it has it.
    let lock = format!("pillarbox migration of {schema}.{}", store.table.event());
    let locked = "SELECT pg_try_advisory_xact_lock(hashtextextended($1::text, 0))";
    let mut is_told = false;
    loop {
        client.batch_execute(BEGIN_GUARD).await?;
        if client.query_typed_one(locked, &[(&lock, Type::TEXT)]).await?.try_get(0)? {
            break;
        }
        client.batch_execute("ROLLBACK").await?;
        if Instant::now() >= until {
            let problem =
                format!("another migration of {} has not ended yet; wait for it, and migrate again", store.table);
            return Err(Failure::Refused(StoreErrorKind::Contention, problem));
        }
        if !is_told {
            is_told = true;
            tracing::info!(table = %store.table, "another migration is under way; waiting for its end");
        }
        sleep(ASK_EVERY).await;
    }
    forget_snapshot(client).await?;
    let mut waits_since = None;
    loop {
        match advance(store, &schema, until).await {
            Ok(true) => return Ok(()),
            Ok(false) => waits_since = None,
            Err(failure) if failure.is_lock_timeout() => {
                let blockers = blockers(client, &store.table).await?;
                forget_snapshot(client).await?;
                let now = Instant::now();
                if now >= until.min(*waits_since.get_or_insert(now) + patience) {
                    let problem = refusal::in_use(&store.table, &format!(": {blockers}"));
                    return Err(Failure::Refused(StoreErrorKind::Contention, problem));
                }
                tracing::warn!(table = %store.table, %blockers, "a migration waits for its turn; trying again");
                sleep(LOCK_PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// The answer of a statement with values keeps its snapshot until the next one; that of a plain statement does not.
async fn forget_snapshot(client: &Client) -> Result<(), Failure> {
    Ok(client.batch_execute("SELECT 1").await?)
}

/// The schema of the tables, or the one in which they will be.
async fn schema_of(client: &Client, table: &TableName) -> Result<String, Failure> {
    match table.schema() {
        Some(schema) => Ok(schema.to_owned()),
        None => {
            let event = qualified(table, table.event());
            Ok(client.query_typed_one(SCHEMA, &[(&event, Type::TEXT)]).await?.try_get(0)?)
        }
    }
}

/// Applies the next version, or all if there are no tables; says whether nothing is left to do.
async fn advance(store: &Inner, schema: &str, until: Instant) -> Result<bool, Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    let found = found(&transaction, &store.table).await?;
    let Some(next) = missing(&store.table, found)?.first() else {
        transaction.commit().await?;
        session.finish();
        return Ok(true);
    };
    if found.applied == 0 {
        let mut script = match adopt::script(&transaction, &store.table, until).await? {
            Some(adopt) => adoption(&store.table, &adopt),
            None => script(&store.table, 0),
        };
        if let Some(schema) = store.table.schema() {
            script = without_existing_schema(&transaction, schema, script).await?;
        }
        run(&transaction, &script, until).await?;
        transaction.commit().await?;
        session.finish();
        return Ok(true);
    }
    transaction.commit().await?;
    session.finish();
    let indexes = without_comments(&render(next.sql.indexes, &store.table));
    if !indexes.is_empty() {
        // Beside the pool, since its settings are others than the engine's.
        let (client, wire) = store.sessions.connect().await?;
        driving(wire, build(store, &client, &indexes, until)).await?;
    }
    // The name of an index alone would be looked up in all schemas of the search path.
    let of_schema = format!("\"{}\".", schema.replace('"', "\"\""));
    let script = format!("{}{}", next.sql.sql.replace("{of_schema}", &of_schema), record(next));
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    run(&transaction, &render(&script, &store.table), until).await?;
    transaction.commit().await?;
    session.finish();
    Ok(false)
}

/// `CREATE SCHEMA IF NOT EXISTS` wants the privilege to create schemas even where there is nothing to do.
async fn without_existing_schema(
    transaction: &Transaction<'_>,
    schema: &str,
    script: String,
) -> Result<String, Failure> {
    let exists = "SELECT FROM pg_namespace WHERE nspname = $1::text";
    let found = transaction.query_typed(exists, &[(&schema, Type::TEXT)]).await?;
    Ok(if found.is_empty() { script } else { script.replacen(&create_schema(schema), "", 1) })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::PostgresStore;
    use crate::plans::{Setting, execute, with_table};
    use crate::schema::versions::tables;

    #[tokio::test]
    async fn a_migration_that_gets_no_lock_says_who_keeps_the_table() {
        with_table(Setting::WithoutStatistics, async |store| {
            let inner = store.inner();
            let table = qualified(&inner.table, inner.table.event());
            tables_before(store, 7).await;
            let mut session = inner.sessions.session().await.expect("a session");
            let open = session.transaction().await.expect("begins");
            let insert = format!("INSERT INTO {table} (event_id, event_type, payload) VALUES ('secret', 't', '1')");
            open.batch_execute(&insert).await.expect("inserts");
            let pid: i32 = open.query_typed_one("SELECT pg_backend_pid()", &[]).await.expect("asks").get(0);
            open.batch_execute(&insert.replace("secret", "another")).await.expect("inserts");
            let refused = migrate(inner, Duration::ZERO, soon()).await.expect_err("it gets no lock");
            let Failure::Refused(StoreErrorKind::Contention, text) = refused else { panic!("{refused:?}") };
            for part in [&*format!("pid {pid} "), "idle in transaction", "INSERT INTO", "migrate again"] {
                assert!(text.contains(part), "{part} is missing in: {text}");
            }
            assert!(!text.contains("another") && !text.contains("secret"), "{text}");
            open.commit().await.expect("commits");
            migrate(inner, Duration::ZERO, soon()).await.expect("migrates");
        })
        .await;
    }

    pub(in crate::schema) fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// The tables as a release before version `next` has left them.
    pub(in crate::schema) async fn tables_before(store: &PostgresStore, next: i64) {
        let table = &store.inner().table;
        let whole = script(table, 0);
        let (earlier, _) = whole.split_once(&format!("\n-- Version {next}\n")).expect("later versions");
        execute(store, &format!("DROP TABLE {}; {earlier}", tables(table).join(", "))).await;
    }
}
