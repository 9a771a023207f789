//! Reading settings from where they are written, one by one.

mod environment;
mod file;

pub(crate) use environment::{PREFIX, environment, is_of_others};
pub(crate) use file::{file, table};

use serde::Deserialize as _;
use serde_json::{Number, Value};

use crate::keys::{Keys, Kind, tree};
use crate::{Error, Origin, Settings};

/// One setting as it was given.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

impl Given {
    /// A setting whose value is written as text, whatever its kind. The key is a known one.
    pub(crate) fn from_text(keys: &Keys, key: String, text: &str, origin: Origin) -> Result<Self, Error> {
        let value = match keys.kind(&key) {
            Some(Kind::Number) => text.parse::<u64>().ok().map(Value::from),
            Some(Kind::Decimal) => text.parse::<f64>().ok().and_then(decimal),
            Some(Kind::Switch) => text.parse::<bool>().ok().map(Value::from),
            Some(Kind::List) => Some(text.split(',').map(str::trim).collect()),
            _ => Some(Value::from(text)),
        };
        match value {
            Some(value) => Self { key, value, origin }.checked(),
            None => {
                // Not shown: what was meant for another variable may be a secret.
                let (problem, remedy) = ("has a value of another type, text".into(), keys.remedy(&key).into());
                Err(Error::Invalid { key: key.into(), origin: Some(origin), problem, remedy })
            }
        }
    }

    /// Tries the value alone, while it is known where it was given.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        match Settings::deserialize(tree([(&*self.key, &self.value)])) {
            Ok(_) => Ok(self),
            Err(error) => {
                let (problem, remedy) = explain(&error.to_string());
                let (key, origin) = (self.key.into(), Some(self.origin));
                Err(Error::Invalid { key, origin, problem: problem.into(), remedy: remedy.into() })
            }
        }
    }
}

/// A number that may have a fraction; `None` for one without an end, such as `inf`.
fn decimal(number: f64) -> Option<Value> {
    Number::from_f64(number).map(Value::Number)
}

/// Splits the message of a value's deserializer into the problem and the remedy.
fn explain(message: &str) -> (String, String) {
    let of_a_choice = || {
        let (given, expected) = message.strip_prefix("unknown variant ")?.split_once(", expected ")?;
        Some((format!("is {given}"), format!("write {expected}")))
    };
    of_a_choice()
        .or_else(|| message.rsplit_once("; ").map(|(problem, remedy)| (problem.to_owned(), remedy.to_owned())))
        .unwrap_or_else(|| ("cannot be used".to_owned(), message.to_owned()))
}
