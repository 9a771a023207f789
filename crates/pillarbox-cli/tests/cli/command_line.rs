//! A wrong command line ends in one sentence, with the right exit code, and never with a password.

use crate::support::{Ended, run};

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let table: [&[&str]; 18] = [
        &[],
        &["deliver"],
        &["demo", "--orders", "many"],
        &["demo", "--color"],
        &["keys"],
        &["keys", "blocked"],
        &["keys", "blocked", "--store", "x.db", "--limit", "0"],
        &["migrate", "--store", "x.db", "--print", "--check"],
        &["dead", "replay", "--store", "x.db"],
        &["dead", "replay", "--store", "x.db", "some-id", "--all"],
        &["dead", "discard", "--store", "x.db", "some-id", "--tenant", "acme"],
        &["purge", "--store", "x.db"],
        &["purge", "--store", "x.db", "--done-after", "soon"],
        &["purge", "--store", "x.db", "--all-after", "7d", "--done-after", "7d"],
        &["relay", "--store", "x.db", "--to", "kafka:events"],
        &["relay", "--store", "x.db", "--limit", "0"],
        &["relay", "--store", "x.db", "--fsync"],
        &["relay", "--store", "x.db", "--mode", "partitioned", "--failing-key", "drop"],
    ];
    for args in table {
        let ended = run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{args:?}: {ended:?}");
    }
}

#[test]
fn an_option_that_is_wrong_is_named_as_it_was_typed() {
    let table: [(&str, &[&str]); 8] = [
        ("--poll-interval", &["relay", "--poll-interval", "2h"]),
        ("--lease", &["relay", "--lease", "1ms"]),
        ("--node-name", &["relay", "--node-name", "a b"]),
        ("--workers", &["relay", "--mode", "ordered", "--workers", "2"]),
        ("--failing-key", &["relay", "--failing-key", "skip_dead"]),
        ("--fsync", &["relay", "--fsync"]),
        ("--table", &["status", "--table", "a b"]),
        ("--table", &["migrate", "--table", "a b"]),
    ];
    for (option, args) in table {
        let ended = run(&[args, &["--store", "x.db"]].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.starts_with(&format!("error: setting `{option}` ")), "{args:?}: {ended:?}");
        assert!(!std::path::Path::new("x.db").exists(), "{args:?}");
    }
}

#[test]
fn failing_key_values_are_spelled_as_in_the_file() {
    let help = run(&["relay", "--help"]).stdout;
    assert!(help.contains("skip_dead") && !help.contains("skip-dead"), "{help}");
    for spelling in ["skip_dead", "skip-dead"] {
        let ended = run(&["relay", "--store", "no.db", "--mode", "partitioned", "--failing-key", spelling]);
        assert!(ended.stderr.contains("--store names no file"), "it is understood: {ended:?}");
    }
}

#[test]
fn a_store_that_is_none_is_a_usage_error_that_lists_the_forms() {
    for url in ["oracle://me:s3cret@host/db", "me:s3cret@host", "shop", "sqlite://", ""] {
        for args in [["demo", "--store", url], ["status", "--store", url], ["migrate", "--store", url]] {
            let args = args.as_slice();
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
    for args in [["demo", "--store", url], ["status", "--store", url], ["migrate", "--store", url]] {
        let ended = run(&args);
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
    for argument in ["postgres://me:s3cret@host/db", "me:s3cret@host/db"] {
        let ended = run(&["migrate", argument]);
        assert_eq!(ended.code, Some(2));
        assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
    }
}

#[test]
fn nothing_is_created_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tpyo.db");
    let store = file.to_str().unwrap();
    let commands: [&[&str]; 8] = [
        &["status"],
        &["migrate", "--check"],
        &["dead", "list"],
        &["dead", "show", "some-id"],
        &["dead", "replay", "some-id"],
        &["keys", "blocked"],
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
        assert!(ended.stderr.contains("`pillarbox migrate") && ended.stdout.is_empty(), "{args:?}: {ended:?}");
        assert!(!ended.stderr.contains("store.migrate"), "a library call is no remedy here: {args:?}: {ended:?}");
    }
    let ended = run(&["status", "--store", store, "--table", "events"]);
    assert!(ended.stderr.contains(&format!("`pillarbox migrate --store {store} --table events`")), "{ended:?}");
    let problem = &run(&["migrate", "--check", "--store", store, "--table", "events", "--json"]).json()["problem"];
    assert!(problem.as_str().unwrap().contains("--table events`"), "{problem}");
}

#[test]
fn relay_and_doctor_without_a_store_suggest_a_command() {
    for (command, others) in [("relay", ["--limit", "3"]), ("doctor", ["--watch", "30s"])] {
        for args in [&[command][..], &[&[command][..], &others].concat()] {
            let ended = run(args);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "one sentence: {ended:?}");
            for part in ["--config relay.toml`", "--store postgres://app@db/shop`", "PILLARBOX_STORE"] {
                assert!(ended.stderr.contains(part), "{part}: {ended:?}");
            }
        }
    }
}

#[test]
fn the_remedy_of_a_doctor_can_be_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.db");
    std::fs::write(&file, "").unwrap();
    let store = file.to_str().unwrap();
    let ended = run(&["doctor", "--store", store, "--table", "billing_event", "--json"]);
    let found = ended.json();
    let schema = found["findings"].as_array().unwrap().iter().find(|found| found["code"] == "schema-version");
    let expected = format!("pillarbox migrate --store {store} --table billing_event");
    assert_eq!(schema.unwrap()["command"], expected, "{found}");
    assert!(schema.unwrap()["remedy"].as_str().unwrap().contains(&format!("Run `{expected}`")), "{found}");
    let config = folder.path().join("relay.toml");
    let text = format!(
        "[[source]]\nname = \"shop\"\nstore.url = \"sqlite://{store}\"\nstore.table = \"billing_event\"\n[[route]]\nname = \"all\"\ndrop = true\n"
    );
    std::fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();
    let found = run(&["doctor", "--config", config, "--json"]).json();
    assert!(found.to_string().contains(&format!("\"command\":\"{expected}\"")), "{found}");
    // A command that names no outbox would work on the one that the environment names.
    let remedy = "Run `pillarbox migrate --store 'URL of source shop' --table 'TABLE of source shop'`";
    assert!(found.to_string().contains(remedy), "{found}");
    let ended = run(&["relay", "--config", config, "--check"]);
    assert!(ended.stdout.contains("`pillarbox migrate --table billing_event`"), "{ended:?}");
    std::fs::remove_file(&file).unwrap();
    let ended = run(&["relay", "--config", config, "--check"]);
    assert!(ended.stdout.contains(&format!("`{expected}`")), "{ended:?}");
}

