use futures_util::future::join_all;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::Store as _;
use pillarbox_sqlite::{SqliteOptions, SqliteStore};

use crate::scratch::{Scratch, pending, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_and_migrating_at_once_succeeds_everywhere() {
    let scratch = Scratch::new();
    let file = scratch.file();
    let all = (0..8).map(|_| async {
        let store = SqliteStore::open(&file).await?;
        store.migrate().await?;
        store.check().await
    });
    for result in join_all(all).await {
        result.expect("succeeds");
    }
}

#[tokio::test]
async fn the_printed_sql_makes_the_schema_that_migrate_makes() {
    let scratch = Scratch::new();
    let store = SqliteStore::open(&scratch.file()).await.expect("opens");
    sqlx::raw_sql(sqlx::AssertSqlSafe(store.migration_sql())).execute(store.writer()).await.expect("is valid SQL");
    store.check().await.expect("is complete");
    store.migrate().await.expect("finds nothing to do");
    assert_eq!(write(&store, 2).await.len(), pending(&store).await.len());
}

#[tokio::test]
async fn two_outboxes_share_a_file() {
    let scratch = Scratch::new();
    let first = scratch.store().await;
    let second = SqliteOptions::new(scratch.file()).table("order").open().await.expect("a keyword is a name too");
    second.migrate().await.expect("migrates");
    write(&second, 1).await;
    assert_eq!((pending(&first).await.len(), pending(&second).await.len()), (0, 1));
}

#[tokio::test]
async fn a_lost_table_is_a_matter_of_the_schema() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    sqlx::query("DROP TABLE outbox_node").execute(store.writer()).await.expect("drops");
    let error = store.check().await.expect_err("a table is missing");
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    let cause = std::error::Error::source(&error).expect("the driver's error").to_string();
    assert!(cause.contains("outbox_node"), "{cause}");
}

#[tokio::test]
async fn what_another_program_made_is_refused_and_left_alone() {
    let tables = [
        ("CREATE TABLE outbox_event (id INTEGER PRIMARY KEY, event_id TEXT)", "table `outbox_event`"),
        ("CREATE TABLE Outbox_Event (id INTEGER)", "table `Outbox_Event`"),
        ("CREATE VIEW outbox_event AS SELECT 1", "view `outbox_event`"),
        ("CREATE TABLE outbox_node (id INTEGER)", "table `outbox_node`"),
        ("CREATE TABLE outbox_migration (name TEXT)", "table `outbox_migration`"),
        ("CREATE TABLE a (b); CREATE INDEX outbox_event_due ON a (b)", "index `outbox_event_due`"),
    ];
    for (sql, named) in tables {
        let scratch = Scratch::new();
        let store = SqliteStore::open(&scratch.file()).await.expect("opens");
        sqlx::raw_sql(sql).execute(store.writer()).await.expect("creates");
        let schema = async || -> Vec<(String, Option<String>)> {
            let schema = sqlx::query_as("SELECT name, sql FROM sqlite_schema ORDER BY name");
            schema.fetch_all(store.writer()).await.expect("reads")
        };
        let before = schema().await;
        let error = store.migrate().await.expect_err(sql);
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains(named) && error.to_string().contains("rename"), "{error}");
        assert_eq!(schema().await, before, "{sql}");
        assert_eq!(store.check().await.expect_err(sql).kind(), StoreErrorKind::Schema);
        let other = SqliteOptions::new(scratch.file()).table("shop_event").open().await.expect("opens");
        other.migrate().await.expect("there is room for another name");
        other.check().await.expect("is complete");
    }
}
