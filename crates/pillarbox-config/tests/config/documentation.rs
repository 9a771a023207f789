//! `docs/configuration.md` and the tree say the same: every key, and its default.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_config::{HandlerRetrySettings, HandlerSettings, RetryPolicyKind, Settings};
use pillarbox_engine::handlers::Rate;
use serde::Deserialize;
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../../docs/configuration.md");

/// All keys with their defaults.
fn keys() -> BTreeMap<String, Value> {
    let tree = serde_json::to_value(Settings::default()).expect("settings are JSON");
    let mut keys = BTreeMap::new();
    for (name, value) in tree.as_object().expect("a tree") {
        match value {
            Value::Object(section) => {
                keys.extend(section.iter().map(|(field, value)| (format!("{name}.{field}"), value.clone())));
            }
            value => drop(keys.insert(name.clone(), value.clone())),
        }
    }
    keys
}

/// The rows of the document's tables that are not of handlers: key, type, default.
fn rows() -> Vec<[&'static str; 3]> {
    all_rows().into_iter().filter(|[key, ..]| !key.starts_with(OF_HANDLER)).collect()
}

/// The beginning of the keys of a handler.
const OF_HANDLER: &str = "handler.NAME.";

/// Every setting of a handler. A field that is added is missing here.
fn handler_settings() -> HandlerSettings {
    HandlerSettings {
        timeout: Some(None),
        concurrency: Some(1),
        rate: Some(Rate::per_second(1)),
        burst: Some(1),
        retry: HandlerRetrySettings {
            max_attempts: Some(1),
            policy: Some(RetryPolicyKind::Fixed),
            base: Some(Duration::ZERO),
            cap: Some(Duration::ZERO),
            multiplier: Some(1.0),
            step: Some(Duration::ZERO),
            jitter: Some(Duration::ZERO),
            retry_on: Some(Vec::new()),
            never_retry_on: Some(Vec::new()),
        },
    }
}

#[test]
fn the_document_lists_every_key_of_a_handler_as_those_of_all() {
    let all: BTreeMap<_, _> = all_rows().into_iter().map(|[key, kind, default]| (key, (kind, default))).collect();
    let documented: Vec<_> = all.keys().filter_map(|key| key.strip_prefix(OF_HANDLER)).collect();
    let mut expected = Vec::new();
    for (name, value) in serde_json::to_value(handler_settings()).expect("JSON").as_object().expect("a tree") {
        match value {
            Value::Object(section) => expected.extend(section.keys().map(|field| format!("{name}.{field}"))),
            _ => expected.push(name.clone()),
        }
    }
    expected.sort_unstable();
    assert_eq!(documented, expected);
    for key in documented {
        let (kind, default) = all[&*format!("{OF_HANDLER}{key}")];
        assert_eq!(default, "", "{key}: what is not set is as the outbox has it");
        if key.starts_with("retry.") {
            assert_eq!(kind, all[key].0, "{key}");
        }
    }
    assert_eq!(all["handler.NAME.timeout"].0, all["dispatch.handler_timeout"].0);
}

fn all_rows() -> Vec<[&'static str; 3]> {
    let cells = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let key = cells.next()?.trim_end_matches('`');
        Some([key, cells.next()?, cells.next()?.trim_matches('`')])
    };
    DOCUMENT.lines().filter_map(cells).collect()
}

#[test]
fn the_document_lists_every_key_once_and_no_other() {
    let mut documented: Vec<_> = rows().into_iter().map(|[key, ..]| key.to_owned()).collect();
    documented.sort_unstable();
    assert_eq!(documented, keys().into_keys().collect::<Vec<_>>());
}

#[test]
fn the_document_tells_the_defaults_and_their_types() {
    let keys = keys();
    assert!(keys.len() > 20, "{keys:?}");
    for [key, kind, default] in rows() {
        let value = match &keys[key] {
            Value::Null => {
                assert_eq!((kind, default), ("text", ""), "{key}");
                continue;
            }
            Value::Number(_) => {
                assert_eq!(kind, "number", "{key}");
                serde_json::from_str(default).unwrap_or_else(|error| panic!("{key}: {error}"))
            }
            Value::Array(_) => {
                assert_eq!(kind, "list of texts", "{key}");
                serde_json::from_str(default).unwrap_or_else(|error| panic!("{key}: {error}"))
            }
            Value::Bool(_) => {
                assert_eq!(kind, "`true` or `false`", "{key}");
                json!(default == "true")
            }
            _ => json!(default),
        };
        // What another spelling than the tree's own means, `60s` for `1m`, only its reader knows.
        let written = match key.split_once('.') {
            Some((section, field)) => json!({ section: { field: value } }),
            None => json!({ key: value }),
        };
        let read = Settings::deserialize(written).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(read, Settings::default(), "{key}");
        assert!(!default.is_empty(), "{key} has a default");
    }
}
