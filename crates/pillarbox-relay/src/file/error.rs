use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pillarbox_config::{lines, meant_by};
use serde::Deserialize;
use serde_path_to_error::Segment;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A configuration file that cannot be used. It quotes no value that may be a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// Why. The text quotes it, so it is no cause besides: hence the `r#`.
        r#source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{}, line {line}: {section}{problem}", path.display())]
    Wrong {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// In which section, with a colon and a space; empty for the file as a whole.
        section: String,
        /// The problem, and its remedy.
        problem: String,
    },
    /// A setting of a source.
    #[error("source `{source_name}`: {error}")]
    Source {
        /// The name of the source.
        source_name: String,
        /// The problem.
        error: Box<pillarbox_config::Error>,
    },
    /// Several things in it are wrong, each in a line of its own.
    #[error("{}", lines(.0).join("\n"))]
    Several(Vec<FileError>),
}

impl FileError {
    /// The number of mistakes that are shown at once.
    pub const SHOWN: usize = pillarbox_config::Error::SHOWN;

    /// The mistakes as text, one for each, up to [`SHOWN`](Self::SHOWN), and a last one that counts those beyond it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Several(all) => lines(all),
            one => vec![one.to_string()],
        }
    }

    /// Ends with all that is wrong, if anything is, in the order of the file.
    pub(super) fn if_any(mut wrong: Vec<Self>) -> Result<(), Self> {
        wrong.sort_by_key(Self::line);
        let mut seen = BTreeSet::new();
        wrong.retain(|error| seen.insert(error.to_string()));
        match wrong.pop() {
            None => Ok(()),
            Some(one) if wrong.is_empty() => Err(one),
            Some(last) => {
                wrong.push(last);
                Err(Self::Several(wrong))
            }
        }
    }

    /// The line that it is about; 0 if it is none of the file.
    fn line(&self) -> usize {
        match self {
            Self::Wrong { line, .. } => *line,
            Self::Source { error, .. } => error.line().unwrap_or_default(),
            _ => 0,
        }
    }
}

/// Makes errors of places in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

impl Places<'_> {
    /// The line of this place, from 1.
    pub(super) fn line(self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    /// Something is wrong at this place, a distance in bytes from the beginning.
    pub(crate) fn wrong(self, at: usize, section: &str, problem: impl Into<String>) -> FileError {
        let line = self.line(at);
        let section = if section.is_empty() { String::new() } else { format!("{section}: ") };
        FileError::Wrong { path: self.path.to_owned(), line, section, problem: problem.into() }
    }

    /// Reads a section that begins at this place, and adds all that is wrong with it to `wrong`; `None` if anything is. A key whose value
    /// cannot be read is left out and the rest read again.
    pub(crate) fn read<T: for<'de> Deserialize<'de>>(
        self,
        at: usize,
        section: &str,
        mut table: DeTable<'_>,
        wrong: &mut Vec<FileError>,
    ) -> Option<T> {
        let mut left_out: Vec<String> = Vec::new();
        loop {
            let value = ValueDeserializer::from(Spanned::new(at..at, DeValue::Table(table.clone())));
            let error = match serde_path_to_error::deserialize(value) {
                Ok(read) => return left_out.is_empty().then_some(read),
                Err(error) => error,
            };
            let (path, error) = (error.path().clone(), error.into_inner());
            let lacks_what_is_left_out = error
                .message()
                .strip_prefix("missing field `")
                .is_some_and(|name| left_out.iter().any(|key| name.trim_end_matches('`') == key));
            if !lacks_what_is_left_out {
                // Of the error only the message is used: its display quotes the line.
                let problem = explain(&path.to_string(), error.message());
                // Under its right name it would not be missing.
                let meant = problem.split_once("did you mean `").and_then(|(_, meant)| meant.split_once('`'));
                left_out.extend(meant.map(|(meant, _)| meant.to_owned()));
                let place = error.span().map(|span| span.start).filter(|place| *place > 0).unwrap_or(at);
                wrong.push(self.wrong(place, section, problem));
            }
            match leave_out(&mut table, &mut path.iter()) {
                Some(key) => left_out.push(key),
                None => return None,
            }
        }
    }
}

/// Takes the value that a path leads to out of a table, or the list that it is in; `None` if there is none.
fn leave_out<'p>(table: &mut DeTable<'_>, path: &mut impl Iterator<Item = &'p Segment>) -> Option<String> {
    let Some(Segment::Map { key }) = path.next() else { return None };
    if let Some(DeValue::Table(inner)) = table.get_mut(&**key).map(Spanned::get_mut)
        && let Some(left_out) = leave_out(inner, path)
    {
        return Some(left_out);
    }
    table.remove(&**key).map(|_| key.clone())
}

/// The place of a key of a table, such as `tls.ca_file`, or of the closest section around it; `None` if it has none.
pub(super) fn place_of(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let (name, value) = table.iter().find(|(name, _)| &**name.get_ref() == first)?;
    let inner = match (value.get_ref(), rest) {
        (DeValue::Table(inner), Some(rest)) => place_of(inner, rest),
        _ => None,
    };
    Some(inner.unwrap_or(name.span().start))
}

