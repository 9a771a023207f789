//! Tables are created, checked and printed.

use crate::support::{connect, count, run, run_async, with_postgres};

#[test]
fn migrate_creates_the_named_tables_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let store = file.to_str().unwrap();
    for _ in 0..2 {
        let ended = run(&["migrate", "--store", store, "--table", "billing_event"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("billing_event is ready in SQLite"), "{ended:?}");
    }
    let ended = run(&["migrate", "--store", store, "--table", "no table"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("table"), "{ended:?}");
}

#[tokio::test]
async fn migrate_prints_its_sql_without_touching_anything() {
    with_postgres(|url| async move {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.db");
        for store in [file.to_str().unwrap(), &url] {
            let ended = run_async(&["migrate", "--store", store, "--table", "billing_event", "--print"]).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(ended.stdout.contains("billing_event") && ended.stdout.contains("billing_node"), "{ended:?}");
            assert!(ended.stdout.contains("CREATE TABLE"), "{ended:?}");
        }
        assert!(!file.exists(), "printing creates no database");
        let (client, _connection) = connect(&url).await;
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        assert_eq!(count(&client, tables).await, 0, "and no tables");
        // What was printed is complete: another tool may run it.
        let printed = run_async(&["migrate", "--store", &url, "--print"]).await.stdout;
        client.batch_execute(&printed).await.unwrap();
        let ended = run_async(&["migrate", "--store", &url]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    })
    .await;
}

#[tokio::test]
async fn migrate_creates_the_named_tables_in_postgres() {
    with_postgres(|url| async move {
        let (client, _connection) = connect(&url).await;
        client.batch_execute("CREATE SCHEMA billing").await.unwrap();
        for _ in 0..2 {
            let ended = run_async(&["migrate", "--store", &url, "--table", "billing.outbox_event"]).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(ended.stderr.contains("creating the schema `billing`, unless it is there"), "{ended:?}");
        }
        client.query("SELECT seq FROM billing.outbox_event", &[]).await.unwrap();
    })
    .await;
}

#[test]
fn migrate_check_says_whether_there_is_something_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    std::fs::write(&file, "").unwrap();
    let store = file.to_str().unwrap();
    let check = ["migrate", "--store", store, "--check", "--json"];
    let ended = run(&check);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["up_to_date"], false);
    assert!(report["problem"].as_str().unwrap().contains("migrate"), "{report}");

    assert_eq!(run(&["migrate", "--store", store, "--json"]).json()["up_to_date"], true);
    let ended = run(&check);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["problem"], serde_json::Value::Null);
}

#[test]
fn migrate_prints_its_sql_as_json_too() {
    let report = run(&["migrate", "--store", "shop.db", "--table", "billing_event", "--print", "--json"]).json();
    assert_eq!(report["table"], "billing_event");
    assert!(report["sql"].as_str().unwrap().contains("CREATE TABLE"), "{report}");
}
