use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::examine::beginning;
use pillarbox_core::store::schema::{LOCK_PAUSE, LOCK_WAIT, Migration, Migrations, SchemaVersion};
use pillarbox_core::store::{TableName, refusal};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::adopt;
use crate::compatible;
use crate::connector::Wire;
use crate::error::Failure;
use crate::sql::{qualified, render, without_comments};
use crate::store::Inner;

const MIGRATIONS: Migrations<Steps> = Migrations::new(&[
    Migration::new(1, 1, Steps::sql(OUTBOX)),
    Migration::new(2, 1, Steps { indexes: include_str!("../migrations/0002_dead_events.sql"), ..Steps::sql("") }),
    Migration::new(3, 3, Steps::sql(include_str!("../migrations/0003_handlers.sql"))),
    Migration::new(
        4,
        4,
        Steps {
            indexes: include_str!("../migrations/0004_heads_index.sql"),
            sql: include_str!("../migrations/0004_heads.sql"),
        },
    ),
    Migration::new(5, 4, Steps::sql(include_str!("../migrations/0005_compatibility.sql"))),
    Migration::new(
        6,
        6,
        Steps {
            indexes: include_str!("../migrations/0006_undelayed_indexes.sql"),
            sql: include_str!("../migrations/0006_undelayed.sql"),
        },
    ),
    Migration::new(7, 6, Steps::sql(include_str!("../migrations/0007_numbers.sql"))),
    Migration::new(8, 6, Steps::sql(include_str!("../migrations/0008_leases.sql"))),
    Migration::new(9, 6, Steps::sql(include_str!("../migrations/0009_replays.sql"))),
    Migration::new(10, 6, Steps::sql(include_str!("../migrations/0010_read_point.sql"))),
    Migration::new(11, 6, Steps::sql(include_str!("../migrations/0011_aside.sql"))),
    Migration::new(12, 6, Steps { indexes: include_str!("../migrations/0012_aside_indexes.sql"), ..Steps::sql("") }),
    Migration::new(13, 6, Steps::sql(include_str!("../migrations/0013_audit.sql"))),
    Migration::new(14, 6, Steps::sql(include_str!("../migrations/0014_inbox.sql"))),
    Migration::new(15, 6, Steps::sql(include_str!("../migrations/0015_pause.sql"))),
    Migration::new(16, 6, Steps::sql(include_str!("../migrations/0016_failures.sql"))),
    Migration::new(17, 6, Steps::sql(include_str!("../migrations/0017_unique_key.sql"))),
    Migration::new(18, 6, Steps { indexes: include_str!("../migrations/0018_unique_key_index.sql"), ..Steps::sql("") }),
    Migration::new(19, 6, Steps::sql(include_str!("../migrations/0019_delivered_as.sql"))),
    // The numbers before it are for what is added until the release.
    Migration::contraction(20, 12, Steps::sql(include_str!("../migrations/0020_aside.sql"))),
]);

/// The SQL of a migration.
struct Steps {
    /// Statements that create indexes. On tables that are there they run first, one by one and beside the writers.
    indexes: &'static str,
    /// The rest, in one transaction. It locks one of the tables that nodes use and no other: nodes lock them in an order of their
    /// own, and neither would ever wait for the other in a circle.
    sql: &'static str,
}

impl Steps {
    const fn sql(sql: &'static str) -> Self {
        Self { indexes: "", sql }
    }
}

/// The SQL that records a migration.
fn record(migration: &Migration<Steps>) -> String {
    let version = migration.version;
    match migration.recorded() {
        None => format!("INSERT INTO {{migration}} (\"version\") VALUES ({version});\n"),
        Some(from) => {
            format!("INSERT INTO {{migration}} (\"version\", \"compatible_from\") VALUES ({version}, {from});\n")
        }
    }
}

const OUTBOX: &str = include_str!("../migrations/0001_outbox.sql");
const MIGRATION_TABLE: &str = include_str!("../sql/migration_table.sql");
const BLOCKERS: &str = include_str!("../sql/blockers.sql");
const WAITS_FOR: &str = include_str!("../sql/waits_for.sql");
const INDEX: &str = include_str!("../sql/index.sql");
const SCHEMA: &str = include_str!("../sql/schema.sql");
const TABLE_EXISTS: &str = include_str!("../sql/table_exists.sql");

/// The SQL that leads from the `applied` version to the latest, with the records of it.
pub(crate) fn script(table: &TableName, applied: i64) -> String {
    compose(table, applied, OUTBOX)
}

