//! What is wrong is said in one sentence, with the right exit code, and never with a password.

use crate::support::{connect, count, run, run_async, with_postgres};

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let table: [&[&str]; 7] = [
        &[],
        &["deliver"],
        &["demo", "--orders", "many"],
        &["demo", "--color"],
        &["bench", "drain"],
        &["bench", "drain", "--store", "x.db", "--payload", "3"],
        &["bench", "hot", "--store", "x.db", "--writers", "0"],
    ];
    for args in table {
        let ended = run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{args:?}: {ended:?}");
    }
}

#[test]
fn a_store_that_is_none_is_a_usage_error_that_lists_the_forms() {
    for url in ["mysql://me:s3cret@host/db", "me:s3cret@host", "shop", "sqlite://", ""] {
        for args in
            [["demo", "--store", url].as_slice(), &["bench", "write", "--store", url], &["migrate", "--store", url]]
        {
            let ended = run(args);
            assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "one sentence: {ended:?}");
            assert!(ended.stderr.contains("sqlite://PATH") && ended.stderr.contains("postgres://"), "{ended:?}");
            assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
        }
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_named_without_its_password() {
    // Nobody listens on port 1, so the connection is refused at once.
    let url = "postgres://me:s3cret@127.0.0.1:1/shop";
    for args in [["demo", "--store", url].as_slice(), &["bench", "drain", "--store", url], &["migrate", "--store", url]]
    {
        let ended = run(args);
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
        assert!(ended.stderr.contains("127.0.0.1"), "it says where: {ended:?}");
        assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
    }
}

#[test]
fn a_malformed_url_does_not_show_its_password() {
    for url in ["postgres://me:s3cret@host:port/db", "postgres://me:s3cret@host/db?sslmode=perhaps"] {
        let ended = run(&["migrate", "--store", url]);
        assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
        assert!(!ended.stderr.is_empty() && !ended.stderr.contains("s3cret"), "{ended:?}");
    }
    let ended = run(&["migrate", "postgres://me:s3cret@host/db"]);
    assert_eq!(ended.code, Some(2));
    assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
}

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
        }
        client.query("SELECT seq FROM billing.outbox_event", &[]).await.unwrap();
    })
    .await;
}
