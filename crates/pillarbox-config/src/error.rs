use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use pillarbox_core::error::ConfigError;
use pillarbox_engine::run::StartError;

use crate::origin::{Origin, Origins};

/// Settings that cannot be used, or an outbox that could not be started with them.
///
/// It says which setting, where it was given, what is wrong and what to do. It never contains a database URL.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {what} {}: {source}", path.display())]
    File {
        /// The kind of file.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system. The text quotes it, so it is no cause besides: hence the `r#`.
        r#source: std::io::Error,
    },
    /// A file is not TOML.
    #[error("{}, line {line}: {message}", path.display())]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem at that line.
        message: String,
    },
    /// There is no such setting.
    #[error("unknown {what} `{name}`{}; {remedy}", at(origin.as_ref()))]
    Unknown {
        /// `key` or `variable`.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// The place of the setting, unless the name says it.
        origin: Option<Origin>,
        /// Most likely the name that was meant.
        remedy: String,
    },
    /// A setting has a value that it cannot have, contradicts another, or does not apply.
    #[error("setting `{key}`{} {problem}; {remedy}", at(origin.as_ref()))]
    Invalid {
        /// The key of the setting.
        key: Cow<'static, str>,
        /// The place where it was given; `None` if nowhere.
        origin: Option<Origin>,
        /// The problem with its value.
        problem: Cow<'static, str>,
        /// The remedy for it.
        remedy: Cow<'static, str>,
    },
    /// Several things are wrong, each in a line of its own.
    #[error("{}", lines(.0).join("\n"))]
    Several(Vec<Error>),
    /// The settings are fine, but the outbox could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// The same text as `Display`: a program whose `main` returns an error shows people its `Debug`, and the sentence is what helps
/// them.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The number of mistakes that are shown at once.
    pub const SHOWN: usize = 20;

    /// Each of the things that are wrong.
    #[must_use]
    pub fn each(self) -> Vec<Self> {
        match self {
            Self::Several(all) => all.into_iter().flat_map(Self::each).collect(),
            one => vec![one],
        }
    }

    /// The line of a file that it is about; `None` if it is about none.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Unknown { origin: Some(Origin::File { line, .. }), .. }
            | Self::Invalid { origin: Some(Origin::File { line, .. }), .. }
            | Self::Syntax { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// Ends with all that is wrong, if anything is.
    pub(crate) fn if_any(wrong: Vec<Self>) -> Result<(), Self> {
        let mut all: Vec<Self> = wrong.into_iter().flat_map(Self::each).collect();
        match all.pop() {
            None => Ok(()),
            Some(one) if all.is_empty() => Err(one),
            Some(last) => {
                all.push(last);
                Err(Self::Several(all))
            }
        }
    }

    pub(crate) fn invalid(
        key: impl Into<Cow<'static, str>>,
        origins: &Origins,
        problem: impl Into<Cow<'static, str>>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        let key = key.into();
        let origin = origins.get(&key).cloned();
        Self::Invalid { key, origin, problem: problem.into(), remedy: remedy.into() }
    }

    /// The core's complaint about a setting, by the key it has here and with where it was given.
    pub(crate) fn refused(complaint: &ConfigError, origins: &Origins) -> Self {
        let key = match complaint.field() {
            "table" => "store.table",
            "table_prefix" => "store.table_prefix",
            field => field,
        };
        Self::invalid(key, origins, complaint.problem().to_owned(), complaint.remedy().to_owned())
    }
}

/// The mistakes, a line each, with a last one that counts those beyond [`SHOWN`](Error::SHOWN).
pub fn lines<E: fmt::Display>(wrong: &[E]) -> Vec<String> {
    let mut lines: Vec<String> = wrong.iter().take(Error::SHOWN).map(ToString::to_string).collect();
    let more = wrong.len().saturating_sub(Error::SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The place of a setting, for the middle of a sentence.
fn at(origin: Option<&Origin>) -> String {
    origin.map(|origin| format!(" ({origin})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::io;

    use super::*;

    #[test]
    fn errors_that_the_text_quotes_are_no_source_besides() {
        let source = io::Error::other("it is a folder");
        let error = Error::File { what: "the settings", path: "shop".into(), source };
        assert_eq!(error.to_string(), "cannot read the settings shop: it is a folder");
        assert!(error.source().is_none());
    }
}