/// The same for an event table that is there already: `adopt` brings it to what version 1 creates, and the rest of
/// version 1 follows.
fn adoption(table: &TableName, adopt: &str) -> String {
    let (_, rest) = OUTBOX.split_once(AFTER_THE_EVENT_TABLE).unwrap_or_default();
    compose(table, 0, &format!("{adopt}{AFTER_THE_EVENT_TABLE}{rest}"))
}

/// The statement with which version 1 goes on to indexes and the other tables.
const AFTER_THE_EVENT_TABLE: &str = "CREATE INDEX {ready_index}";

fn compose(table: &TableName, applied: i64, first: &str) -> String {
    let mut script = String::new();
    if applied == 0 {
        if let Some(schema) = table.schema() {
            script.push_str(&create_schema(schema));
        }
        script.push_str(MIGRATION_TABLE);
    }
    for migration in MIGRATIONS.after(applied) {
        let Migration { version, sql: Steps { indexes, sql }, .. } = migration;
        let sql = if *version == 1 { first } else { sql };
        script.push_str(&format!("\n-- Version {version}\n\n{indexes}{sql}{}", record(migration)));
    }
    render(&script, table)
}

fn create_schema(schema: &str) -> String {
    format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\";\n")
}

/// Creates or upgrades the tables, one process at a time. An outbox-java table is adopted.
///
/// New tables come in one transaction. Those that are there are upgraded version by version while their writers go on: indexes are
/// built concurrently, and no statement waits for a lock for longer than [`LOCK_WAIT`], since all that need the table queue
/// behind one that waits. What did not get its lock is tried again for as long as `patience`. At `until` it
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

/// Does work with a connection beside the pool, and moves what is sent and received meanwhile.
async fn driving(mut wire: Wire, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
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
    // An index that is built waits until all transactions have ended that have a snapshot. So who waits for the lock does it in
    // short ones, and who has it keeps none.
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

/// Runs the statements of a migration in its transaction. They may take their time, but not wait for others. The server ends one that
/// is not done by `until`: it would not notice that its client has gone.
async fn run(transaction: &Transaction<'_>, script: &str, until: Instant) -> Result<(), Failure> {
    transaction.batch_execute(&format!("SET LOCAL lock_timeout = {}", LOCK_WAIT.as_millis())).await?;
    for statement in statements(script) {
        transaction.batch_execute(&format!("SET LOCAL {}", time_limit(until))).await?;
        if let Err(error) = transaction.batch_execute(&statement).await {
            let failure = Failure::from(error);
            return Err(if failure.is_cancelled() && Instant::now() >= until { too_long(&statement) } else { failure });
        }
    }
    Ok(())
}

/// The setting by which the server ends a statement at this time.
pub(crate) fn time_limit(until: Instant) -> String {
    let left = until.saturating_duration_since(Instant::now()).as_millis();
    // Zero would be no limit.
    format!("statement_timeout = {}", i32::try_from(left).unwrap_or(i32::MAX).max(1))
}

fn too_long(statement: &str) -> Failure {
    let statement = beginning(&without_comments(statement));
    let problem = format!("this has taken longer than a migration may, and was ended: {statement}");
    Failure::Refused(StoreErrorKind::Unavailable, problem)
}

/// The statements of a script. A semicolon between two `$$` divides nothing.
fn statements(script: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for part in script.split_inclusive(";\n") {
        match statements.last_mut() {
            Some(open) if open.matches("$$").count() % 2 == 1 => open.push_str(part),
            _ => statements.push(part.to_owned()),
        }
    }
    statements
}

/// Creates indexes while the writers go on. One that an interrupted migration has left behind unfinished is built anew.
async fn build(store: &Inner, client: &Client, indexes: &str, until: Instant) -> Result<(), Failure> {
    let event = qualified(&store.table, store.table.event());
    for create in indexes.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()) {
        let (head, rest) = create.split_once(" INDEX ").unwrap_or_default();
        let name = rest.split(" ON ").next().unwrap_or_default();
        let mut index = Index::find(client, &event, name).await?;
        if index.as_ref().is_some_and(|index| !index.is_valid) {
            // The session that began it may be at work on it still, and has this lock until then.
            let wait = format!("BEGIN; LOCK TABLE {event} IN SHARE UPDATE EXCLUSIVE MODE; COMMIT");
            wait_for(store, client, &wait, until).await?;
            index = Index::find_built(client, &event, name).await?;
        }
        match index {
            Some(Index { is_valid: true, .. }) => continue,
            Some(Index { name, .. }) => {
                wait_for(store, client, &format!("DROP INDEX CONCURRENTLY {name}"), until).await?;
            }
            None => {}
        }
        wait_for(store, client, &format!("{head} INDEX CONCURRENTLY {rest}"), until).await?;
    }
    Ok(())
}

