use std::ffi::OsString;

use super::Given;
use crate::keys::{Keys, of_handler};
use crate::{Error, Origin};

/// The prefix of an outbox's variables, unless the program says otherwise.
pub(crate) const PREFIX: &str = "PILLARBOX_";

/// Reads the variables that begin with `prefix`; all others are somebody else's. An empty one counts as not set.
pub(crate) fn environment(
    keys: &Keys,
    prefix: &str,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<Given>, Error> {
    let (mut given, mut wrong) = (Vec::new(), Vec::new());
    for (variable, value) in variables {
        let Some(variable) = variable.to_str() else { continue };
        let Some(name) = variable.strip_prefix(prefix).filter(|name| !is_of_others(prefix, name)) else { continue };
        let key = name.to_ascii_lowercase().replace("__", ".");
        if keys.kind(&key).is_none() || variable_of(prefix, &key) != variable {
            wrong.push(unknown(keys, prefix, variable, &key));
            continue;
        }
        let key = match of_handler(&key) {
            // A handler may have two underscores in its name, and no dot that a variable could spell.
            Some((handler, setting)) => format!("handler.{}.{setting}", handler.replace('.', "__")),
            None => key,
        };
        let origin = Origin::Variable(variable.to_owned());
        let Some(text) = value.to_str() else {
            let (problem, remedy) = ("is not UTF-8".into(), "write it in UTF-8".into());
            wrong.push(Error::Invalid { key: key.into(), origin: Some(origin), problem, remedy });
            continue;
        };
        if !text.is_empty() {
            match Given::from_text(keys, key, text, origin) {
                Ok(one) => given.push(one),
                Err(error) => wrong.push(error),
            }
        }
    }
    Error::if_any(wrong)?;
    Ok(given)
}

/// True if a variable with the prefix is not for the outbox: it is for the program `pillarbox` or the tests, or it is one that
/// Kubernetes gives every container beside a service called `pillarbox` or `pillarbox-…`. What has two underscores was meant as a setting.
pub(crate) fn is_of_others(prefix: &str, name: &str) -> bool {
    let of_kubernetes = || {
        name.ends_with("SERVICE_HOST")
            || name.contains("SERVICE_PORT")
            || name == "PORT"
            || name.ends_with("_PORT")
            || ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| name.contains("PORT_") && name.contains(protocol))
    };
    let of_the_program = || prefix == PREFIX && (name == "STORE" || name.starts_with("TEST_"));
    of_the_program() || (!name.contains("__") && of_kubernetes())
}

fn variable_of(prefix: &str, key: &str) -> String {
    format!("{prefix}{}", key.replace('.', "__").to_ascii_uppercase())
}

fn unknown(keys: &Keys, prefix: &str, variable: &str, key: &str) -> Error {
    // A single underscore between section and setting is the commonest slip.
    let remedy = match keys.nearest(key).filter(|meant| !keys.is_section(&meant.key)) {
        Some(meant) => meant.question_for(&variable_of(prefix, &meant.key)),
        None => format!("unset it: variables that begin with `{prefix}` are settings of the outbox"),
    };
    Error::Unknown { what: "variable", name: variable.to_owned(), origin: None, remedy }
}
