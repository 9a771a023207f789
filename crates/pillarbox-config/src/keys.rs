//! The keys and the kind of value that each takes: known from the defaults, so that there is no second list.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pillarbox_engine::run::notation::is_duration;
use serde_json::{Map, Value};

use crate::foreign::meant_by;
use crate::{HandlerSettings, Settings};

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

/// The keys of a section `handler.NAME`, such as `retry.base`, each with a value that shows how it is written.
static OF_HANDLER: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let mut keys = BTreeMap::new();
    flatten(String::new(), serde_json::to_value(HandlerSettings::example()).unwrap_or_default(), &mut keys);
    keys
});

/// Splits the key of a handler's setting: `handler.mailer.retry.base` into `mailer` and `retry.base`.
pub(crate) fn of_handler(key: &str) -> Option<(&str, &'static str)> {
    let rest = key.strip_prefix("handler.")?;
    let split = |setting: &'static String| Some((rest.strip_suffix(&**setting)?.strip_suffix('.')?, &**setting));
    // A name may have dots, so the longest setting is the one that is meant.
    OF_HANDLER.keys().filter_map(split).filter(|(name, _)| !name.is_empty()).max_by_key(|(_, setting)| setting.len())
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
        let of_handler =
            |rest: &str| (!rest.contains('.') && !OF_HANDLER.contains_key(rest)) || rest.ends_with(".retry");
        name.strip_prefix("handler.").is_some_and(of_handler) || self.sections().any(|section| section == name)
    }

    fn sections(&self) -> impl Iterator<Item = &str> {
        self.names().filter_map(|key| Some(key.split_once('.')?.0)).chain(["handler"])
    }

    /// The default of a key, or a value that shows how it is written.
    fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).or_else(|| OF_HANDLER.get(of_handler(key)?.1))
    }

    /// The kind of a key; `None` if there is no such key.
    pub(crate) fn kind(&self, key: &str) -> Option<Kind> {
        Some(match self.value(key)? {
            Value::Number(default) if default.is_f64() => Kind::Decimal,
            Value::Number(_) => Kind::Number,
            Value::Bool(_) => Kind::Switch,
            Value::Array(_) => Kind::List,
            _ => Kind::Text,
        })
    }

    /// Says how to write a value of the key.
    pub(crate) fn remedy(&self, key: &str) -> String {
        match self.value(key) {
            Some(Value::Number(default)) if default.is_f64() => format!("write a number, such as {default}"),
            Some(Value::Number(default)) => format!("write a whole number, such as {default}"),
            Some(Value::Bool(_)) => "write `true` or `false`".to_owned(),
            Some(Value::Array(_)) => "write a list of texts, such as [\"MailError\", \"mailbox-full\"]".to_owned(),
            Some(Value::String(default)) if is_duration(default) => {
                "write a number and a unit in quotes, such as \"200ms\", \"15s\" or \"7d\"".to_owned()
            }
            _ if of_handler(key).is_some_and(|(_, setting)| setting == "rate") => {
                "write the events, a slash and a time in quotes, such as \"100/s\"".to_owned()
            }
            _ => "write text in quotes".to_owned(),
        }
    }

    /// The keys whose value differs from that in `others`.
    pub(crate) fn changed<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|(key, value)| others.0.get(*key) != Some(value)).map(|(key, _)| key.as_str())
    }

    /// The key or section that was most likely meant by `name`.
    pub(crate) fn nearest(&self, name: &str) -> Option<Meant> {
        let of_another_outbox = self.of_another_outbox(name);
        of_another_outbox.or_else(|| Some(Meant { key: self.nearest_in_spelling(name)?, note: "" }))
    }

    /// The key that another outbox calls as the last part of `name`.
    fn of_another_outbox(&self, name: &str) -> Option<Meant> {
        let (section, last) = name.rsplit_once('.').unwrap_or(("", name));
        meant_by(last).find_map(|(key, note)| {
            let key = match section.strip_prefix("handler") {
                None => key.to_owned(),
                Some(handler) => {
                    let handler = handler.strip_suffix(".retry").unwrap_or(handler);
                    let setting = match key {
                        "dispatch.workers" => "concurrency",
                        "dispatch.handler_timeout" => "timeout",
                        key => key,
                    };
                    format!("handler{}.{setting}", if handler.is_empty() { ".NAME" } else { handler })
                }
            };
            self.kind(&key).is_some().then_some(Meant { key, note })
        })
    }

    fn nearest_in_spelling(&self, name: &str) -> Option<String> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
        let known = self.names().chain(self.sections()).min_by_key(distance);
        known
            .filter(|known| is_close(distance(known), known))
            .map(str::to_owned)
            .or_else(|| nearest_of_handler(name))
            .or_else(|| self.names().find(|known| known.ends_with(&format!(".{last}"))).map(str::to_owned))
    }
}

/// A key that was most likely meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meant {
    pub(crate) key: String,
    /// A difference in meaning to the name that was given, if there is one.
    pub(crate) note: &'static str,
}

impl Meant {
    /// Asks if that was meant.
    pub(crate) fn question(&self) -> String {
        self.question_for(&self.key)
    }

    /// As [`question`](Self::question), where the key is written in another form.
    pub(crate) fn question_for(&self, key: &str) -> String {
        let note = if self.note.is_empty() { String::new() } else { format!(" {}", self.note) };
        format!("did you mean `{key}`?{note}")
    }
}

fn is_close(distance: usize, known: &str) -> bool {
    distance <= 1 + known.len() / 5
}

/// The key of a handler's section that was most likely meant by `name`.
fn nearest_of_handler(name: &str) -> Option<String> {
    let rest = name.strip_prefix("handler.")?;
    if OF_HANDLER.contains_key(rest) {
        return Some(format!("handler.NAME.{rest}"));
    }
    let splits = rest.match_indices('.').map(|(at, _)| rest.split_at(at));
    let candidates = splits.flat_map(|(handler, given)| {
        OF_HANDLER.keys().filter_map(move |known| {
            let distance = strsim::damerau_levenshtein(&given[1..], known);
            let is_last_part = known.ends_with(given);
            (is_close(distance, known) || is_last_part).then(|| (distance, format!("handler.{handler}.{known}")))
        })
    });
    candidates.min().map(|(_, key)| key)
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
        let (sections, field) = path(key);
        if let Some(fields) = section(&mut root, &sections) {
            fields.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(root)
}

/// The fields of a section, which is made if it is not there; `None` if a value stands in its place.
fn section<'a>(fields: &'a mut Map<String, Value>, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let Some((first, rest)) = path.split_first() else { return Some(fields) };
    match fields.entry(*first).or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(inner) => section(inner, rest),
        _ => None,
    }
}

/// The sections of a key, from the outermost on, and its name in the last of them.
fn path(key: &str) -> (Vec<&str>, &str) {
    let (mut sections, rest) = match of_handler(key) {
        Some((handler, setting)) => (vec!["handler", handler], setting),
        None => (Vec::new(), key),
    };
    let (section, field) = rest.rsplit_once('.').map_or((None, rest), |(section, field)| (Some(section), field));
    sections.extend(section);
    (sections, field)
}