/// An index of the event table.
struct Index {
    is_valid: bool,
    /// Its name with the schema, quoted.
    name: String,
}

impl Index {
    /// The index with this name, quoted. Tables in other schemas of the search path may have one of the same name.
    async fn find(client: &Client, event: &str, name: &str) -> Result<Option<Self>, Failure> {
        let rows = client.query_typed(INDEX, &[(&event, Type::TEXT), (&name.trim_matches('"'), Type::TEXT)]).await?;
        let index = |row: &Row| Ok(Self { is_valid: row.try_get(0)?, name: row.try_get(1)? });
        rows.first().map(index).transpose()
    }

    /// The same after a build may have ended: the server gives up the lock a moment before it commits that the index is valid.
    async fn find_built(client: &Client, event: &str, name: &str) -> Result<Option<Self>, Failure> {
        for _ in 0..10 {
            let index = Self::find(client, event, name).await?;
            if index.as_ref().is_none_or(|index| index.is_valid) {
                return Ok(index);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Self::find(client, event, name).await
    }
}

/// The interval at which the log says what a migration waits for.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// The time by which the server ends a statement later than this side gives it up, so that it can be asked for whom that waits.
const LAST_QUESTION: Duration = Duration::from_secs(2);

/// Runs a statement that waits for other transactions while nobody waits for it, and logs for which.
async fn wait_for(store: &Inner, client: &Client, statement: &str, until: Instant) -> Result<(), Failure> {
    // A pooler's sessions keep no settings.
    if !store.sessions.is_pooled() {
        client.batch_execute(&format!("SET lock_timeout = 0; SET {}", time_limit(until + LAST_QUESTION))).await?;
    }
    let mut work = pin!(client.batch_execute(statement));
    loop {
        if let Ok(done) = timeout_at(until.min(Instant::now() + TELL_EVERY), work.as_mut()).await {
            return Ok(done?);
        }
        // No answer, as where no further connection can be had, is no reason to end the work.
        let blockers =
            timeout(LAST_QUESTION, waited_for(store, statement)).await.ok().and_then(Result::ok).unwrap_or_default();
        let (table, is_over) = (&store.table, Instant::now() >= until);
        if blockers.is_empty() {
            if is_over {
                return Err(too_long(statement));
            }
            tracing::info!(%table, statement, "a migration is at work");
        } else {
            if is_over {
                let problem = refusal::in_use(table, &format!(": {blockers}"));
                return Err(Failure::Refused(StoreErrorKind::Contention, problem));
            }
            tracing::warn!(%table, %blockers, statement, "a migration waits for other transactions to end");
        }
    }
}

/// The sessions for which a statement waits that another session runs, in words. They are asked for in a transaction that ends with the answer:
/// the build would wait for one that stays open.
async fn waited_for(store: &Inner, statement: &str) -> Result<String, Failure> {
    let session = store.sessions.session().await?;
    let blockers = in_words(&session.query(WAITS_FOR, &[(&statement, Type::TEXT)]).await?)?;
    session.finish();
    Ok(blockers)
}

/// The sessions that keep the tables from being changed, the oldest transaction first, in words.
async fn blockers(client: &Client, table: &TableName) -> Result<String, Failure> {
    let names = tables(table);
    let blockers = in_words(&client.query_typed(BLOCKERS, &[(&names, Type::TEXT_ARRAY)]).await?)?;
    Ok(if blockers.is_empty() { "what held them has ended since".to_owned() } else { blockers })
}

/// Sessions with their transactions, in words.
fn in_words(rows: &[Row]) -> Result<String, Failure> {
    let mut blockers = Vec::new();
    for row in rows {
        let (pid, application, state): (i32, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let (age, query): (i64, String) = (row.try_get(3)?, row.try_get(4)?);
        blockers.push(format!("pid {pid} ({application}{state}, in a transaction for {age} s): {}", beginning(&query)));
    }
    Ok(blockers.join("; "))
}

/// The statement that creates an index of this name, quoted, as an operator would run it beside the writers. One that took another's place
/// was created under a name of its own.
pub(crate) fn create_index(table: &TableName, name: &str) -> Option<String> {
    let event = table.event();
    let replaced = name.replacen(&format!("\"{event}_"), &format!("\"{event}_new_"), 1);
    let script = without_comments(&script(table, 0));
    let statement = |name: &str| {
        let named = format!(" INDEX {name} ON ");
        script.split(";\n").filter(|statement| statement.contains(&named)).last().map(str::trim)
    };
    let create = statement(&replaced).or_else(|| statement(name))?.replacen(&replaced, name, 1);
    let words: Vec<&str> = create.split_whitespace().collect();
    Some(words.join(" ").replacen("INDEX ", "INDEX CONCURRENTLY ", 1) + ";")
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

/// All tables of an outbox, quoted.
fn tables(table: &TableName) -> Vec<String> {
    table.all().iter().map(|name| qualified(table, name)).collect()
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

/// Verifies that the server has what is relied on, and that every table is there, of the version this release needs, and of a kind
/// that can be read.
pub(crate) async fn check(store: &Inner) -> Result<(), Failure> {
    let table = &store.table;
    let names = tables(table);
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    compatible::check_server(&transaction).await?;
    let found = found(&transaction, table).await?;
    // Tables of an older version lack some, which is not what there is to say of them.
    if found.applied > 0 {
        MIGRATIONS.check(table, found).map_err(unusable)?;
    }
    let missing = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL";
    let missing = transaction.query_typed(missing, &[(&names, Type::TEXT_ARRAY)]).await?;
    let missing = missing.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    if !missing.is_empty() {
        let problem = if found.applied > 0 { refusal::lost(&missing) } else { refusal::missing_tables(&missing) };
        return Err(Failure::Refused(StoreErrorKind::Schema, problem.replace('"', "")));
    }
    MIGRATIONS.check(table, found).map_err(unusable)?;
    compatible::check_tables(&transaction, &names).await?;
    transaction.commit().await?;
    session.finish();
    Ok(())
}

fn missing(table: &TableName, found: SchemaVersion) -> Result<&'static [Migration<Steps>], Failure> {
    MIGRATIONS.missing(table, found).map_err(unusable)
}

fn unusable(problem: String) -> Failure {
    Failure::Refused(StoreErrorKind::Schema, problem)
}

async fn found(transaction: &Transaction<'_>, table: &TableName) -> Result<SchemaVersion, Failure> {
    // Read from the catalog itself: `to_regclass` may answer from a cache that does not know yet what another process
    // committed while this transaction waited for the lock.
    let (migration, schema) = (table.beside("migration"), table.schema());
    if transaction.query_typed(TABLE_EXISTS, &[(&migration, Type::TEXT), (&schema, Type::TEXT)]).await?.is_empty() {
        return Ok(SchemaVersion::NONE);
    }
    let name = qualified(table, &migration);
    let newest = async |column: &str| -> Result<Option<i64>, Failure> {
        let newest = format!("SELECT \"{column}\"::bigint FROM {name} ORDER BY \"version\" DESC LIMIT 1");
        let rows = transaction.query_typed(&newest, &[]).await?;
        Ok(rows.first().map_or(Ok(None), |row| row.try_get(0))?)
    };
    let applied = newest("version").await?.unwrap_or(0);
    // Older tables have no such column, and nobody asks.
    let compatible_from = if applied > MIGRATIONS.latest() { newest("compatible_from").await? } else { None };
    Ok(SchemaVersion { applied, compatible_from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PostgresStore;
    use crate::plans::{Setting, execute, with_table};

    #[test]
    fn an_adoption_creates_all_but_the_event_table() {
        let table = TableName::default();
        let (whole, adopted) = (script(&table, 0), adoption(&table, "-- Adopted.\n"));
        let created = |sql: &str| sql.lines().filter(|line| line.starts_with("CREATE")).count();
        assert_eq!(created(&adopted), created(&whole) - 1, "{adopted}");
        assert!(adopted.contains("-- Adopted.") && !adopted.contains("CREATE TABLE \"outbox_event\" ("), "{adopted}");
    }

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

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// The tables as a release before version `next` has left them.
    async fn tables_before(store: &PostgresStore, next: i64) {
        let table = &store.inner().table;
        let whole = script(table, 0);
        let (earlier, _) = whole.split_once(&format!("\n-- Version {next}\n")).expect("later versions");
        execute(store, &format!("DROP TABLE {}; {earlier}", tables(table).join(", "))).await;
    }

    /// The server does not look at a connection while it is at work.
    #[tokio::test]
    async fn what_takes_too_long_is_ended_by_the_server() {
        with_table(Setting::WithoutStatistics, async |store| {
            let inner = store.inner();
            let event = qualified(&inner.table, inner.table.event());
            let slow = format!("LOCK TABLE {event} IN ACCESS EXCLUSIVE MODE;\nSELECT pg_sleep(60);\n");
            let until = Instant::now() + Duration::from_secs(5);
            let mut session = inner.sessions.session().await.expect("a session");
            let transaction = session.transaction().await.expect("begins");
            let given_up = timeout_at(until - Duration::from_secs(4), run(&transaction, &slow, until)).await;
            assert!(given_up.is_err(), "it sleeps");
            drop(transaction);
            drop(session);
            let locks = format!("SELECT count(*) FROM pg_locks WHERE relation = '{event}'::regclass");
            let is_locked = async || {
                let session = inner.sessions.session().await.expect("a session");
                let rows = session.query(&locks, &[]).await.expect("asks");
                session.finish();
                rows[0].get::<_, i64>(0) > 0
            };
            assert!(is_locked().await, "the server has not heard of it");
            while is_locked().await {
                assert!(Instant::now() < until + Duration::from_secs(10), "the table is locked still");
                sleep(Duration::from_millis(50)).await;
            }

            let mut session = inner.sessions.session().await.expect("a session");
            let transaction = session.transaction().await.expect("begins");
            let until = Instant::now() + Duration::from_secs(1);
            let failure = run(&transaction, &slow, until).await.expect_err("the server ends it");
            let Failure::Refused(StoreErrorKind::Unavailable, text) = failure else { panic!("{failure:?}") };
            assert!(text.contains("SELECT pg_sleep("), "{text}");
        })
        .await;
    }

    #[tokio::test]
    async fn an_index_that_cannot_be_built_says_for_whom_it_waits() {
        with_table(Setting::WithoutStatistics, async |store| {
            let inner = store.inner();
            tables_before(store, 12).await;
            let (reader, wire) = inner.sessions.connect().await.expect("connects");
            let test = async {
                reader.batch_execute("SET idle_in_transaction_session_timeout = 0").await?;
                reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await?;
                let pid: i32 = reader.query_typed_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
                let end = soon();
                loop {
                    let until = Instant::now() + Duration::from_secs(3);
                    let refused = Box::pin(migrate(inner, Duration::ZERO, until)).await.expect_err("it has a snapshot");
                    let Failure::Refused(_, text) = refused else { panic!("{refused:?}") };
                    if text.contains(&format!("pid {pid} ")) && text.contains("migrate again") {
                        break;
                    }
                    // Other tests have snapshots as well, and it waits for one after the other.
                    assert!(Instant::now() < end, "{text}");
                }
                reader.batch_execute("COMMIT").await?;
                Box::pin(migrate(inner, Duration::ZERO, soon())).await
            };
            driving(wire, test).await.expect("migrates");
        })
        .await;
    }

    #[test]
    fn a_script_is_divided_between_its_statements() {
        let table = TableName::default();
        let adopted = adoption(&table, include_str!("../migrations/adopt_outbox_java.sql"));
        for whole in [script(&table, 0), adopted] {
            let statements = statements(&whole);
            assert_eq!(statements.concat(), whole);
            for statement in statements {
                let sql = without_comments(&statement);
                let first = sql.split_whitespace().next().unwrap_or_default();
                let known = ["CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "SELECT", "SET", "DO", ""];
                assert!(known.contains(&first) && sql.matches("$$").count().is_multiple_of(2), "{statement}");
            }
        }
    }

    #[test]
    fn a_transaction_of_a_migration_locks_one_table() {
        for Migration { version, sql: Steps { indexes, sql }, .. } in MIGRATIONS.after(1) {
            let sql = without_comments(sql);
            let tables = ["{event}", "{node}", "{partition}", "{inbox}", "{pause}"]
                .into_iter()
                .filter(|table| sql.contains(table));
            assert!(tables.count() <= 1, "version {version}: {sql}");
            // An index of a new table is in nobody's way.
            assert!(sql.contains("CREATE TABLE") || !sql.contains("CREATE INDEX"), "version {version}: {sql}");
            // One that finds rows which are alike is not built. In a column that is new there are none.
            let is_new = indexes.contains("WHERE \"unique_key\" IS NOT NULL");
            assert!(!indexes.contains("UNIQUE") || is_new, "version {version}: {indexes}");
        }
    }

    #[test]
    fn the_script_names_the_configured_table_and_records_each_version() {
        let table = TableName::parse("billing.orders_event").expect("valid");
        let sql = script(&table, 0);
        assert!(!sql.contains(['{', '}']), "a placeholder is left: {sql}");
        assert!(sql.starts_with("CREATE SCHEMA IF NOT EXISTS \"billing\";"), "{sql}");
        assert!(sql.contains(r#"INSERT INTO "billing"."orders_migration" ("version") VALUES (1);"#), "{sql}");
        assert_eq!(script(&table, MIGRATIONS.latest()), "", "nothing is left to do");
    }
}
