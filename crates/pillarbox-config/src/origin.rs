use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The place where a setting was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In a file.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// By a variable of the environment, of this name.
    Variable(String),
    /// By the program, through [`Loader::set`](crate::Loader::set).
    Program,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Program => f.write_str("set by the program"),
        }
    }
}

/// The origin of each setting that was given. Keys that nobody gave are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origins(BTreeMap<String, Origin>);

impl Origins {
    pub(crate) fn of(given: impl IntoIterator<Item = (String, Origin)>) -> Self {
        Self(given.into_iter().collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Origin> {
        self.0.get(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
