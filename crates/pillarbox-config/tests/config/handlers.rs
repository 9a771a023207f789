//! Sections of handlers: where they are read from, what they replace, and what is said about those that cannot be used.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use pillarbox_config::{Error, HandlerSettings, Loader, RetryPolicyKind, Settings};
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, HandlerError};
use pillarbox_core::retry::Retry;
use pillarbox_core::store::Admin;
use pillarbox_engine::handlers::{Rate, Registration, on_type};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use tokio::sync::mpsc;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Settings, Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("outbox.toml");
    std::fs::write(&path, text).expect("a file");
    Loader::new().file(path).environment().variables(variables.iter().copied()).load()
}

/// The text of an error, without the directory of the file.
fn text_of(error: &Error) -> String {
    let text = error.to_string();
    match (text.find('('), text.find("outbox.toml")) {
        (Some(open), Some(file)) if open < file => format!("{}{}", &text[..=open], &text[file..]),
        _ => text,
    }
}

fn complaint(text: &str, variables: &[(&str, &str)]) -> String {
    text_of(&load(text, variables).expect_err("refused"))
}

async fn idle(_: Delivery) {}

fn named(name: &str) -> Registration {
    on_type("order.placed", idle).named(name)
}

async fn start(settings: Settings, handlers: impl IntoIterator<Item = Registration>) -> Result<Outbox, Error> {
    settings.outbox().store(MemoryStore::new()).handlers(handlers).start().await
}

#[test]
fn a_section_is_read_from_a_file_and_from_the_environment() {
    let text = "[handler.mailer]\ntimeout = '30s'\nconcurrency = 4\nrate = '100/s'\nburst = 20\n\
                [handler.mailer.retry]\npolicy = 'linear'\nbase = '1s'\nstep = '5s'\ncap = '10m'\njitter = '500ms'\n\
                max_attempts = 20\nnever_retry_on = ['InvalidAddress']\n";
    let variables = [
        ("PILLARBOX_HANDLER__MAILER__TIMEOUT", "30s"),
        ("PILLARBOX_HANDLER__MAILER__CONCURRENCY", "4"),
        ("PILLARBOX_HANDLER__MAILER__RATE", "100/s"),
        ("PILLARBOX_HANDLER__MAILER__BURST", "20"),
        ("PILLARBOX_HANDLER__MAILER__RETRY__POLICY", "linear"),
        ("PILLARBOX_HANDLER__MAILER__RETRY__BASE", "1s"),
        ("PILLARBOX_HANDLER__MAILER__RETRY__STEP", "5s"),
        ("PILLARBOX_HANDLER__MAILER__RETRY__CAP", "10m"),
        ("PILLARBOX_HANDLER__MAILER__RETRY__JITTER", "500ms"),
        ("PILLARBOX_HANDLER__MAILER__RETRY__MAX_ATTEMPTS", "20"),
        ("PILLARBOX_HANDLER__MAILER__RETRY__NEVER_RETRY_ON", "InvalidAddress"),
    ];
    let (of_file, of_variables) = (load(text, &[]).expect("valid"), load("", &variables).expect("valid"));
    assert!(of_file.is_same(&of_variables), "{of_file:?}\n{of_variables:?}");
    let section = &of_file.handler["mailer"];
    assert_eq!(section.timeout, Some(Some(Duration::from_secs(30))));
    assert_eq!((section.concurrency, section.rate, section.burst), (Some(4), Some(Rate::per_second(100)), Some(20)));
    assert_eq!((section.retry.policy, section.retry.max_attempts), (Some(RetryPolicyKind::Linear), Some(20)));
    let forever = load("[handler.mailer]\ntimeout = 'never'\n", &[]).expect("valid");
    assert_eq!(forever.handler["mailer"].timeout, Some(None));
}

#[test]
fn a_variable_wins_over_the_section_whose_name_it_spells() {
    let text = "[handler.'order-mailer.v2']\nconcurrency = 2\nrate = '5/s'\n";
    let variables = [("PILLARBOX_HANDLER__ORDER_MAILER_V2__CONCURRENCY", "7")];
    let settings = load(text, &variables).expect("valid");
    assert_eq!(settings.handler.keys().collect::<Vec<_>>(), ["order-mailer.v2"]);
    let section = &settings.handler["order-mailer.v2"];
    assert_eq!((section.concurrency, section.rate), (Some(7), Some(Rate::per_second(5))));
    let alike = "[handler.a-b]\nconcurrency = 2\n[handler.'a.b']\nconcurrency = 2\n";
    assert_eq!(
        complaint(alike, &[("PILLARBOX_HANDLER__A_B__RATE", "5/s")]),
        "setting `handler.a_b.rate` (variable PILLARBOX_HANDLER__A_B__RATE) could mean `a-b` or `a.b`; \
         set it in a file, by the handler's name"
    );
}

