//! The keys and the kind of value that each takes: known from the defaults, so that there is no second list.

use std::collections::BTreeMap;

use pillarbox_engine::run::notation::is_duration;
use serde_json::{Map, Value};

use crate::Settings;

/// The form in which a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number.
    Number,
    /// A number that may have a fraction.
    Decimal,
    Switch,
    /// A list of texts.
    List,
    Text,
}

/// All keys, such as `claim.batch`, with their values.
#[derive(Debug)]
pub(crate) struct Keys(BTreeMap<String, Value>);

impl Keys {
    /// All keys with their defaults.
    pub(crate) fn known() -> Self {
        Self::of(&Settings::default())
    }

    /// All keys with the values that they have in `settings`.
    pub(crate) fn of(settings: &Settings) -> Self {
        let mut keys = BTreeMap::new();
        // The tree holds nothing that JSON cannot; a test sees that no key is missing.
        flatten(String::new(), serde_json::to_value(settings).unwrap_or_default(), &mut keys);
        Self(keys)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn is_section(&self, name: &str) -> bool {
        self.sections().any(|section| section == name)
    }

    fn sections(&self) -> impl Iterator<Item = &str> {
        self.names().filter_map(|key| Some(key.split_once('.')?.0))
    }

    /// The kind of a key; `None` if there is no such key.
    pub(crate) fn kind(&self, key: &str) -> Option<Kind> {
        Some(match self.0.get(key)? {
            Value::Number(default) if default.is_f64() => Kind::Decimal,
            Value::Number(_) => Kind::Number,
            Value::Bool(_) => Kind::Switch,
            Value::Array(_) => Kind::List,
            _ => Kind::Text,
        })
    }

    /// Says how to write a value of the key.
    pub(crate) fn remedy(&self, key: &str) -> String {
        match self.0.get(key) {
            Some(Value::Number(default)) if default.is_f64() => format!("write a number, such as {default}"),
            Some(Value::Number(default)) => format!("write a whole number, such as {default}"),
            Some(Value::Bool(_)) => "write `true` or `false`".to_owned(),
            Some(Value::Array(_)) => "write a list of texts, such as [\"MailError\", \"mailbox-full\"]".to_owned(),
            Some(Value::String(default)) if is_duration(default) => {
                "write a number and a unit in quotes, such as \"200ms\", \"15s\" or \"7d\"".to_owned()
            }
            _ => "write text in quotes".to_owned(),
        }
    }

    /// The keys whose value differs from that in `others`.
    pub(crate) fn changed<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|(key, value)| others.0.get(*key) != Some(value)).map(|(key, _)| key.as_str())
    }

    /// The key or section that was most likely meant by `name`.
    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
        self.names()
            .chain(self.sections())
            .min_by_key(distance)
            .filter(|known| distance(known) <= 1 + known.len() / 5)
            .or_else(|| self.names().find(|known| known.ends_with(&format!(".{last}"))))
    }
}

fn flatten(path: String, value: Value, keys: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(path, value, keys);
            }
        }
        value => {
            keys.insert(path, value);
        }
    }
}

/// The tree that has these values and nothing else.
pub(crate) fn tree<'a>(values: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut root = Map::new();
    for (key, value) in values {
        match key.split_once('.') {
            None => {
                root.insert(key.to_owned(), value.clone());
            }
            Some((section, name)) => {
                if let Value::Object(fields) = root.entry(section).or_insert_with(|| Value::Object(Map::new())) {
                    fields.insert(name.to_owned(), value.clone());
                }
            }
        }
    }
    Value::Object(root)
}
