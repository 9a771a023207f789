//! Where settings come from, which wins, and what is said about those that cannot be used.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use pillarbox_config::{Error, Loader, Mode, Settings, Unroutable};
use pillarbox_core::ownership::NodeName;
use tempfile::TempDir;

/// A directory with `outbox.toml` in it.
fn file(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("outbox.toml");
    std::fs::write(&path, text).expect("a file");
    (directory, path)
}

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Settings, Error> {
    let (_directory, path) = file(text);
    Loader::new().file(path).environment().variables(variables.iter().copied()).load()
}

/// What is said, without the directory.
fn complaint(text: &str, variables: &[(&str, &str)]) -> String {
    let (directory, path) = file(text);
    let error =
        Loader::new().file(path).environment().variables(variables.iter().copied()).load().expect_err("refused");
    let prefix = format!("{}{}", directory.path().display(), std::path::MAIN_SEPARATOR);
    error.to_string().replace(&prefix, "")
}

#[test]
fn the_environment_wins_over_the_file_and_the_program_over_both() {
    let text = "mode = 'multi_node'\n[claim]\nbatch = 10\nmin_interval = '1ms'\n[dispatch]\nworkers = 2\n";
    let (_directory, path) = file(text);
    let variables = [("PILLARBOX_CLAIM__BATCH", "20"), ("PILLARBOX_DISPATCH__WORKERS", "3"), ("HOME", "/")];
    let loader = Loader::new().file(path).environment().variables(variables).set("dispatch.workers", "4");
    let settings = loader.load().expect("valid");
    assert_eq!(settings.mode, Mode::MultiNode);
    assert_eq!(settings.claim.batch, 20);
    assert_eq!(settings.claim.min_interval, Duration::from_millis(1));
    assert_eq!(settings.dispatch.workers, 4);
}

#[test]
fn the_longest_pause_alone_makes_nodes_look_that_often() {
    let pauses = |text| load(text, &[]).map(|settings| (settings.claim.min_interval, settings.claim.max_interval));
    let ms = Duration::from_millis;
    assert_eq!(pauses("[claim]\nmax_interval = '10ms'").expect("valid"), (ms(10), ms(10)));
    assert_eq!(pauses("[claim]\nmax_interval = '1s'").expect("valid"), (ms(50), ms(1000)));
    let contradiction = complaint("[claim]\nmax_interval = '10ms'\nmin_interval = '20ms'", &[]);
    assert_eq!(
        contradiction,
        "setting `claim.min_interval` (outbox.toml, line 3) is 20ms; set a duration from 1ms to 10ms"
    );
}