/// Kubernetes gives a container variables with such names, but none with two underscores.
#[test]
fn a_handler_may_have_the_name_of_a_service() {
    let settings = load("", &[("PILLARBOX_HANDLER__SERVICE_PORT__CONCURRENCY", "3")]).expect("valid");
    assert_eq!(settings.handler["service_port"].concurrency, Some(3));
}

#[test]
fn invalid_handler_settings_are_refused_with_their_place() {
    let table = [
        (
            "[handler.mailer]\nconcurency = 4",
            "unknown key `handler.mailer.concurency` (outbox.toml, line 2); did you mean `handler.mailer.concurrency`?",
        ),
        (
            "[handler.mailer]\nmax_attempts = 4",
            "unknown key `handler.mailer.max_attempts` (outbox.toml, line 2); did you mean `handler.mailer.retry.max_attempts`?",
        ),
        (
            "[handler]\nconcurrency = 4",
            "unknown key `handler.concurrency` (outbox.toml, line 2); did you mean `handler.NAME.concurrency`?",
        ),
        (
            "[handler.mailer.retry]\nfailing_key = 'wait'",
            "unknown key `handler.mailer.retry.failing_key` (outbox.toml, line 2); did you mean `retry.failing_key`?",
        ),
        (
            "[handler]\nmailer = 4",
            "unknown key `handler.mailer` (outbox.toml, line 2); it is a section: write `[handler.mailer]`, and its settings below",
        ),
        (
            "[handler.mailer]\nconcurrency = '4'",
            "setting `handler.mailer.concurrency` (outbox.toml, line 2) has a value of another type, string; write a whole number, such as 4",
        ),
        (
            "[handler.mailer]\nrate = 100",
            "setting `handler.mailer.rate` (outbox.toml, line 2) has a value of another type, integer; write the events, a slash and a time in quotes, such as \"100/s\"",
        ),
        (
            "[handler.mailer]\nrate = 'often'",
            "setting `handler.mailer.rate` (outbox.toml, line 2) is \"often\", which is no rate; write the events, a slash and a time, such as `100/s`, `300/min` or `1/5s`",
        ),
        (
            "[handler.mailer]\nrate = '0/s'",
            "setting `handler.mailer.rate` (outbox.toml, line 2) is 0; set a number from 1 to 1000000",
        ),
        (
            "[handler.mailer]\nrate = '1/s'\nburst = 0",
            "setting `handler.mailer.burst` (outbox.toml, line 3) is 0; set a number from 1 to 1000000",
        ),
        (
            "[handler.mailer]\nburst = 5",
            "setting `handler.mailer.burst` (outbox.toml, line 2) stands without `rate`; set the rate beside it, such as `100/s`",
        ),
        (
            "[handler.mailer]\nconcurrency = 0",
            "setting `handler.mailer.concurrency` (outbox.toml, line 2) is zero; set at least 1",
        ),
        (
            "[handler.mailer]\ntimeout = '0s'",
            "setting `handler.mailer.timeout` (outbox.toml, line 2) is 0s; set a duration from 1ms to 36500d, or no limit",
        ),
        (
            "[handler.mailer.retry]\nbase = '2m'",
            "setting `handler.mailer.retry.base` (outbox.toml, line 2) is 120s, longer than the cap of 60s; set a base no longer than the cap",
        ),
        (
            "[handler.mailer.retry]\nstep = '2s'",
            "setting `handler.mailer.retry.step` (outbox.toml, line 2) does not apply to `retry.policy = \"exponential\"`; remove it",
        ),
        (
            "[handler.mailer.retry]\npolicy = 'fixed'\ncap = '2s'",
            "setting `handler.mailer.retry.cap` (outbox.toml, line 3) does not apply to `handler.mailer.retry.policy = \"fixed\"`; remove it",
        ),
        (
            "mode = 'ordered'\n[handler.mailer]\nconcurrency = 2",
            "setting `handler.mailer.concurrency` (outbox.toml, line 3) does not apply to mode ordered; remove it",
        ),
        (
            "mode = 'writer_only'\n[handler.mailer]\nrate = '2/s'",
            "setting `handler.mailer.rate` (outbox.toml, line 3) does not apply to mode writer_only; remove it",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(complaint(text, &[]), expected);
    }
    assert_eq!(
        complaint("", &[("PILLARBOX_HANDLER__MAILER__CONCURENCY", "4")]),
        "unknown variable `PILLARBOX_HANDLER__MAILER__CONCURENCY`; did you mean `PILLARBOX_HANDLER__MAILER__CONCURRENCY`?"
    );
}

#[tokio::test]
async fn a_section_for_a_handler_that_is_not_registered_is_refused_with_the_names_that_are() {
    let table = [
        (
            vec![named("mailer"), named("ledger")],
            "setting `handler.mailr` (outbox.toml, line 2) is for a handler that is not registered; \
             did you mean `mailer`? The handlers with names are `ledger`, `mailer`",
        ),
        (
            vec![named("ledger")],
            "setting `handler.mailr` (outbox.toml, line 2) is for a handler that is not registered; \
             the handlers with names are `ledger`",
        ),
        (
            vec![on_type("order.placed", idle)],
            "setting `handler.mailr` (outbox.toml, line 2) is for a handler that is not registered; \
             no handler of this program has a name; give one a name, or remove the section",
        ),
    ];
    for (handlers, expected) in table {
        let settings = load("[handler.mailr]\nconcurrency = 2\n", &[]).expect("valid");
        let error = start(settings, handlers).await.expect_err("refused");
        assert_eq!(text_of(&error), expected);
    }
    // The spelling of variables is for variables alone.
    let settings = load("[handler.order_mailer]\nconcurrency = 2\n", &[]).expect("valid");
    let error = start(settings, [named("order-mailer")]).await.expect_err("refused");
    assert!(error.to_string().contains("did you mean `order-mailer`?"), "{error}");
}

#[tokio::test]
async fn limits_of_a_section_replace_those_in_code_one_by_one() {
    let text = "[handler.mailer]\nrate = '7/s'\nburst = 3\n";
    let settings = load(text, &[("PILLARBOX_HANDLER__ORDER_LEDGER__CONCURRENCY", "9")]).expect("valid");
    let mailer = named("mailer").concurrency(2).rate(Rate::per_minute(1));
    let ledger = named("order-ledger").concurrency(1);
    let outbox = start(settings, [mailer, ledger, named("third").concurrency(5)]).await.expect("started");
    let limits = outbox.limits();
    let seen: Vec<_> = limits.iter().map(|one| (one.handler.as_deref(), one.concurrency, one.rate)).collect();
    let expected = [
        (Some("mailer"), Some(2), Some(Rate::per_second(7).burst(3))),
        (Some("order-ledger"), Some(9), None),
        (Some("third"), Some(5), None),
    ];
    assert_eq!(seen, expected);
    outbox.shutdown().await;
}

/// Delivers one event to a failing handler with the name `mailer` and rules in code: two attempts, 1 ms apart, and none after an error
/// that is named `full`. Returns how often it was called until the event was DEAD.
async fn attempts(text: &str, error: &'static str) -> usize {
    let store = MemoryStore::new();
    let (told, mut calls) = mpsc::unbounded_channel();
    let handler = move |_: Delivery| {
        let sent = told.send(());
        async move {
            sent.expect("the test listens");
            Err::<(), _>(HandlerError::retryable(error).named(error))
        }
    };
    let rules = Retry::fixed(Duration::from_millis(1)).max_attempts(2).never_retry_on_named("full");
    let mailer = on_type("order.placed", handler).named("mailer").retry(rules);
    let settings = load(text, &[]).expect("valid");
    let outbox = settings.outbox().store(store.clone()).handler(mailer).start().await.expect("started");
    let mut tx = outbox.begin(&store).await.expect("begun");
    let event = Envelope::builder("order.placed").payload_json("{}").build().expect("valid");
    let id = outbox.write(&mut tx, event).await.expect("written").id().expect("an id").clone();
    tx.commit().await.expect("committed");
    timeout(SOON, outbox.delivered(id)).await.expect("soon").expect("an end");
    outbox.shutdown().await;
    assert_eq!(store.counts().await.expect("counted").dead, 1);
    calls.close();
    let mut count = 0;
    while calls.recv().await.is_some() {
        count += 1;
    }
    count
}

#[tokio::test]
async fn retry_rules_of_a_section_replace_those_in_code_one_by_one() {
    let table = [
        ("", "busy", 2),
        ("", "full", 1),
        ("[retry]\nmax_attempts = 4\nnever_retry_on = ['busy']", "busy", 2),
        ("[handler.mailer.retry]\nmax_attempts = 4", "busy", 4),
        ("[handler.mailer.retry]\nmax_attempts = 4", "full", 1),
        ("[handler.mailer.retry]\nnever_retry_on = ['busy']", "busy", 1),
        ("[handler.mailer.retry]\nnever_retry_on = []", "full", 2),
        ("[retry]\nnever_retry_on = ['busy']\n[handler.mailer.retry]\nretry_on = ['full']", "full", 2),
        ("[retry]\nbase = '2ms'\n[handler.mailer.retry]\npolicy = 'fixed'\nmax_attempts = 3", "busy", 3),
    ];
    for (text, error, expected) in table {
        assert_eq!(attempts(text, error).await, expected, "{text}, {error}");
    }
}

#[test]
fn sections_made_in_code_are_checked_as_others() {
    let mut settings = Settings::default();
    settings
        .handler
        .insert("mailer".to_owned(), HandlerSettings { concurrency: Some(0), ..HandlerSettings::default() });
    let error = settings.check().expect_err("refused").to_string();
    assert_eq!(error, "setting `handler.mailer.concurrency` is zero; set at least 1");
}
