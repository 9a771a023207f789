use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::{Given, decimal};
use crate::keys::{Keys, Kind};
use crate::{Error, Origin};

/// Reads a TOML file. If it is missing and need not be there, nothing is given.
pub(crate) fn file(keys: &Keys, path: &Path, required: bool) -> Result<Vec<Given>, Error> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !required => return Ok(Vec::new()),
        read => read.map_err(|source| Error::File { what: "the settings", path: path.to_owned(), source })?,
    };
    let reader = Reader { keys, path, text: &text };
    // Of the parser's error only the message is used: its display quotes the line, which may hold a password.
    let root = DeTable::parse(&text).map_err(|error| Error::Syntax {
        path: path.to_owned(),
        line: reader.line(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    reader.all(root.get_ref())
}

/// Reads a table of a TOML file that has other things in it as well; `text` is the whole file.
pub(crate) fn table(keys: &Keys, path: &Path, text: &str, table: &DeTable<'_>) -> Result<Vec<Given>, Error> {
    Reader { keys, path, text }.all(table)
}

struct Reader<'a> {
    keys: &'a Keys,
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }

    fn all(&self, root: &DeTable<'_>) -> Result<Vec<Given>, Error> {
        let (mut given, mut wrong) = (Vec::new(), Vec::new());
        self.section("", root, &mut given, &mut wrong);
        // A table has its keys in the order of the alphabet.
        wrong.sort_by_key(Error::line);
        Error::if_any(wrong)?;
        Ok(given)
    }

    fn section(&self, section: &str, table: &DeTable<'_>, given: &mut Vec<Given>, wrong: &mut Vec<Error>) {
        for (name, value) in table {
            let key = match section {
                "" => name.get_ref().to_string(),
                section => format!("{section}.{}", name.get_ref()),
            };
            let origin = Origin::File { path: self.path.to_owned(), line: self.line(name.span().start) };
            match (value.get_ref(), self.keys.kind(&key)) {
                (DeValue::Table(fields), None) if section == "handler" || self.keys.is_section(&key) => {
                    self.section(&key, fields, given, wrong);
                }
                (value, Some(kind)) => match self.setting(key, kind, value, origin) {
                    Ok(one) => given.push(one),
                    Err(error) => wrong.push(error),
                },
                (_, None) => wrong.push(self.unknown(key, origin)),
            }
        }
    }

    fn setting(&self, key: String, kind: Kind, value: &DeValue<'_>, origin: Origin) -> Result<Given, Error> {
        let read = match (kind, value) {
            (Kind::Number, DeValue::Integer(number)) => {
                u64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::from)
            }
            (Kind::Decimal, DeValue::Integer(number)) => {
                u32::from_str_radix(number.as_str(), number.radix()).ok().and_then(|number| decimal(number.into()))
            }
            (Kind::Decimal, DeValue::Float(number)) => number.as_str().parse().ok().and_then(decimal),
            (Kind::Switch, DeValue::Boolean(on)) => Some(Value::from(*on)),
            (Kind::Text, DeValue::String(text)) => Some(Value::from(&**text)),
            (Kind::List, DeValue::Array(texts)) => texts
                .iter()
                .map(|text| text.get_ref().as_str().map(Value::from))
                .collect::<Option<Vec<_>>>()
                .map(Value::from),
            _ => None,
        };
        if let Some(value) = read {
            return Given { key, value, origin }.checked();
        }
        let problem = match value {
            DeValue::Integer(number) if matches!(kind, Kind::Number | Kind::Decimal) => {
                format!("is {}", number.as_str())
            }
            DeValue::Float(number) if kind == Kind::Decimal => format!("is {}", number.as_str()),
            value => format!("has a value of another type, {}", value.type_str()),
        };
        let remedy = self.keys.remedy(&key).into();
        Err(Error::Invalid { key: key.into(), origin: Some(origin), problem: problem.into(), remedy })
    }

    fn unknown(&self, name: String, origin: Origin) -> Error {
        let remedy = if self.keys.is_section(&name) {
            format!("it is a section: write `[{name}]`, and its settings below")
        } else {
            match self.keys.nearest(&name) {
                Some(meant) => meant.question(),
                None => "remove it".to_owned(),
            }
        };
        Error::Unknown { what: "key", name, origin: Some(origin), remedy }
    }
}
