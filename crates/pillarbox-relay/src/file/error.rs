use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::ValueDeserializer;

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

    /// Reads a section that begins at this place.
    pub(crate) fn read<T: for<'de> Deserialize<'de>>(
        self,
        at: usize,
        section: &str,
        value: ValueDeserializer<'_>,
    ) -> Result<T, FileError> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let key = error.path().to_string();
            // Of the error only the message is used: its display quotes the line.
            let error = error.into_inner();
            let problem = explain(&key, error.message());
            self.wrong(error.span().map_or(at, |span| span.start), section, problem)
        })
    }
}

/// Restates a deserializer's message about the value of a key in words of the file. A value of the wrong type is never shown,
/// since it may be a secret.
fn explain(key: &str, message: &str) -> String {
    let problem = match mismatch(message) {
        Some((expected, found)) => format!("expected {expected}, found {found}"),
        None => meant(message),
    };
    // What names its key already, such as one that does not exist, needs at most the sections it is in.
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
    nearest().map_or_else(|| message.to_owned(), |known| format!("{message}; did you mean `{known}`?"))
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
            (".", "missing field `url`", "missing field `url`"),
        ] {
            assert_eq!(explain(key, message), expected);
        }
    }
}
