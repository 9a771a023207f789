//! Creating and checking the tables.

mod support;

use futures_util::future::try_join_all;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::{Store as _, Upkeep as _};
use support::{events, fetch, unique, with_db};

/// Many processes start at once on an empty database; stores share nothing, as processes do.
#[tokio::test]
async fn many_migrate_at_once() {
    with_db(async |db| {
        let stores = try_join_all((0..8).map(|_| db.options().pool_size(1).connect())).await.expect("connect");
        try_join_all(stores.iter().map(|store| store.migrate())).await.expect("all migrate");
        try_join_all(stores.iter().map(|store| store.check())).await.expect("all find the tables");
        let recorded = format!("SELECT count(*) FROM {}.outbox_migration", db.schema);
        assert_eq!(db.text(&recorded).await.as_deref(), Some("2"), "one of them did it, once each version");
        let partitions = format!("SELECT count(*) FROM {}.outbox_partition WHERE node_id IS NULL", db.schema);
        assert_eq!(db.text(&partitions).await.as_deref(), Some("256"));
    })
    .await;
}

#[tokio::test]
async fn missing_tables_are_named_with_the_remedy() {
    with_db(async |db| {
        let store = db.options().connect().await.expect("connects");
        let error = store.check().await.expect_err("nothing is there");
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        let text = error.to_string();
        for part in [&format!("{}.outbox_event", db.schema), "outbox_partition", "store.migrate()", "pillarbox migrate"]
        {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
        let error = store.fetch(&fetch(1)).await.expect_err("nothing is there");
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains("pillarbox migrate"), "{error}");

        store.migrate().await.expect("migrates");
        db.execute(&format!("DROP TABLE {}.outbox_node", db.schema)).await;
        let text = store.check().await.expect_err("one is missing").to_string();
        assert!(text.contains("outbox_node") && !text.contains("outbox_event,"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    with_db(async |db| {
        let store = db.store().await;
        db.execute(&format!("INSERT INTO {}.outbox_migration (version) VALUES (99)", db.schema)).await;
        for error in [store.migrate().await, store.check().await] {
            let error = error.expect_err("it is newer");
            assert_eq!(error.kind(), StoreErrorKind::Schema);
            assert!(error.to_string().contains("99") && error.to_string().contains("upgrade Pillarbox"), "{error}");
        }
    })
    .await;
}

/// What is printed for other migration tools leads to what `migrate` leads to.
#[tokio::test]
async fn the_printed_sql_is_what_runs() {
    with_db(async |db| {
        let printed = unique("pillarbox");
        let other = db.options().table(format!("{printed}.outbox_event")).connect().await.expect("connects");
        db.execute(&other.migration_sql()).await;
        other.check().await.expect("it says nothing is missing");
        other.migrate().await.expect("nothing is left to do");
        let migrated = db.store().await;
        let shape = async |schema: &str| {
            db.text(&format!(
                "SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
                     SELECT concat_ws(' ', table_name, column_name, data_type, column_default, is_nullable) AS line
                     FROM information_schema.columns WHERE table_schema = '{schema}'
                     UNION ALL
                     SELECT replace(indexdef, '{schema}', '') FROM pg_indexes WHERE schemaname = '{schema}') AS lines"
            ))
            .await
            .map(|shape| shape.replace(schema, ""))
        };
        assert_eq!(shape(&printed).await, shape(&db.schema).await);
        assert_eq!(db.write(&other, events(2)).await, db.write(&migrated, events(2)).await);
        db.execute(&format!("DROP SCHEMA {printed} CASCADE")).await;
    })
    .await;
}

/// Names are quoted, so case is kept and keywords are names; the longest ones fit.
#[tokio::test]
async fn any_valid_table_name_works() {
    with_db(async |db| {
        let longest = "x".repeat(48);
        for name in ["Select_event", "user", "order", &longest] {
            let store = db.options().table(format!("{}.{name}", db.schema)).connect().await.expect("connects");
            store.migrate().await.expect("migrates");
            store.check().await.expect("is there");
            let written = db.write(&store, events(2)).await;
            assert_eq!(support::seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), written, "{name}");
        }
        let error = db.options().table("a.b.c").connect().await.expect_err("no such name");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    })
    .await;
}

/// A service's own user need not be allowed to create tables where there is nothing to create.
#[tokio::test]
async fn a_user_without_privileges_migrates_what_is_migrated() {
    with_db(async |db| {
        let store = db.store().await;
        let role = unique("pillarbox_role");
        db.execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {0} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {0} TO {role}",
            db.schema
        ))
        .await;
        let service = db.options_as(&role).connect().await.expect("connects");
        service.migrate().await.expect("nothing is to be done");
        service.check().await.expect("all is there");
        db.execute(&format!("REVOKE ALL ON ALL TABLES IN SCHEMA {} FROM {role}", db.schema)).await;
        let error = service.counts().await.expect_err("it may not read");
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert_eq!(store.counts().await.expect("counts").pending(), 0);
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}