/// Each mistake stands in a line of its own, and in the list of the JSON.
#[test]
fn all_mistakes_of_a_file_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("relay.toml");
    std::fs::write(
        &config,
        "[[source]]\nname = \"shop\"\nstore.ulr = \"x.db\"\n[[route]]\nname = \"all\"\ndrp = true\n",
    )
    .unwrap();
    let config = config.to_str().unwrap();
    for args in [&["relay", "--config", config][..], &["relay", "--config", config, "--check"]] {
        let ended = run(args);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.lines().count()), (Some(2), "", 2), "{ended:?}");
        assert!(
            ended.stderr.lines().all(|line| line.starts_with("error: ") && line.contains("relay.toml, line "))
                || ended.stderr.contains("line 3)"),
            "{ended:?}"
        );
    }
    let ended = run(&["relay", "--config", config, "--check", "--json"]);
    let checked = ended.json();
    assert_eq!(
        (ended.code, &checked["ok"], checked["problems"].as_array().unwrap().len()),
        (Some(2), &false.into(), 2)
    );
}

#[test]
fn a_level_of_the_log_that_is_none_is_a_usage_error() {
    let (_folder, store) = crate::support::sqlite();
    let status = |level: &str| -> Ended {
        crate::support::pillarbox(&["status", "--store", &store]).env("RUST_LOG", level).output().unwrap().into()
    };
    for (level, part) in [("inof", "`inof` in it, which is no level"), ("pillarbox=inof", "which cannot be read")] {
        let ended = status(level);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "one sentence: {ended:?}");
        for part in ["error: the variable RUST_LOG has ", part, "write `error`", "TARGET=LEVEL"] {
            assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        }
    }
    for level in ["", "info", "pillarbox_engine=debug,info"] {
        let ended = status(level);
        assert_eq!(ended.code, Some(0), "{level}: {ended:?}");
    }
}

/// The benches are a program of their own. A script stands for it.
#[cfg(unix)]
#[test]
fn benches_are_run_by_the_program_beside_this_one() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("pillarbox");
    std::fs::copy(env!("CARGO_BIN_EXE_pillarbox"), &program).unwrap();
    // A process that another test has just begun may still have the copy open for writing.
    let bench = |args: &[&str]| -> Ended {
        loop {
            match std::process::Command::new(&program).arg("bench").args(args).output() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                ended => return ended.unwrap().into(),
            }
        }
    };
    let missing = bench(&["drain", "--store", "x.db"]);
    assert_eq!((missing.code, &*missing.stdout), (Some(1), ""), "{missing:?}");
    assert!(missing.stderr.contains("pillarbox-bench` does not exist"), "{missing:?}");
    assert!(missing.stderr.contains("cargo run --release -p pillarbox-bench"), "it says what to do: {missing:?}");

    let beside = folder.path().join("pillarbox-bench");
    std::fs::create_dir(&beside).unwrap();
    let folder_in_its_place = bench(&["drain"]);
    assert_eq!(folder_in_its_place.code, Some(1), "{folder_in_its_place:?}");
    assert!(folder_in_its_place.stderr.contains("pillarbox-bench`: "), "it is named: {folder_in_its_place:?}");
    std::fs::remove_dir(&beside).unwrap();

    std::fs::write(&beside, "#!/bin/sh\necho \"$@\"\nexit 3\n").unwrap();
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ended = bench(&["drain", "--help", "--store", "x.db"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(3), "drain --help --store x.db\n"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_no_text_is_a_usage_error() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let mut command = crate::support::pillarbox(&["migrate", "--store"]);
    let ended: Ended = command.arg(OsStr::from_bytes(b"me:s3cret@\xff")).output().unwrap().into();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(!ended.stderr.is_empty() && !ended.stderr.contains("s3cret"), "{ended:?}");
}