/// Restates a deserializer's message about the value of a key in words of the file. A value of the wrong type is never shown,
/// since it may be a secret.
fn explain(key: &str, message: &str) -> String {
    let problem = match mismatch(message) {
        Some((expected, found)) => format!("expected {expected}, found {found}"),
        None => meant(message),
    };
    // A problem that names its key already, such as one that does not exist, needs at most the sections of the key.
    let key = match key.rsplit_once('.') {
        _ if key == "." => "",
        Some((sections, last)) if problem.contains(&format!("`{last}`")) => sections,
        None if problem.contains(&format!("`{key}`")) => "",
        _ => key,
    };
    if key.is_empty() { problem } else { format!("`{key}`: {problem}") }
}

/// The complaint about a key that does not exist, with the one that was most likely meant.
fn meant(message: &str) -> String {
    let nearest = || {
        let (name, known) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
        let known = known.strip_prefix("one of ").unwrap_or(known).split(", ").map(|known| known.trim_matches('`'));
        let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
        known.min_by_key(distance).filter(|known| distance(known) <= 1 + known.len() / 5)
    };
    if let Some(name) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("`{name}` is missing; set it");
    }
    match of_another_outbox(message) {
        Some(question) => format!("{message}; {question}"),
        None => nearest().map_or_else(|| message.to_owned(), |known| format!("{message}; did you mean `{known}`?")),
    }
}

/// A question for the key that another outbox calls like the one that does not exist here.
fn of_another_outbox(message: &str) -> Option<String> {
    let (name, known) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    meant_by(name).find_map(|(key, note)| {
        let note = if note.is_empty() { String::new() } else { format!(" {note}") };
        let last = key.rsplit('.').next().unwrap_or(key);
        if known.contains(&format!("`{last}`")) {
            return Some(format!("did you mean `{last}`?{note}"));
        }
        let is_of_source = !key.starts_with("route.") && !key.starts_with("publisher.");
        is_of_source.then(|| format!("did you mean `{key}` of a [[source]]?{note}"))
    })
}

/// The expected kind and the found kind of a value of the wrong type.
fn mismatch(message: &str) -> Option<(&str, &str)> {
    const FOUND: [(&str, &str); 7] = [
        ("string", "text"),
        ("integer", "a whole number"),
        ("floating point", "a number with a fraction"),
        ("boolean", "true or false"),
        ("sequence", "a list"),
        ("map", "a table"),
        ("datetime", "a date"),
    ];
    let (wrong, number) = match (message.strip_prefix("invalid type: "), message.strip_prefix("invalid value: ")) {
        (Some(wrong), _) => (wrong, "a whole number"),
        (None, wrong) => (wrong?, "one that is too small or too large"),
    };
    // The value stands between the two, and may be any text.
    let (_, expected) = wrong.rsplit_once(", expected ")?;
    let found = FOUND.iter().find(|(kind, _)| wrong.starts_with(kind)).map_or("something else", |(_, found)| *found);
    let expected = match expected {
        "usize" | "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64" => "a whole number",
        "a string" | "path string" | "string" => "text in quotes",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        expected => expected,
    };
    Some((expected, if found == "a whole number" { number } else { found }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_wrong_type_is_told_by_its_key_and_never_shown() {
        for (key, message, expected) in [
            ("rate", "invalid type: string \"4\", expected u32", "`rate`: expected a whole number, found text"),
            (
                "rate",
                "invalid value: integer `-1`, expected u32",
                "`rate`: expected a whole number, found one that is too small or too large",
            ),
            (
                "types",
                "invalid type: string \"order.*, expected u8\", expected a sequence",
                "`types`: expected a list, found text",
            ),
            (
                "types[1]",
                "invalid type: integer `3`, expected a string",
                "`types[1]`: expected text in quotes, found a whole number",
            ),
            (
                "breaker",
                "invalid type: boolean `true`, expected struct BreakerSection",
                "`breaker`: expected a table, found true or false",
            ),
            ("breaker.pause", "\"soon\" is no duration", "`breaker.pause`: \"soon\" is no duration"),
            (
                "breaker.pose",
                "unknown field `pose`, expected one of `pause`",
                "`breaker`: unknown field `pose`, expected one of `pause`; did you mean `pause`?",
            ),
            (
                "ulr",
                "unknown field `ulr`, expected one of `kind`, `url`",
                "unknown field `ulr`, expected one of `kind`, `url`; did you mean `url`?",
            ),
            ("nose", "unknown field `nose`, expected `url`", "unknown field `nose`, expected `url`"),
            (".", "missing field `url`", "`url` is missing; set it"),
            (
                "topic",
                "unknown field `topic`, expected one of `to`, `key`",
                "unknown field `topic`, expected one of `to`, `key`; did you mean `to`?",
            ),
            (
                "max_retries",
                "unknown field `max_retries`, expected one of `to`, `rate`",
                "unknown field `max_retries`, expected one of `to`, `rate`; did you mean `retry.max_attempts` of a [[source]]? it counts the first \
                 call too: retries + 1",
            ),
        ] {
            assert_eq!(explain(key, message), expected);
        }
    }
}
