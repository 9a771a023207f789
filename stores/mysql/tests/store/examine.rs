//! Each condition that a doctor looks for is provoked on a server, found, and gone once it is mended.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::support::server::Server;
use crate::support::{eventually, unique, with_db};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Pool};
use pillarbox_core::examine::{Checked, Judgement, Thresholds};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use tokio::time::Instant;

struct Findings(Vec<Checked>);

impl Findings {
    async fn with(store: &MysqlStore, change: impl FnOnce(&mut Thresholds)) -> Self {
        let mut thresholds = Thresholds::default();
        change(&mut thresholds);
        let view = store.examiner(Duration::from_secs(2)).expect("a view");
        let results = view.examine(&thresholds).await;
        view.close().await;
        Self(results)
    }

    async fn of(store: &MysqlStore) -> Self {
        Self::with(store, |_| {}).await
    }

    fn of_code(&self, code: &str) -> &Judgement {
        let checked = self.0.iter().find(|checked| checked.check.code == code);
        &checked.unwrap_or_else(|| panic!("{code} was not looked for: {:?}", self.0)).judgement
    }

    fn is_healthy(&self, code: &str) -> bool {
        *self.of_code(code) == Judgement::Healthy
    }

    fn found(&self, code: &str) -> (&str, &str) {
        match self.of_code(code) {
            Judgement::Found { evidence, command } => (evidence, command.as_deref().unwrap_or_default()),
            other => panic!("{code} was not found: {other:?}"),
        }
    }

    fn not_checked(&self) -> Vec<(&str, &str)> {
        self.0
            .iter()
            .filter_map(|checked| match &checked.judgement {
                Judgement::NotChecked { reason } => Some((checked.check.code, reason.as_str())),
                _ => None,
            })
            .collect()
    }
}

async fn store_at(server: &Server) -> MysqlStore {
    let url = format!("mysql://root@127.0.0.1:{}/test", server.port());
    let store = MysqlOptions::parse(&url).expect("a URL").connect().await.expect("connects");
    store.migrate().await.expect("migrates");
    store
}

async fn execute(connection: &mut Conn, sql: &str) {
    connection.query_drop(sql).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
}

async fn connection(pool: &Pool) -> Conn {
    pool.get_conn().await.expect("a connection")
}

#[tokio::test]
async fn a_server_that_may_lose_or_refuse_writes_is_found() {
    let server = Server::start(1).await;
    let (store, pool) = (store_at(&server).await, server.pool());
    let mut admin = connection(&pool).await;
    let findings = Findings::of(&store).await;
    let codes: Vec<&str> = findings.0.iter().map(|checked| checked.check.code).collect();
    let all: Vec<&str> = pillarbox_mysql::examine::ALL.iter().map(|check| check.code).collect();
    assert_eq!((codes, findings.not_checked()), (all, Vec::new()));
    let (evidence, _) = findings.found("mysql-not-durable");
    assert!(evidence.contains("innodb_flush_log_at_trx_commit is 0; sync_binlog is 0"), "{evidence}");
    execute(&mut admin, "SET GLOBAL innodb_flush_log_at_trx_commit = 1").await;
    execute(&mut admin, "SET GLOBAL sync_binlog = 1").await;
    for checked in &Findings::of(&store).await.0 {
        assert_eq!(checked.judgement, Judgement::Healthy, "{}", checked.check.code);
    }
    execute(&mut admin, "SET GLOBAL binlog_format = 'STATEMENT'").await;
    assert!(Findings::of(&store).await.found("mysql-binlog-format").0.contains("STATEMENT"));
    execute(&mut admin, "SET GLOBAL binlog_format = 'MIXED'").await;
    execute(&mut admin, "SET GLOBAL read_only = 1").await;
    assert!(Findings::of(&store).await.found("mysql-read-only").0.contains("read_only is ON"));
    execute(&mut admin, "SET GLOBAL read_only = 0").await;
    execute(&mut admin, "SET GLOBAL max_connections = 10").await;
    let busy = |limits: &mut Thresholds| limits.connections_percent = 20;
    let findings = Findings::with(&store, busy).await;
    let (evidence, _) = findings.found("mysql-connections-nearly-used");
    assert!(evidence.contains("of 10 connections are in use"), "{evidence}");
}

