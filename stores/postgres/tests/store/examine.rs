//! Each condition that a doctor looks for is provoked on a server, found, and gone once it is mended.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::pgbouncer::Bouncer;
use crate::support::server::Server;
use crate::support::{LEASE, eventually, node, unique, with_db};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::examine::{Checked, Judgement, Thresholds};
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::Store;
use pillarbox_postgres::{PostgresOptions, PostgresStore};
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls};

const LIMIT: Duration = Duration::from_secs(2);

/// What a doctor is told, by the codes of the checks.
struct Findings(Vec<Checked>);

impl Findings {
    async fn with(store: &PostgresStore, change: impl FnOnce(&mut Thresholds)) -> Self {
        let mut thresholds = Thresholds::default();
        change(&mut thresholds);
        let view = store.examiner(LIMIT).expect("a view");
        let results = view.examine(&thresholds).await;
        view.close().await;
        Self(results)
    }

    async fn of(store: &PostgresStore) -> Self {
        Self::with(store, |_| {}).await
    }

    fn of_code(&self, code: &str) -> &Judgement {
        let checked = self.0.iter().find(|checked| checked.check.code == code);
        &checked.unwrap_or_else(|| panic!("{code} was not looked for: {:?}", self.0)).judgement
    }

    fn is_healthy(&self, code: &str) -> bool {
        *self.of_code(code) == Judgement::Healthy
    }

    /// The evidence and the command of what was found.
    fn found(&self, code: &str) -> (&str, &str) {
        match self.of_code(code) {
            Judgement::Found { evidence, command } => (evidence, command.as_deref().unwrap_or_default()),
            other => panic!("{code} was not found: {other:?}"),
        }
    }

    fn not_checked(&self, code: &str) -> &str {
        match self.of_code(code) {
            Judgement::NotChecked { reason } => reason,
            other => panic!("{code} was checked: {other:?}"),
        }
    }

    fn codes_not_checked(&self) -> Vec<&str> {
        let all = self.0.iter().filter(|checked| matches!(checked.judgement, Judgement::NotChecked { .. }));
        all.map(|checked| checked.check.code).collect()
    }
}

/// A connection as a service has it; it ends when the client is dropped.
#[expect(clippy::disallowed_methods, reason = "the driver's connection needs a task")]
async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
    tokio::spawn(async move { drop(connection.await) });
    client
}

async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.expect("asks").get(0)
}

async fn store_at(server: &Server) -> PostgresStore {
    let store = PostgresStore::connect(&server.url()).await.expect("connects");
    store.migrate().await.expect("migrates");
    store
}

const INSERT: &str = "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('secret-1', 't', '{}')";

#[tokio::test]
async fn a_healthy_outbox_passes_every_check() {
    let server = Server::start().await;
    let store = store_at(&server).await;
    let findings = Findings::of(&store).await;
    let codes: Vec<&str> = findings.0.iter().map(|checked| checked.check.code).collect();
    let all: Vec<&str> = pillarbox_postgres::examine::ALL.iter().map(|check| check.code).collect();
    assert_eq!(codes, all);
    for checked in &findings.0 {
        assert_eq!(checked.judgement, Judgement::Healthy, "{}", checked.check.code);
    }
}