#[test]
fn every_kind_of_value_is_read_from_either_source() {
    let text = "[wake_up]\nenabled = true\n[dispatch]\nunroutable = 'park 30s'\n[ownership]\nnode_name = '7'\n";
    let variables = [
        ("PILLARBOX_WAKE_UP__ENABLED", "true"),
        ("PILLARBOX_DISPATCH__UNROUTABLE", "park 30s"),
        ("PILLARBOX_OWNERSHIP__NODE_NAME", "7"),
        ("PILLARBOX_MODE", ""),
    ];
    for settings in [load(text, &[]), load("", &variables)] {
        let settings = settings.expect("valid");
        assert!(settings.wake_up.enabled);
        assert_eq!(settings.dispatch.unroutable, Unroutable::Park(Duration::from_secs(30)));
        assert_eq!(settings.ownership.node_name.as_ref().map(NodeName::as_str), Some("7"));
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest() {
    let table = [
        (
            "mode = 'ordered'\n[claim]\nbacth = 5",
            "unknown key `claim.bacth` (outbox.toml, line 3); did you mean `claim.batch`?",
        ),
        ("[claims]\nbatch = 5", "unknown key `claims` (outbox.toml, line 1); did you mean `claim`?"),
        ("workers = 5", "unknown key `workers` (outbox.toml, line 1); did you mean `dispatch.workers`?"),
        (
            "[store.url]\nbatch = 5",
            "setting `store.url` (outbox.toml, line 1) has a value of another type, table; write text in quotes",
        ),
        ("xyzzy = 5", "unknown key `xyzzy` (outbox.toml, line 1); remove it"),
        (
            "claim = 5",
            "unknown key `claim` (outbox.toml, line 1); it is a section: write `[claim]`, and its settings below",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(complaint(text, &[]), expected);
    }
}

#[test]
fn unknown_variables_are_refused_with_the_nearest() {
    let table = [
        ("PILLARBOX_CLAIM__BACTH", "did you mean `PILLARBOX_CLAIM__BATCH`?"),
        ("PILLARBOX_CLAIM_BATCH", "did you mean `PILLARBOX_CLAIM__BATCH`?"),
        ("PILLARBOX_WAKE_UP_ENABLED", "did you mean `PILLARBOX_WAKE_UP__ENABLED`?"),
        ("PILLARBOX_claim__batch", "did you mean `PILLARBOX_CLAIM__BATCH`?"),
        ("PILLARBOX_XYZZY", "unset it: variables that begin with `PILLARBOX_` are settings of the outbox"),
    ];
    for (name, remedy) in table {
        assert_eq!(complaint("", &[(name, "5")]), format!("unknown variable `{name}`; {remedy}"));
    }
}

#[test]
fn a_name_of_another_outbox_leads_to_ours_and_says_what_differs() {
    let attempts = "did you mean `retry.max_attempts`? it counts the first call too: retries + 1";
    for (text, expected) in [
        ("[retry]\nmax_retries = 3", attempts),
        ("[retry]\nmaxRetries = 3", attempts),
        ("max-retries = 3", attempts),
        ("[polling]\nbatch-size = 3", "unknown key `polling` (outbox.toml, line 1)"),
        ("[claim]\nbatch_size = 3", "did you mean `claim.batch`?"),
        ("[handler.mailer.retry]\nmax_retries = 3", "did you mean `handler.mailer.retry.max_attempts`? it counts"),
    ] {
        let refused = complaint(text, &[]);
        assert!(refused.contains(expected), "{text}: {refused}");
    }
    let refused = complaint("", &[("PILLARBOX_RETRY__MAX_RETRIES", "3")]);
    assert!(
        refused.contains("did you mean `PILLARBOX_RETRY__MAX_ATTEMPTS`? it counts the first call too"),
        "{refused}"
    );
}

#[test]
fn all_mistakes_are_told_at_once_and_no_more_than_twenty() {
    let text = "mode = 'ordred'\n[claim]\nbatch = '5'\nbacth = 5\n[retry]\nmax_retries = 3";
    let refused = complaint(text, &[("PILLARBOX_CLAIM__BACTH", "5")]);
    let lines: Vec<&str> = refused.lines().collect();
    assert_eq!(lines.len(), 5, "{refused}");
    for (line, part) in lines.iter().zip(["line 1", "line 3", "line 4", "line 6", "PILLARBOX_CLAIM__BACTH"]) {
        assert!(line.contains(part), "{part}: {line}");
    }
    let ignored = complaint("mode = 'ordered'\n[dispatch]\nworkers = 4\nhot_capacity = 5", &[]);
    assert!(ignored.contains("line 3") && ignored.contains("line 4"), "{ignored}");
    let many: String = (0..30).map(|number| format!("key{number} = 1\n")).collect();
    let refused = complaint(&many, &[]);
    assert_eq!((refused.lines().count(), refused.lines().last()), (21, Some("and 10 more")));
}

#[test]
fn variables_of_others_are_left_alone() {
    let names = [
        "PILLARBOXES",
        "PILLARBOX_STORE",
        "PILLARBOX_TEST_POSTGRES_URL",
        "PILLARBOX_SERVICE_HOST",
        "PILLARBOX_PORT",
        "PILLARBOX_PORT_80_TCP_ADDR",
        "PILLARBOX_RELAY_SERVICE_PORT_HTTP",
        "PILLARBOX_RELAY_PORT",
    ];
    let settings = load("", &names.map(|name| (name, "x"))).expect("valid");
    assert_eq!(settings, Settings::default());
    for (prefix, name) in [
        // Two underscores mean a setting.
        ("PILLARBOX_", "PILLARBOX_STORE__PORT"),
        // What is the program's has its prefix.
        ("STOCK_", "STOCK_STORE"),
        ("STOCK_", "STOCK_TEST_URL"),
    ] {
        let refused = Loader::new().environment_of(prefix).variables([(name, "x")]).load().expect_err("refused");
        assert!(refused.to_string().contains(&format!("unknown variable `{name}`")), "{refused}");
    }
}

#[test]
fn a_second_outbox_has_a_prefix_of_its_own() {
    let variables = [("STOCK_CLAIM__BATCH", "7"), ("PILLARBOX_CLAIM__BATCH", "8"), ("PILLARBOX_NONSENSE", "8")];
    let settings = Loader::new().environment_of("STOCK_").variables(variables).load().expect("valid");
    assert_eq!(settings.claim.batch, 7);
}

#[test]
fn values_of_another_type_or_out_of_range_are_refused() {
    let table = [
        (
            "[claim]\nbatch = '5'",
            "setting `claim.batch` (outbox.toml, line 2) has a value of another type, string; write a whole number, such as 1000",
        ),
        (
            "[claim]\nbatch = -5",
            "setting `claim.batch` (outbox.toml, line 2) is -5; write a whole number, such as 1000",
        ),
        ("[claim]\nbatch = 0", "setting `claim.batch` (outbox.toml, line 2) is 0; set a number from 1 to 10000"),
        (
            "[claim]\nmin_interval = 5",
            "setting `claim.min_interval` (outbox.toml, line 2) has a value of another type, integer; write a number and a unit in quotes, such as \"200ms\", \"15s\" or \"7d\"",
        ),
        (
            "[purge]\ndone_after = 7",
            "setting `purge.done_after` (outbox.toml, line 2) has a value of another type, integer; write a number and a unit in quotes, such as \"200ms\", \"15s\" or \"7d\"",
        ),
        (
            "[claim]\nmin_interval = '5'",
            "setting `claim.min_interval` (outbox.toml, line 2) is \"5\", which is no duration; write a number and a unit, such as `200ms`, `15s` or `7d`",
        ),
        (
            "[purge]\ndone_after = 'forever'",
            "setting `purge.done_after` (outbox.toml, line 2) is \"forever\", which is no duration; write a number and a unit, such as `200ms`, `15s` or `7d`, or `never`",
        ),
        (
            "mode = 'multi'",
            "setting `mode` (outbox.toml, line 1) is `multi`; write one of `single_node`, `multi_node`, `partitioned`, `ordered`, `writer_only`",
        ),
        (
            "[store]\nmigrate = 'yes'",
            "setting `store.migrate` (outbox.toml, line 2) has a value of another type, string; write `true` or `false`",
        ),
        (
            "[dispatch]\nunroutable = 'park'",
            "setting `dispatch.unroutable` (outbox.toml, line 2) is \"park\"; write `dead`, or `park` and for how long, such as `park 30s`",
        ),
        (
            "[retry]\nbase = '2m'",
            "setting `retry.base` (outbox.toml, line 2) is 120s, longer than the cap of 60s; set a base no longer than the cap",
        ),
        (
            "[retry]\nmultiplier = 0.5",
            "setting `retry.multiplier` (outbox.toml, line 2) is 0.5; set a number from 1 to 1000",
        ),
        (
            "[retry]\nmultiplier = '2'",
            "setting `retry.multiplier` (outbox.toml, line 2) has a value of another type, string; write a number, such as 2.0",
        ),
        (
            "[retry]\nmultiplier = inf",
            "setting `retry.multiplier` (outbox.toml, line 2) is inf; write a number, such as 2.0",
        ),
        (
            "[retry]\npolicy = 'fixed'\ncap = '5s'",
            "setting `retry.cap` (outbox.toml, line 3) does not apply to `retry.policy = \"fixed\"`; remove it",
        ),
        (
            "[retry]\nstep = '200ms'",
            "setting `retry.step` (outbox.toml, line 2) does not apply to `retry.policy = \"exponential\"`; remove it",
        ),
        (
            "[retry]\npolicy = 'jittered'",
            "setting `retry.policy` (outbox.toml, line 2) is `jittered`; write one of `exponential`, `linear`, `fixed`",
        ),
        (
            "[retry]\njitter = '5'",
            "setting `retry.jitter` (outbox.toml, line 2) is \"5\", which is no duration; write a number and a unit, such as `200ms`, `15s` or `7d`",
        ),
        (
            "[retry]\nretry_on = 'MailError'",
            "setting `retry.retry_on` (outbox.toml, line 2) has a value of another type, string; write a list of texts, such as [\"MailError\", \"mailbox-full\"]",
        ),
        (
            "[retry]\nretry_on = ['MailError', 7]",
            "setting `retry.retry_on` (outbox.toml, line 2) has a value of another type, array; write a list of texts, such as [\"MailError\", \"mailbox-full\"]",
        ),
        (
            "[retry]\nnever_retry_on = ['mailbox full']",
            "setting `retry.never_retry_on` (outbox.toml, line 2) has `mailbox full`, which is no name of an error; write the name of a type, such as `MailError` or `mail::MailError`, or one that the handler gives its errors",
        ),
        (
            "[ownership]\nnode_name = 'a b'",
            "setting `ownership.node_name` (outbox.toml, line 2) contains ' '; use up to 100 letters, digits, dots, underscores or hyphens",
        ),
        (
            "[store]\ntable = 'a b'",
            "setting `store.table` (outbox.toml, line 2) contains ' ', which is not part of an identifier; name it like `outbox_event` or `billing.outbox_event`",
        ),
        (
            "[store]\ntable_prefix = '1_'",
            "setting `store.table_prefix` (outbox.toml, line 2) makes the table \"1_outbox_event\", which has a part that starts with '1'; set a few letters, digits and underscores, such as `shop_`; a schema belongs to the table",
        ),
        (
            "mode = 'partitioned'\n[retry]\nfailing_key = 'skip'",
            "setting `retry.failing_key` (outbox.toml, line 3) is `skip`; write one of `wait`, `skip_dead`, `continue`",
        ),
        ("[store]\npool_size = 0", "setting `store.pool_size` (outbox.toml, line 2) is zero; set at least 1"),
        (
            "mode = 'writer_only'\n[purge]\nall_after = '0s'",
            "setting `purge.all_after` (outbox.toml, line 3) is 0s; set a duration from 1ms to 36500d",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(complaint(text, &[]), expected, "{text}");
    }
    let error = Loader::new().set("store.table", "a b").load().expect_err("refused");
    assert_eq!(format!("{error:?}"), error.to_string(), "what a `main` that returns it shows");
    let variable = [("PILLARBOX_CLAIM__BATCH", "many")];
    let expected = "setting `claim.batch` (variable PILLARBOX_CLAIM__BATCH) has a value of another type, text; write a whole number, such as 1000";
    assert_eq!(complaint("", &variable), expected);
}

#[test]
fn settings_that_the_mode_ignores_are_refused_even_at_their_default() {
    let table = [
        ("single_node", "retry", "failing_head = 'retry_in_place'"),
        ("single_node", "retry", "failing_key = 'wait'"),
        ("single_node", "purge", "all_after = '1d'"),
        ("multi_node", "retry", "failing_head = 'dead_and_continue'"),
        ("multi_node", "ownership", "standby_interval = '1s'"),
        ("multi_node", "retry", "failing_key = 'wait'"),
        ("partitioned", "retry", "failing_head = 'retry_in_place'"),
        ("partitioned", "ownership", "standby_interval = '1s'"),
        ("partitioned", "dispatch", "hot_capacity = 1000"),
        ("partitioned", "purge", "all_after = '1d'"),
        ("ordered", "retry", "failing_key = 'continue'"),
        ("ordered", "dispatch", "workers = 1"),
        ("ordered", "dispatch", "hot_capacity = 1000"),
        ("writer_only", "dispatch", "workers = 4"),
        ("writer_only", "claim", "batch = 10"),
        ("writer_only", "settle", "delete_done = true"),
        ("writer_only", "retry", "failing_key = 'wait'"),
        ("writer_only", "purge", "done_after = '1d'"),
        ("writer_only", "metrics", "interval = '20s'"),
    ];
    for (mode, section, line) in table {
        let key = format!("{section}.{}", line.split(' ').next().unwrap_or_default());
        let refused = complaint(&format!("mode = '{mode}'\n[{section}]\n{line}"), &[]);
        let (problem, remedy) = refused.split_once("; ").expect("a remedy");
        let expected = format!("setting `{key}` (outbox.toml, line 3) does not apply to mode {mode}");
        assert!(problem.starts_with(&expected) && remedy.starts_with("remove it"), "{refused}");
    }
    let text = "mode = 'writer_only'\nenabled = false";
    assert_eq!(
        complaint(text, &[]),
        "setting `enabled` (outbox.toml, line 2) does not apply to mode writer_only; remove it"
    );
    let text = "mode = 'ordered'\n[retry]\nfailing_head = 'dead_and_continue'\nmax_attempts = 3";
    assert!(complaint(text, &[]).contains("`retry.max_attempts` (outbox.toml, line 4) means nothing while"));
    for line in ["interval = '5m'", "batch = 100"] {
        let refused = complaint(&format!("mode = 'writer_only'\n[purge]\n{line}"), &[]);
        assert!(refused.contains("does nothing in mode writer_only without `purge.all_after`"), "{refused}");
        load(&format!("mode = 'writer_only'\n[purge]\nall_after = '30d'\n{line}"), &[]).expect("it says how");
    }
    let text = "[dispatch]\nunroutable = 'dead'\nunroutable_dead_after = '1d'";
    assert!(complaint(text, &[]).contains("line 3) means nothing while `dispatch.unroutable` is `dead`"));
}

#[test]
fn settings_changed_in_code_are_refused_too_if_the_mode_ignores_them() {
    let mut settings = Settings::default();
    settings.mode = Mode::Ordered;
    settings.dispatch.workers = 9;
    let error = settings.check().expect_err("refused").to_string();
    assert_eq!(
        error,
        "setting `dispatch.workers` does not apply to mode ordered, which handles one event at a time, in the order of the table; remove it, or \
         choose mode partitioned, where events of different keys are handled at once and those of a key in order"
    );
}

#[test]
fn settings_that_the_database_ignores_are_refused() {
    let text = "[store]\nurl = 'shop.db'\ndurable_settles = false";
    assert_eq!(
        complaint(text, &[]),
        "setting `store.durable_settles` (outbox.toml, line 3) does not apply to SQLite; remove it"
    );
    let text = "[store]\nurl = 'postgres://shop@db/shop'\nbusy_timeout = '5s'";
    assert_eq!(
        complaint(text, &[]),
        "setting `store.busy_timeout` (outbox.toml, line 3) does not apply to PostgreSQL; remove it"
    );
    let text = "[store]\nurl = 'mariadb://shop@db/shop'\ndurable_settles = true";
    assert_eq!(
        complaint(text, &[]),
        "setting `store.durable_settles` (outbox.toml, line 3) does not apply to MySQL; remove it"
    );
}

#[test]
fn the_url_and_its_file_replace_each_other_and_do_not_stand_together() {
    let (directory, secret) = file("postgres://shop:geheim@db/shop\n");
    let from_file = format!("[store]\nurl_file = '{}'", secret.display());
    assert_eq!(load(&from_file, &[]).unwrap().database_url().unwrap().as_str(), "postgres://shop:geheim@db/shop");

    let settings = load(&from_file, &[("PILLARBOX_STORE__URL", "shop.db")]).expect("the environment wins");
    assert_eq!(
        (settings.store.url_file.as_deref(), settings.database_url().unwrap().as_str()),
        (None::<&Path>, "shop.db")
    );

    let both = "[store]\nurl = 'shop.db'\nurl_file = 'x'";
    assert_eq!(
        complaint(both, &[]),
        "setting `store.url_file` (outbox.toml, line 3) stands beside `store.url`; give one of them"
    );
    drop(directory);
    assert!(load(&from_file, &[]).unwrap().database_url().unwrap_err().to_string().contains("outbox.toml"));
    assert!(Settings::default().database_url().unwrap_err().to_string().contains("`store.url` is missing"));
}

#[test]
fn no_password_is_shown() {
    for url in ["postgres://shop:geheim@db/shop", "geheim", "mysqlx://geheim", "jdbc:postgresql://geheim"] {
        let mut settings = Settings::default();
        settings.store.url = Some(url.into());
        let refused = settings.check().map_or_else(|error| format!("{error} {error:?}"), |()| String::new());
        let json = serde_json::to_string(&settings).expect("JSON");
        let setup = format!("{:?} {:?}", settings.clone().outbox(), Loader::new().set("store.url", url));
        for text in [format!("{settings:?}"), refused, json, setup] {
            assert!(!text.contains("geheim"), "{text}");
        }
    }
    // Neither by what is written wrongly around it.
    for text in ["[store]\nurl = 'geheim", "[store]\nurl = geheim", "[store]\nurl = 'geheim'\nurl = 'geheim'"] {
        let complaint = complaint(text, &[]);
        assert!(complaint.contains("outbox.toml, line ") && !complaint.contains("geheim"), "{complaint}");
    }
}

#[test]
fn a_missing_file_is_an_error_unless_it_is_optional() {
    let missing = Path::new("no/such/outbox.toml");
    let error = Loader::new().file(missing).load().expect_err("missing").to_string();
    assert!(error.starts_with("cannot read the settings no/such/outbox.toml: "), "{error}");
    assert_eq!(Loader::new().optional_file(missing).load().expect("optional"), Settings::default());
}

/// The program's own defaults are no mistake of whoever wrote the file, whatever the mode.
#[test]
fn program_defaults_apply_only_where_the_setting_does() {
    let own = [("dispatch.workers", "16"), ("ownership.standby_interval", "500ms"), ("store.pool_size", "8")];
    let settings = |text: &str| {
        let (_directory, path) = file(text);
        let loader = Loader::new().file(path);
        own.iter().fold(loader, |loader, (key, value)| loader.unless_set(*key, *value)).load().expect(text)
    };
    let (defaults, half) = (Settings::default(), Duration::from_millis(500));
    for (mode, workers, standby) in [
        ("single_node", 16, half),
        ("multi_node", 16, defaults.ownership.standby_interval),
        ("partitioned", 16, defaults.ownership.standby_interval),
        ("ordered", defaults.dispatch.workers, half),
    ] {
        let settings = settings(&format!("mode = '{mode}'\n"));
        assert_eq!((settings.dispatch.workers, settings.ownership.standby_interval), (workers, standby), "{mode}");
    }
    let sqlite = settings("store.url = 'sqlite://shop.db'\n");
    assert_eq!(sqlite.store.pool_size, defaults.store.pool_size, "SQLite has no pool");
    assert_eq!(settings("[dispatch]\nworkers = 3\n").dispatch.workers, 3, "the file wins");
}

/// A setting that means nothing would be taken for one that is at work.
#[test]
fn settings_in_force_are_those_that_mean_something() {
    let keys = |mode: &str, url: &str| {
        let settings = Loader::new().set("mode", mode).set("store.url", url).load().expect("valid");
        settings.in_force().into_iter().map(|setting| setting.key).collect::<Vec<_>>()
    };
    let partitioned = keys("partitioned", "postgres://h/d");
    for (key, expected) in [
        ("ownership.standby_interval", false),
        ("store.synchronous", false),
        ("store.busy_timeout", false),
        ("store.pool_size", true),
        ("retry.step", false),
        ("retry.cap", true),
    ] {
        assert_eq!(partitioned.iter().any(|found| found == key), expected, "{key}: {partitioned:?}");
    }
    let sqlite = keys("single_node", "sqlite://d.db");
    for (key, expected) in
        [("ownership.standby_interval", true), ("store.busy_timeout", true), ("store.pool_size", false)]
    {
        assert_eq!(sqlite.iter().any(|found| found == key), expected, "{key}: {sqlite:?}");
    }
}