#[tokio::test]
async fn a_replica_that_no_commit_waits_for_is_told() {
    let (primary, replica) = (Server::start(1).await, Server::start(2).await);
    let (store, follower) = (store_at(&primary).await, replica.pool());
    assert!(Findings::of(&store).await.is_healthy("mysql-replication-asynchronous"));
    let mut follower = connection(&follower).await;
    let follow = format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos",
        primary.port()
    );
    execute(&mut follower, &follow).await;
    execute(&mut follower, "START SLAVE").await;
    eventually("the replica follows", async || {
        !Findings::of(&store).await.is_healthy("mysql-replication-asynchronous")
    })
    .await;
    let findings = Findings::of(&store).await;
    let (evidence, _) = findings.found("mysql-replication-asynchronous");
    assert!(evidence.contains("1 attached"), "{evidence}");
    let pool = primary.pool();
    let mut admin = connection(&pool).await;
    execute(&mut follower, "SET GLOBAL rpl_semi_sync_slave_enabled = 1").await;
    execute(&mut follower, "STOP SLAVE").await;
    execute(&mut follower, "START SLAVE").await;
    execute(&mut admin, "SET GLOBAL rpl_semi_sync_master_enabled = 1").await;
    eventually("commits wait for it", async || Findings::of(&store).await.is_healthy("mysql-replication-asynchronous"))
        .await;
}

