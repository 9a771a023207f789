//! `docs/configuration.md` and the tree say the same: every key, and its default.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::collections::BTreeMap;

use pillarbox_config::Settings;
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

/// The rows of the document's tables: key, type, default.
fn rows() -> Vec<[&'static str; 3]> {
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
        // What another spelling than the tree's own means, `7d` for `7days`, only its reader knows.
        let written = match key.split_once('.') {
            Some((section, field)) => json!({ section: { field: value } }),
            None => json!({ key: value }),
        };
        let read = Settings::deserialize(written).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(read, Settings::default(), "{key}");
        assert!(!default.is_empty(), "{key} has a default");
    }
}