#[tokio::test]
async fn an_open_transaction_is_named_with_its_statement_but_not_its_values() {
    let server = Server::start().await;
    let store = store_at(&server).await;
    let (reader, writer) = (client(&server.url()).await, client(&server.url()).await);
    let open = |limits: &mut Thresholds| limits.pinned_after = Duration::ZERO;
    let none = Findings::with(&store, open).await;
    assert!(none.is_healthy("postgres-snapshot-pinned") && none.is_healthy("postgres-writer-open"));

    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.expect("begins");
    reader.batch_execute("SELECT count(*) FROM pg_class WHERE relname = 'secret-2'").await.expect("reads");
    writer.batch_execute("BEGIN").await.expect("begins");
    writer.batch_execute(INSERT).await.expect("inserts");
    let (reads, writes) = (pid(&reader).await, pid(&writer).await);
    writer.batch_execute(&INSERT.replace("-1", "-3")).await.expect("inserts");
    reader.batch_execute("SELECT count(*) FROM pg_class WHERE relname = 'secret-2'").await.expect("reads");
    let both = Findings::with(&store, open).await;
    let (pinned, end) = both.found("postgres-snapshot-pinned");
    for part in [&*format!("pid {reads} for"), &format!("pid {writes} for"), "idle in transaction", "FROM pg_class"] {
        assert!(pinned.contains(part), "{part}: {pinned}");
    }
    assert!(!pinned.contains("secret"), "{pinned}");
    assert!(end == format!("SELECT pg_terminate_backend({reads});"), "the oldest first: {end}");
    let (written, end) = both.found("postgres-writer-open");
    assert!(written.contains("INSERT INTO outbox_event") && !written.contains("secret"), "{written}");
    assert!(!written.contains(&format!("pid {reads} ")), "it has written nothing: {written}");
    assert_eq!(Findings::of(&store).await.of_code("postgres-writer-open"), &Judgement::Healthy, "it is not old");

    let admin = client(&server.url()).await;
    let prepare = format!("BEGIN; {}; PREPARE TRANSACTION 'transfer'", INSERT.replace("-1", "-4"));
    admin.batch_execute(&prepare).await.expect("prepares");
    let findings = Findings::with(&store, open).await;
    assert!(findings.found("postgres-snapshot-pinned").0.contains("prepared transaction 'transfer' for"));
    admin.batch_execute("ROLLBACK PREPARED 'transfer'").await.expect("rolls back");

    // The command is the remedy.
    admin.batch_execute(end).await.expect("ends it");
    drop(reader);
    eventually("both are gone", async || {
        let findings = Findings::with(&store, open).await;
        findings.is_healthy("postgres-snapshot-pinned") && findings.is_healthy("postgres-writer-open")
    })
    .await;
}

/// Outboxes in two schemas of a search path have indexes of the same names.
#[tokio::test]
async fn an_index_of_another_schema_does_not_hide_that_one_was_dropped() {
    with_db(async |db| {
        db.store().await;
        let complete = unique("pillarbox");
        let other = db.options().table(format!("{complete}.outbox_event")).connect().await.expect("connects");
        other.migrate().await.expect("migrates");
        let url = db.url_with("", &format!("&options=-c%20search_path%3D{},{complete}", db.schema));
        let store =
            PostgresOptions::parse(&url).expect("a valid URL").table("outbox_event").connect().await.expect("connects");
        assert!(Findings::of(&store).await.is_healthy("postgres-index-missing"));
        db.execute(&format!("DROP INDEX {}.outbox_event_unique_idx", db.schema)).await;
        let findings = Findings::of(&store).await;
        let (evidence, command) = findings.found("postgres-index-missing");
        assert_eq!(evidence, "outbox_event_unique_idx is missing", "{command}");
        db.execute(&format!("DROP SCHEMA {complete} CASCADE")).await;
    })
    .await;
}

