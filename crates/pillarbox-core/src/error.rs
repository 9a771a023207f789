//! Errors of stores and of settings, with their remedies.
//!
//! The text of an error is whole, since many programs print nothing else. A cause that it quotes is not its `source` as well, so that a
//! printer of the whole chain says each sentence once. The errors of drivers and hooks are both, since rules for retries find them among
//! the causes by their type, as [`Retry::retry_on_error`](crate::retry::Retry::retry_on_error) does.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Any error, owned and sendable.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// The kind of trouble that a store is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The database cannot be reached, went away, or refuses work for now (starting up, shutting down, read-only).
    Unavailable,
    /// The statement lost against another one: deadlock, serialisation failure, lock timeout, busy.
    Contention,
    /// The schema is missing, older or newer than this release needs.
    Schema,
    /// Another node's mode cannot run beside this one's.
    IncompatibleMode,
    /// Credentials, privileges or TLS were refused.
    Denied,
    /// The configuration names something that cannot be: a malformed URL, a table name that is no identifier.
    Config,
    /// The database refused the statement for another reason, or answered what was not expected.
    Unexpected,
}

/// An operation on the database failed.
///
/// It names the problem, the operation and the database, and tells if the same call may succeed later.
/// It never contains a password.
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    message: Cow<'static, str>,
    address: Option<String>,
    source: Option<BoxError>,
}

impl StoreError {
    /// An error of `kind` during `operation` ("claim events", "renew the lease", …).
    #[must_use]
    pub fn new(kind: StoreErrorKind, operation: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, operation, message: message.into(), address: None, source: None }
    }

    /// Adds where the database is: host, port and database name, or a path. Never pass a URL with credentials.
    #[must_use]
    pub fn at(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Adds the driver's error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of trouble.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The operation that failed.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// True if the same call may succeed later without any intervention.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Contention)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}", self.operation)?;
        if let Some(address) = &self.address {
            write!(f, " at {address}")?;
        }
        write!(f, ": {}", self.message)?;
        if self.is_temporary() {
            f.write_str(" (temporary: the same call may succeed later)")?;
        }
        Ok(())
    }
}

/// The same text as `Display`, since `fn main() -> Result<…>` and `expect` show it to a person.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

/// A setting that cannot be used: its name, the problem and the remedy.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting `{field}` {problem}; {remedy}")]
pub struct ConfigError {
    field: &'static str,
    problem: Cow<'static, str>,
    remedy: Cow<'static, str>,
}

/// The same text as `Display`, as for [`StoreError`].
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ConfigError {
    /// An error that reads "setting `field` problem; remedy".
    #[must_use]
    pub fn new(
        field: &'static str,
        problem: impl Into<Cow<'static, str>>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { field, problem: problem.into(), remedy: remedy.into() }
    }

    /// The setting's name.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The problem with the setting: "is 0", "is missing".
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The remedy for the problem.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}
