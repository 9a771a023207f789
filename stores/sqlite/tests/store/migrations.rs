use futures_util::future::join_all;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::{Fetch, FetchedRow, Heads, Store as _};
use pillarbox_sqlite::{SqliteOptions, SqliteStore};

use crate::scratch::{Scratch, pending, scope, write};

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
async fn a_table_of_the_first_version_is_upgraded_with_its_rows() {
    let scratch = Scratch::new();
    let store = SqliteStore::open(&scratch.file()).await.expect("opens");
    let script = store.migration_sql();
    let (first, _) = script.split_once("-- An event may have several handlers").expect("the next step begins there");
    let rows = "INSERT INTO outbox_event (event_id, event_type, payload, ordering_key, status)
                VALUES ('a', 't', '1', 'k', 2), ('b', 't', '2', 'k', 0), ('c', 't', '3', 'other', 0), ('d', 't', '4', NULL, 3)";
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("{first}{rows}"))).execute(store.writer()).await.expect("is valid SQL");
    let error = store.check().await.expect_err("the version is an old one");
    assert!(error.to_string().contains("version 1, this release needs 19"), "{error}");
    store.migrate().await.expect("takes the missing step");
    store.check().await.expect("is complete");
    let fetch = Fetch { scope: Some(scope(Heads::Retry)), ..Fetch::new(10) };
    let fetched = store.fetch(&fetch).await.expect("fetches");
    let seqs: Vec<i64> = fetched.rows.iter().map(FetchedRow::seq).collect();
    assert_eq!(seqs, [1, 3], "the second waits behind the first, which failed before there was an index of such");
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

/// They would share the tables beside them, and with those the lease: nothing of the second would ever be delivered.
#[tokio::test]
async fn two_outboxes_whose_tables_beside_them_have_the_same_names_are_not_made() {
    for (first, second) in [("orders_event", "orders"), ("orders", "orders_event")] {
        let scratch = Scratch::new();
        let named = async |name| SqliteOptions::new(scratch.file()).table(name).open().await.expect("opens");
        named(first).await.migrate().await.expect("migrates");
        let error = named(second).await.migrate().await.expect_err("they would be shared").to_string();
        assert!(
            error.contains(&format!(
                "`orders_migration` beside it is there; if that belongs to an outbox in the table `{first}`"
            )),
            "{error}"
        );
        assert!(error.contains("give this one another name") && !error.contains("--print"), "{error}");
    }
}

#[tokio::test]
async fn lost_tables_and_indexes_are_named_by_check_and_migration() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    for (lose, lost) in [
        ("DROP INDEX outbox_event_ready", "outbox_event_ready"),
        ("DROP TABLE outbox_node", "outbox_node, outbox_event_ready"),
    ] {
        sqlx::query(lose).execute(store.writer()).await.expect("drops");
        for answer in [store.check().await, store.migrate().await] {
            let error = answer.expect_err("another migration makes nothing");
            let text = error.to_string();
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{text}");
            assert!(text.contains(&format!("missing: {lost}, which")) && text.contains("--print"), "{text}");
        }
    }
}

#[tokio::test]
async fn tables_of_another_program_are_refused_and_left_alone() {
    let tables = [
        ("CREATE TABLE outbox_event (id INTEGER PRIMARY KEY, event_id TEXT)", "table `outbox_event`"),
        ("CREATE TABLE Outbox_Event (id INTEGER)", "table `Outbox_Event`"),
        ("CREATE VIEW outbox_event AS SELECT 1", "view `outbox_event`"),
        ("CREATE TABLE outbox_node (id INTEGER)", "table `outbox_node`"),
        ("CREATE TABLE outbox_inbox (id INTEGER)", "table `outbox_inbox`"),
        ("CREATE TABLE outbox_audit (id INTEGER)", "table `outbox_audit`"),
        ("CREATE TABLE outbox_migration (name TEXT)", "table `outbox_migration`"),
        ("CREATE TABLE a (b); CREATE INDEX outbox_event_due ON a (b)", "index `outbox_event_due`"),
        ("CREATE TABLE outbox_event_heads (a)", "table `outbox_event_heads`"),
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

/// The rows of the first release keep all they hold, and their numbers go on where they were.
#[tokio::test]
async fn tables_of_version_1_take_an_event_for_several_handlers() {
    let scratch = Scratch::new();
    let store = SqliteStore::open(&scratch.file()).await.expect("opens");
    let whole = store.migration_sql();
    let (first, _) = whole.split_once("-- An event may have several handlers").expect("the third version is there");
    let run = async |sql: String| sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(store.writer()).await;
    run(first.to_owned()).await.expect("makes version 1");
    let insert =
        |id: &str| format!("INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('{id}', 't', '{{}}')");
    for id in ["a", "b", "c"] {
        run(insert(id)).await.expect("inserts");
    }
    let rest = "DELETE FROM outbox_event WHERE event_id = 'c';
                UPDATE outbox_event SET status = 3, attempts = 7, last_error = 'no mail', tenant_id = 'acme', done_at = 5 WHERE event_id = 'a';
                CREATE VIEW audit AS SELECT count(*) AS events FROM outbox_event";
    run(rest.to_owned()).await.expect("changes");
    let rows = async || -> Vec<String> {
        let columns = "seq, event_id, status, attempts, last_error, tenant_id, done_at, created_at";
        let all = format!("SELECT json_array({columns}) FROM outbox_event");
        sqlx::query_scalar(sqlx::AssertSqlSafe(all)).fetch_all(store.writer()).await.expect("reads")
    };
    let before = rows().await;
    assert_eq!(before.len(), 2);
    assert_eq!(store.check().await.expect_err("is older").kind(), StoreErrorKind::Schema);

    store.migrate().await.expect("migrates");
    store.check().await.expect("is complete");
    assert_eq!(rows().await, before);
    assert_eq!(write(&store, 1).await, [4], "no number is given twice");
    let audit = sqlx::query_scalar("SELECT events FROM audit").fetch_one(store.writer()).await;
    assert_eq!(audit.map(|events: i64| events).map_err(|error| error.to_string()), Ok(3));
    run(insert("a")).await.expect_err("an event without a handler is one row");
    let named = "INSERT INTO outbox_event (event_id, event_type, payload, handler) VALUES ('a', 't', '{}', 'mailer')";
    run(named.to_owned()).await.expect("another row for a handler");
    run(named.to_owned()).await.expect_err("one row for each handler");
}
