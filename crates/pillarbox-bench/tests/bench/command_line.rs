//! A wrong command line ends in one sentence, with the right exit code, and never with a password.

use crate::support::run;

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let table: [&[&str]; 7] = [
        &[],
        &["drain"],
        &["drain", "--store", "x.db", "--payload", "3"],
        &["hot", "--store", "x.db", "--writers", "0"],
        &["drain", "--store", "x.db", "--mode", "writer_only"],
        &["drain", "--store", "x.db", "--mode", "multi_node", "--keys", "10"],
        &["drain", "--store", "x.db", "--blocked", "10"],
    ];
    for args in table {
        let ended = run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{args:?}: {ended:?}");
    }
}

#[test]
fn an_option_that_is_wrong_is_named_as_it_was_typed() {
    let table: [(&str, &[&str]); 2] =
        [("--keys", &["drain", "--keys", "10"]), ("--blocked", &["drain", "--blocked", "10"])];
    for (option, args) in table {
        let ended = run(&[args, &["--store", "x.db"]].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.starts_with(&format!("error: setting `{option}` ")), "{args:?}: {ended:?}");
        assert!(!std::path::Path::new("x.db").exists(), "{args:?}");
    }
}

#[test]
fn a_store_that_is_none_is_a_usage_error_that_lists_the_forms() {
    for url in ["oracle://me:s3cret@host/db", "me:s3cret@host", "shop", "sqlite://", ""] {
        let ended = run(&["write", "--store", url]);
        assert_eq!(ended.code, Some(2), "{url}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "one sentence: {ended:?}");
        assert!(ended.stderr.contains("sqlite://PATH") && ended.stderr.contains("postgres://"), "{ended:?}");
        assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_named_without_its_password() {
    // Nobody listens on port 1, so the connection is refused at once.
    let ended = run(&["drain", "--store", "postgres://me:s3cret@127.0.0.1:1/shop"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.is_empty() && ended.stderr.contains("127.0.0.1"), "it says where: {ended:?}");
    assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
}
