//! What is wrong is said in one sentence, with the right exit code, and never with a password.

use crate::support::run;

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let table: [&[&str]; 17] = [
        &[],
        &["deliver"],
        &["demo", "--orders", "many"],
        &["demo", "--color"],
        &["bench", "drain"],
        &["bench", "drain", "--store", "x.db", "--payload", "3"],
        &["bench", "hot", "--store", "x.db", "--writers", "0"],
        &["bench", "drain", "--store", "x.db", "--mode", "partitioned"],
        &["migrate", "--store", "x.db", "--print", "--check"],
        &["dead", "replay", "--store", "x.db"],
        &["dead", "replay", "--store", "x.db", "some-id", "--all"],
        &["dead", "discard", "--store", "x.db", "some-id", "--tenant", "acme"],
        &["purge", "--store", "x.db"],
        &["purge", "--store", "x.db", "--done-after", "soon"],
        &["purge", "--store", "x.db", "--all-after", "7d", "--done-after", "7d"],
        &["relay", "--store", "x.db", "--to", "kafka:events"],
        &["relay", "--store", "x.db", "--limit", "0"],
    ];
    for args in table {
        let ended = run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{args:?}: {ended:?}");
    }
}

#[test]
fn a_store_that_is_none_is_a_usage_error_that_lists_the_forms() {
    for url in ["oracle://me:s3cret@host/db", "me:s3cret@host", "shop", "sqlite://", ""] {
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
fn nothing_is_created_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tpyo.db");
    let store = file.to_str().unwrap();
    let commands: [&[&str]; 7] = [
        &["status"],
        &["migrate", "--check"],
        &["dead", "list"],
        &["dead", "show", "some-id"],
        &["dead", "replay", "some-id"],
        &["purge", "--done-after", "7d"],
        &["relay", "--limit", "1"],
    ];
    for args in commands {
        for store in [store, &format!("sqlite://{store}")] {
            let ended = run(&[args, &["--store", store]].concat());
            assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
            assert!(ended.stderr.contains("tpyo.db") && ended.stderr.contains("pillarbox migrate"), "{ended:?}");
            assert!(!file.exists(), "{args:?}");
        }
    }
}

#[test]
fn a_database_without_an_outbox_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.db");
    std::fs::write(&file, "").unwrap();
    let store = file.to_str().unwrap();
    for args in [["status"].as_slice(), &["migrate", "--check"], &["dead", "list"], &["relay", "--limit", "1"]] {
        let ended = run(&[args, &["--store", store]].concat());
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "one sentence: {ended:?}");
        assert!(ended.stderr.contains("migrate") && ended.stdout.is_empty(), "{args:?}: {ended:?}");
    }
}