#[tokio::test]
async fn a_dropped_index_is_found_and_its_command_creates_it_again() {
    with_db(async |db| {
        let store = db.store().await;
        let healthy = db.indexes(&db.schema).await;
        let schema = &db.schema;
        let mend = async |command: &str| {
            for statement in command.split_inclusive(';') {
                db.execute(statement).await;
            }
        };
        for index in [
            "event_aside_idx",
            "event_due_idx",
            "event_dead_idx",
            "event_head_idx",
            "event_unique_idx",
            "inbox_age_idx",
        ] {
            db.execute(&format!("DROP INDEX {schema}.outbox_{index}")).await;
            let findings = Findings::of(&store).await;
            let (evidence, command) = findings.found("postgres-index-missing");
            assert_eq!(evidence, format!("outbox_{index} is missing"));
            mend(command).await;
            assert!(Findings::of(&store).await.is_healthy("postgres-index-missing"), "{command}");
        }
        assert_eq!(db.indexes(schema).await, healthy, "they are as they were");
        db.execute(&format!(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{schema}.outbox_event_due_idx'::regclass"
        ))
        .await;
        let findings = Findings::of(&store).await;
        let (evidence, command) = findings.found("postgres-index-missing");
        assert!(
            evidence.contains("is invalid") && command.starts_with("DROP INDEX CONCURRENTLY"),
            "{evidence} {command}"
        );
        mend(command).await;
        assert!(Findings::of(&store).await.is_healthy("postgres-index-missing"));
        db.execute(&format!("DROP INDEX {schema}.outbox_event_event_id_key")).await;
        let findings = Findings::of(&store).await;
        let (evidence, command) = findings.found("postgres-index-missing");
        assert!(
            evidence.contains("event_id_key") && command.starts_with("CREATE UNIQUE INDEX"),
            "{evidence} {command}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_revoked_privilege_is_found_and_its_command_grants_it() {
    with_db(async |db| {
        db.store().await;
        let (role, schema) = (unique("pillarbox_role"), &db.schema);
        db.execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
        let store = db.options_as(&role).connect().await.expect("connects");
        assert!(Findings::of(&store).await.is_healthy("postgres-privilege-missing"));
        db.execute(&format!("REVOKE UPDATE, DELETE ON {schema}.outbox_event FROM {role}")).await;
        db.execute(&format!("REVOKE INSERT ON {schema}.outbox_node FROM {role}")).await;
        let findings = Findings::of(&store).await;
        let (evidence, command) = findings.found("postgres-privilege-missing");
        for part in ["lacks UPDATE, DELETE on outbox_event", "lacks INSERT on outbox_node"] {
            assert!(evidence.contains(part), "{part}: {evidence}");
        }
        let reason = findings.not_checked("postgres-snapshot-pinned");
        assert!(reason.contains("pg_read_all_stats"), "what such a user cannot see is told: {reason}");
        let reason = findings.not_checked("postgres-numbers-behind").to_owned();
        db.execute(command).await;
        assert!(Findings::of(&store).await.is_healthy("postgres-privilege-missing"), "{command}");
        assert!(reason.contains("GRANT SELECT ON SEQUENCE"), "{reason}");
        db.execute(&format!("REVOKE USAGE ON SCHEMA {schema} FROM {role}")).await;
        let findings = Findings::of(&store).await;
        let (evidence, command) = findings.found("postgres-privilege-missing");
        assert!(evidence.contains("lacks USAGE on schema") && command.contains("GRANT USAGE"), "{evidence} {command}");
        drop(store);
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}

#[tokio::test]
async fn a_table_that_is_not_as_it_has_to_be_is_found() {
    with_db(async |db| {
        let (store, table) = (db.store().await, format!("{}.outbox_event", db.schema));
        let changed = async |change: &str, code: &str| {
            db.execute(&change.replace("{table}", &table)).await;
            let findings = Findings::of(&store).await;
            let (evidence, command) = findings.found(code);
            assert!(!evidence.is_empty());
            command.to_owned()
        };
        let mended = async |command: &str, code: &str| {
            db.execute(command).await;
            assert!(Findings::of(&store).await.is_healthy(code), "{command}");
        };
        let command = changed("ALTER TABLE {table} SET (autovacuum_enabled = off)", "postgres-autovacuum-off").await;
        mended(&command, "postgres-autovacuum-off").await;
        let command = changed("ALTER TABLE {table} SET UNLOGGED", "postgres-table-unlogged").await;
        mended(&command, "postgres-table-unlogged").await;
        changed("ALTER TABLE {table} ALTER COLUMN seq SET CACHE 20", "postgres-numbers-cached").await;
        mended(&format!("ALTER TABLE {table} ALTER COLUMN seq SET CACHE 1"), "postgres-numbers-cached").await;
        let command = changed("ALTER TABLE {table} ALTER COLUMN seq SET INCREMENT -1", "postgres-numbers-cached").await;
        mended(&command, "postgres-numbers-cached").await;
        let command = changed(
            "INSERT INTO {table} (seq, event_id, event_type, payload) OVERRIDING SYSTEM VALUE VALUES (1000, 'copied', 't', '{}')",
            "postgres-numbers-behind",
        )
        .await;
        mended(&command, "postgres-numbers-behind").await;
        changed(
            "INSERT INTO {table} (event_id, event_type, payload, status, done_at)
             VALUES ('old', 't', '{}', 1, now() - interval '20 days')",
            "postgres-purge-behind",
        )
        .await;
        mended(&format!("DELETE FROM {table}"), "postgres-purge-behind").await;
    })
    .await;
}

#[tokio::test]
async fn dead_rows_that_vacuum_leaves_are_counted() {
    let server = Server::start().await;
    let store = store_at(&server).await;
    let admin = client(&server.url()).await;
    let many = "ALTER TABLE outbox_event SET (autovacuum_enabled = off);
        INSERT INTO outbox_event (event_id, event_type, payload) SELECT n::text, 't', '{}' FROM generate_series(1, 500) n;
        DELETE FROM outbox_event";
    admin.batch_execute(many).await.expect("deletes");
    let few = |limits: &mut Thresholds| limits.dead_rows = 500;
    eventually("the statistics tell of dead rows", async || {
        !Findings::with(&store, few).await.is_healthy("postgres-vacuum-behind")
    })
    .await;
    let findings = Findings::with(&store, few).await;
    let (evidence, command) = findings.found("postgres-vacuum-behind");
    assert!(evidence.contains("last vacuum: never"), "{evidence}");
    admin.batch_execute(command).await.expect("vacuums");
    eventually("they are gone", async || Findings::with(&store, few).await.is_healthy("postgres-vacuum-behind")).await;
}

#[tokio::test]
async fn connections_are_counted_against_each_limit() {
    let server = Server::start().await;
    let store = store_at(&server).await;
    let admin = client(&server.url()).await;
    let with = async |percent| Findings::with(&store, |limits| limits.connections_percent = percent).await;
    let findings = with(1).await;
    let (evidence, _) = findings.found("postgres-connections-nearly-used");
    assert!(evidence.contains("connections of the server are in use"), "{evidence}");
    assert!(with(80).await.is_healthy("postgres-connections-nearly-used"));
    admin.batch_execute("ALTER DATABASE postgres CONNECTION LIMIT 3").await.expect("limits");
    let findings = with(80).await;
    let (evidence, _) = findings.found("postgres-connections-nearly-used");
    assert!(evidence.contains("of 3 connections of the database are in use"), "{evidence}");
    admin.batch_execute("ALTER DATABASE postgres CONNECTION LIMIT -1").await.expect("limits no more");
    admin.batch_execute("ALTER ROLE postgres CONNECTION LIMIT 3").await.expect("limits");
    let findings = with(80).await;
    let (evidence, _) = findings.found("postgres-connections-nearly-used");
    assert!(evidence.contains("of 3 connections of the user are in use"), "{evidence}");
}

#[tokio::test]
async fn a_server_that_may_lose_commits_is_found() {
    let primary = Server::start().await;
    let store = store_at(&primary).await;
    let admin = client(&primary.url()).await;
    let findings = Findings::of(&store).await;
    assert!(findings.is_healthy("postgres-replication-asynchronous"), "there is no standby");
    assert!(findings.is_healthy("postgres-not-durable"), "{:?}", findings.of_code("postgres-not-durable"));
    admin.batch_execute("ALTER DATABASE postgres SET synchronous_commit = off").await.expect("sets");
    let findings = Findings::of(&store).await;
    let (evidence, _) = findings.found("postgres-not-durable");
    assert!(evidence.contains("synchronous_commit is off"), "{evidence}");
    admin.batch_execute("ALTER DATABASE postgres RESET synchronous_commit").await.expect("resets");

    let replica = primary.replica().await;
    eventually("the replica is asynchronous", async || {
        let findings = Findings::of(&store).await;
        matches!(findings.of_code("postgres-replication-asynchronous"),
            Judgement::Found { evidence, .. } if evidence.contains("synchronous_standby_names is empty"))
    })
    .await;
    admin.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await.expect("sets");
    admin.batch_execute("SELECT pg_reload_conf()").await.expect("reloads");
    eventually("commits wait for the replica", async || {
        Findings::of(&store).await.is_healthy("postgres-replication-asynchronous")
    })
    .await;
    let standby = PostgresOptions::parse(&replica.url()).expect("valid").connect().await.expect("connects");
    assert!(Findings::of(&standby).await.found("postgres-standby").0.contains("in recovery"));
}

#[tokio::test]
async fn a_pooler_that_the_url_does_not_name_is_found() {
    with_db(async |db| {
        db.store().await;
        let bouncer = Bouncer::start_with("ignore_startup_parameters = options\n").await;
        let store = db.options_at(bouncer.url()).connect().await.expect("connects");
        let findings = Findings::of(&store).await;
        assert!(findings.found("postgres-pooler").0.contains("lacks the settings"));
        let named = db.options_at(&format!("{}?pgbouncer=true", bouncer.url())).connect().await.expect("connects");
        let findings = Findings::of(&named).await;
        assert!(findings.is_healthy("postgres-pooler"));
        assert_eq!(findings.codes_not_checked(), Vec::<&str>::new(), "all checks work behind a pooler");
        bouncer.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_locked_table_keeps_no_examination_beyond_its_limit() {
    let server = Server::start().await;
    let store = store_at(&server).await;
    let other = client(&server.url()).await;
    other
        .batch_execute("BEGIN; LOCK TABLE outbox_event, outbox_migration IN ACCESS EXCLUSIVE MODE")
        .await
        .expect("locks");
    let began = Instant::now();
    let view = store.examiner(Duration::from_millis(300)).expect("a view");
    let findings = Findings(view.examine(&Thresholds::default()).await);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(
        findings.codes_not_checked(),
        ["postgres-index-missing", "postgres-numbers-behind", "postgres-purge-behind"]
    );
    assert!(findings.not_checked("postgres-purge-behind").contains("timeout"), "the reason is told");
    view.backlog().await.expect_err("its other reads are bounded too");
    view.close().await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pillarbox doctor' AND wait_event_type = 'Lock'";
    let waiting: i64 = other.query_one(waiting, &[]).await.expect("asks").get(0);
    assert_eq!(waiting, 0, "nothing is left waiting on the server");
}

#[tokio::test]
async fn a_lock_for_which_a_writer_waits_is_found_with_its_holder() {
    let server = Server::start().await;
    let store = store_at(&server).await;
    let (holder, writer) = (client(&server.url()).await, client(&server.url()).await);
    holder.batch_execute("BEGIN; LOCK TABLE outbox_event IN SHARE ROW EXCLUSIVE MODE").await.expect("locks");
    assert!(Findings::of(&store).await.is_healthy("postgres-table-locked"), "nobody waits for it");
    let found = async {
        eventually("the lock is found", async || !Findings::of(&store).await.is_healthy("postgres-table-locked")).await;
        let findings = Findings::of(&store).await;
        let (evidence, command) = findings.found("postgres-table-locked");
        assert!(evidence.contains("idle in transaction") && evidence.contains("LOCK TABLE"), "{evidence}");
        client(&server.url()).await.batch_execute(command).await.expect("ends the session");
    };
    let (written, ()) = tokio::join!(writer.batch_execute(INSERT), found);
    written.expect("it is written then");
    assert!(Findings::of(&store).await.is_healthy("postgres-table-locked"));
}

#[tokio::test]
async fn a_user_who_may_not_write_is_not_taken_for_a_standby() {
    with_db(async |db| {
        db.store().await;
        let (role, schema) = (unique("pillarbox_role"), &db.schema);
        db.execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
             ALTER ROLE {role} SET default_transaction_read_only = on"
        ))
        .await;
        let store = db.options_as(&role).connect().await.expect("connects");
        let findings = Findings::of(&store).await;
        let (evidence, _) = findings.found("postgres-read-only");
        assert!(evidence.contains("is on, given by the user"), "{evidence}");
        assert!(findings.is_healthy("postgres-standby"));
        store.close().await;
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}

#[tokio::test]
async fn policies_that_hide_rows_are_found_and_no_node_joins() {
    with_db(async |db| {
        db.store().await;
        let (role, schema) = (unique("pillarbox_role"), &db.schema);
        db.execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
             ALTER TABLE {schema}.outbox_event ENABLE ROW LEVEL SECURITY"
        ))
        .await;
        let store = db.options_as(&role).connect().await.expect("connects");
        store.check().await.expect("who only writes may have policies");
        let error = store.join(&node("a"), NodeMode::SingleNode, LEASE).await.expect_err("it would see nothing");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
        assert!(error.to_string().contains("row-level security") && error.to_string().contains(&role), "{error}");
        let findings = Findings::of(&store).await;
        let (evidence, command) = findings.found("postgres-row-security");
        assert!(evidence.contains(&role), "{evidence}");
        db.execute(command).await;
        assert!(Findings::of(&store).await.is_healthy("postgres-row-security"), "{command}");
        store.join(&node("a"), NodeMode::SingleNode, LEASE).await.expect("joins");
        store.close().await;
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}

#[tokio::test]
async fn an_examination_takes_no_lock_that_a_writer_would_wait_for() {
    let server = Server::start().await;
    let store = store_at(&server).await;
    let writer = client(&server.url()).await;
    // Beside this lock nothing but plain reading is possible.
    let tables = "outbox_event, outbox_node, outbox_partition, outbox_migration, outbox_inbox";
    writer.batch_execute(&format!("BEGIN; LOCK TABLE {tables} IN EXCLUSIVE MODE")).await.expect("locks");
    writer.batch_execute(INSERT).await.expect("writes");
    let findings = Findings::of(&store).await;
    assert_eq!(findings.codes_not_checked(), Vec::<&str>::new(), "nothing waited");
    writer.batch_execute("COMMIT").await.expect("commits");
}