#[tokio::test]
async fn an_open_transaction_is_named_with_its_statement_but_not_its_values() {
    let server = Server::start(1).await;
    let (store, pool) = (store_at(&server).await, server.pool());
    let mut other = connection(&pool).await;
    let open = |limits: &mut Thresholds| limits.pinned_after = Duration::ZERO;
    assert!(Findings::with(&store, open).await.is_healthy("mysql-transaction-open"));
    execute(&mut other, "START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
    execute(&mut other, "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('secret', 't', '{}')").await;
    // The server tells of transactions as they were up to a tenth of a second ago.
    eventually("it is told", async || !Findings::with(&store, open).await.is_healthy("mysql-transaction-open")).await;
    let findings = Findings::with(&store, open).await;
    let (evidence, command) = findings.found("mysql-transaction-open");
    assert!(evidence.contains(&format!("connection {} for", other.id())), "{evidence}");
    assert!(!evidence.contains("secret"), "{evidence}");
    assert_eq!(command, format!("KILL {};", other.id()));
    assert!(Findings::of(&store).await.is_healthy("mysql-transaction-open"), "it is not old");
    let mut admin = connection(&pool).await;
    for number in 0..50 {
        execute(&mut admin, &format!("UPDATE outbox_partition SET epoch = {number}")).await;
    }
    let few = |limits: &mut Thresholds| limits.dead_rows = 20;
    eventually("old versions of rows gather", async || {
        !Findings::with(&store, few).await.is_healthy("mysql-history-long")
    })
    .await;
    execute(&mut admin, command.trim_end_matches(';')).await;
    eventually("it is gone", async || Findings::with(&store, open).await.is_healthy("mysql-transaction-open")).await;
}

/// The server has the beginning of a transaction in the time zone of its machine, and the store's sessions are in UTC.
#[tokio::test]
async fn the_age_of_a_transaction_is_right_in_every_time_zone_of_the_server() {
    for zone in ["XYZ8", "XYZ-9"] {
        let server = Server::start_in(zone, 1).await;
        let (store, pool) = (store_at(&server).await, server.pool());
        let (mut other, mut admin) = (connection(&pool).await, connection(&pool).await);
        execute(&mut other, "START TRANSACTION").await;
        execute(&mut other, "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('e', 't', '{}')").await;
        let open = |limits: &mut Thresholds| limits.pinned_after = Duration::ZERO;
        eventually("it is told", async || !Findings::with(&store, open).await.is_healthy("mysql-transaction-open"))
            .await;
        let found = Findings::of(&store).await;
        let judged = found.of_code("mysql-transaction-open");
        assert_eq!(*judged, Judgement::Healthy, "{zone}: it has just begun");
        // Of which a migration tells that waits for a table.
        execute(&mut admin, "SET time_zone = '+00:00'").await;
        let row: Option<(u32, i64)> =
            admin.query_first(include_str!("../../sql/open_transactions.sql")).await.expect("answers");
        let (thread, age) = row.expect("a transaction is open");
        assert_eq!(thread, other.id(), "{zone}");
        assert!((0..120).contains(&age), "{zone}: {age} s");
        store.close().await;
    }
}

#[tokio::test]
async fn a_dropped_index_and_old_rows_are_found() {
    with_db(async |db| {
        let store = db.store().await;
        for (table, index) in [
            ("outbox_event", "pillarbox_event_id"),
            ("outbox_event", "pillarbox_queue"),
            ("outbox_event", "pillarbox_heads"),
            ("outbox_event", "pillarbox_unique_key"),
            ("outbox_node", "pillarbox_fence"),
        ] {
            db.execute(&format!("ALTER TABLE {table} DROP KEY {index}")).await;
            let findings = Findings::of(&store).await;
            let (evidence, command) = findings.found("mysql-index-missing");
            assert_eq!(evidence, format!("missing: {index} of {table}"));
            db.execute(command).await;
            assert!(Findings::of(&store).await.is_healthy("mysql-index-missing"), "{command}");
        }
        db.execute(
            "INSERT INTO outbox_event (event_id, event_type, payload, status, done_at)
             VALUES ('old', 't', '{}', 1, UTC_TIMESTAMP() - INTERVAL 20 DAY)",
        )
        .await;
        let findings = Findings::of(&store).await;
        assert_eq!(findings.found("mysql-purge-behind").0, "an event that was delivered 20 days ago is still there");
    })
    .await;
}

#[tokio::test]
async fn a_missing_privilege_is_found_and_what_the_user_cannot_see_is_told() {
    with_db(async |db| {
        db.store().await;
        // Names of users are short.
        let user: String = unique("u").chars().take(30).collect();
        db.execute(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'x'")).await;
        db.execute(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO '{user}'@'%'", db.name)).await;
        let options = MysqlOptions::parse(&db.url_with(&format!("{user}:x"), "")).expect("a URL");
        let store = options.connect().await.expect("connects");
        let findings = Findings::of(&store).await;
        assert!(findings.is_healthy("mysql-privilege-missing"), "{:?}", findings.of_code("mysql-privilege-missing"));
        let unseen = findings.not_checked();
        assert!(
            unseen.iter().any(|(code, reason)| *code == "mysql-transaction-open" && reason.contains("PROCESS")),
            "{unseen:?}"
        );
        db.execute(&format!("REVOKE UPDATE, DELETE ON {}.* FROM '{user}'@'%'", db.name)).await;
        let findings = Findings::of(&store).await;
        let (evidence, _) = findings.found("mysql-privilege-missing");
        assert!(evidence.contains("UPDATE on outbox_event, DELETE on outbox_event"), "{evidence}");
        db.execute(&format!("DROP USER '{user}'@'%'")).await;
    })
    .await;
}

#[tokio::test]
async fn a_locked_table_keeps_no_examination_beyond_its_limit_and_none_keeps_a_writer() {
    with_db(async |db| {
        let store = db.store().await;
        let mut other = db.pool.get_conn().await.expect("a connection");
        execute(&mut other, "LOCK TABLES outbox_event WRITE").await;
        let view = store.examiner(Duration::from_secs(1)).expect("a view");
        let began = Instant::now();
        let findings = Findings(view.examine(&Thresholds::default()).await);
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        let unseen = findings.not_checked();
        assert!(unseen.iter().any(|(code, _)| *code == "mysql-purge-behind"), "{unseen:?}");
        view.backlog().await.expect_err("its other reads are bounded too");
        view.close().await;
        execute(&mut other, "UNLOCK TABLES").await;
        // Rows that a writer has locked are in nobody's way.
        execute(&mut other, "START TRANSACTION").await;
        execute(&mut other, "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('e', 't', '{}')").await;
        execute(&mut other, "SELECT * FROM outbox_partition FOR UPDATE").await;
        let findings = Findings::of(&store).await;
        assert_eq!(findings.not_checked(), Vec::new(), "nothing waited");
        execute(&mut other, "COMMIT").await;
    })
    .await;
}
