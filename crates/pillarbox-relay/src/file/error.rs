use std::path::{Path, PathBuf};

/// A configuration file that cannot be used. It quotes no value that may be a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{}, line {line}: {section}{problem}", path.display())]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// In which section, with a colon and a space; empty for the file as a whole.
        section: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A setting of a source.
    #[error("source `{source_name}`: {error}")]
    Source {
        /// Which.
        source_name: String,
        /// What is wrong.
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
    /// Something is wrong at this place, a distance in bytes from the beginning.
    pub(crate) fn wrong(self, at: usize, section: &str, problem: impl Into<String>) -> FileError {
        let line = 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let section = if section.is_empty() { String::new() } else { format!("{section}: ") };
        FileError::Wrong { path: self.path.to_owned(), line, section, problem: problem.into() }
    }

    /// What a deserializer says about a section. Of its error only the message is used: its display quotes the line.
    pub(crate) fn refused(self, at: usize, section: &str, error: &toml::de::Error) -> FileError {
        self.wrong(error.span().map_or(at, |span| span.start), section, error.message())
    }
}
