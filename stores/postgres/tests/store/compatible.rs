//! Servers that speak PostgreSQL's protocol and lack what deliveries depend on, and tables of a kind whose rows have no place in
//! one heap, are refused at the start. Views, functions and tables that hide those of the catalog stand for such servers.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::Store;
use pillarbox_postgres::PostgresStore;

use crate::support::{Db, with_db};

/// The store as it sees a server where the names of this schema come before those of the catalog.
async fn disguised(db: &Db) -> PostgresStore {
    let path = format!("&options=-c%20search_path%3D{}%2Cpg_catalog", db.schema);
    db.options_at(&db.url_with("", &path)).connect().await.expect("connects")
}

fn assert_refused(answer: Result<(), StoreError>, parts: &[&str]) {
    let error = answer.expect_err("it is refused");
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part} is missing in: {error}");
    }
}

#[tokio::test]
async fn a_server_that_shows_no_locks_is_refused_before_anything_is_written() {
    with_db(async |db| {
        let schema = &db.schema;
        db.execute(&format!("CREATE SCHEMA {schema}")).await;
        let store = disguised(db).await;
        assert_eq!(store.check().await.expect_err("there are no tables yet").kind(), StoreErrorKind::Schema);
        let hide = format!(
            "CREATE VIEW {schema}.pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false;
             CREATE FUNCTION {schema}.version() RETURNS text LANGUAGE sql AS \
             $$ SELECT 'CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15)' $$;"
        );
        db.execute(&hide).await;
        for answer in [store.check().await, store.migrate().await] {
            assert_refused(answer, &["CockroachDB CCL v24.1.0", "pg_locks", "docs/scaling.md"]);
        }
        let tables = format!("SELECT count(*)::text FROM pg_tables WHERE schemaname = '{schema}'");
        assert_eq!(db.text(&tables).await.as_deref(), Some("0"));

        db.execute(&format!("DROP VIEW {schema}.pg_locks")).await;
        store.migrate().await.expect("migrates where locks are shown, whatever the server calls itself");
        store.check().await.expect("so it may start");
        db.execute(&format!("CREATE VIEW {schema}.pg_locks AS SELECT 'x' AS locktype")).await;
        for answer in [store.check().await, store.migrate().await] {
            assert_refused(answer, &["cannot be asked for its locks", "relation", "docs/scaling.md"]);
        }
    })
    .await;
}

#[tokio::test]
async fn tables_whose_rows_have_no_place_in_one_heap_are_refused() {
    with_db(async |db| {
        let (schema, store) = (&db.schema, db.store().await);
        let event = format!("{schema}.outbox_event");
        store.check().await.expect("a heap");

        db.execute(&format!("CREATE TABLE {schema}.part () INHERITS ({event})")).await;
        assert_refused(store.check().await, &["outbox_event", "is divided into parts", "docs/scaling.md"]);
        db.execute(&format!("DROP TABLE {schema}.part; ALTER TABLE {event} RENAME TO whole")).await;

        let kinds = [
            ("CREATE TABLE {event} (LIKE {schema}.whole) PARTITION BY RANGE (seq)", "TABLE", "is divided into parts"),
            ("CREATE VIEW {event} AS SELECT * FROM {schema}.whole", "VIEW", "is a view"),
            (
                "CREATE MATERIALIZED VIEW {event} AS SELECT * FROM {schema}.whole",
                "MATERIALIZED VIEW",
                "is a materialized view",
            ),
        ];
        for (create, kind, problem) in kinds {
            db.execute(&create.replace("{event}", &event).replace("{schema}", schema)).await;
            assert_refused(store.check().await, &["outbox_event", problem]);
            db.execute(&format!("DROP {kind} {event}")).await;
        }
        db.execute(&format!("ALTER TABLE {schema}.whole RENAME TO outbox_event")).await;
        store.check().await.expect("a heap again");
    })
    .await;
}

#[tokio::test]
async fn a_table_that_citus_distributes_is_refused() {
    with_db(async |db| {
        let schema = &db.schema;
        let store = disguised(db).await;
        store.migrate().await.expect("migrates");
        db.execute(&format!("CREATE TABLE {schema}.pg_dist_partition (logicalrelid regclass)")).await;
        store.check().await.expect("it distributes other tables");
        db.execute(&format!("INSERT INTO {schema}.pg_dist_partition VALUES ('{schema}.outbox_event')")).await;
        assert_refused(store.check().await, &["outbox_event", "Citus", "docs/scaling.md"]);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_does_not_know_a_setting_is_named_with_what_is_needed() {
    with_db(async |db| {
        let unknown = db.url_with("", "&options=-c%20no_such_setting%3D1");
        let answer = match db.options_at(&unknown).connect().await {
            Ok(store) => store.check().await,
            Err(error) => Err(error),
        };
        assert_refused(answer, &["no_such_setting", "PostgreSQL 12"]);
    })
    .await;
}
