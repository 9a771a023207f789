use std::io;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::refusal::{CLOSED, unmigrated};

/// SQLite's primary result codes, of which the extended ones carry more in the higher bits.
mod code {
    pub(super) const ERROR: i32 = 1;
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const NOMEM: i32 = 7;
    pub(super) const READONLY: i32 = 8;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const PROTOCOL: i32 = 15;
    pub(super) const AUTH: i32 = 23;
    pub(super) const NOTADB: i32 = 26;
    pub(super) const CONSTRAINT_FOREIGNKEY: i32 = 787;
    /// No folder for temporary files can be written.
    pub(super) const IOERR_GETTEMPPATH: i32 = 6410;
    /// The file was moved or removed while it was open.
    pub(super) const READONLY_DBMOVED: i32 = 1032;
}

/// The failure of a call, before it is known which call that was.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(sqlx::Error),
    /// Our own refusal.
    Refused(StoreErrorKind, String),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl Failure {
    /// The one place where an error of the driver becomes one of ours.
    pub(crate) fn during(self, operation: &'static str, address: &str) -> StoreError {
        match self {
            Self::Refused(kind, problem) => StoreError::new(kind, operation, problem).at(address),
            Self::Driver(error) => {
                let (kind, message) = explain(&error);
                StoreError::new(kind, operation, message).at(address).with_source(error)
            }
        }
    }
}

/// True if the database is damaged.
pub(crate) fn is_corrupt(error: &StoreError) -> bool {
    let driver = std::error::Error::source(error).and_then(|source| source.downcast_ref::<sqlx::Error>());
    let code = driver.and_then(sqlx::Error::as_database_error).and_then(|error| error.code()?.parse::<i32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, code::CORRUPT | code::NOTADB))
}

fn explain(error: &sqlx::Error) -> (StoreErrorKind, String) {
    use StoreErrorKind::{Contention, Denied, Schema, Unavailable, Unexpected};
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().and_then(|code| code.parse().ok()).unwrap_or(code::ERROR);
            match classify(code, database.message()) {
                (Schema, _) => (Schema, unmigrated(&database.to_string())),
                (kind, remedy) => (kind, format!("{database}{remedy}")),
            }
        }
        sqlx::Error::PoolTimedOut => {
            let message = "no connection became free in time; a transaction on the store's writer is held open for long, \
                           or busy_timeout is short";
            (Contention, message.to_owned())
        }
        sqlx::Error::PoolClosed => (Unexpected, CLOSED.to_owned()),
        sqlx::Error::WorkerCrashed => {
            (Unavailable, "the connection's thread ended; the next call opens another".to_owned())
        }
        sqlx::Error::Io(io) if io.kind() == io::ErrorKind::PermissionDenied => (Denied, io.to_string()),
        sqlx::Error::Io(io) => (Unavailable, io.to_string()),
        other => (Unexpected, other.to_string()),
    }
}

/// The meaning of a result code of SQLite, and its remedy, which for tables is that of all stores.
fn classify(code: i32, message: &str) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Contention, Denied, Schema, Unavailable, Unexpected};
    match (code, code & 0xff) {
        (code::READONLY_DBMOVED, _) => (Unavailable, "; the file was moved or removed while it was open"),
        (code::IOERR_GETTEMPPATH, _) => {
            (Unavailable, "; there is no writable folder for temporary files: name one in the variable SQLITE_TMPDIR")
        }
        (_, code::BUSY | code::LOCKED | code::PROTOCOL) => (Contention, "; another connection holds the lock"),
        (_, code::CANTOPEN) => (Unavailable, "; check that its directory exists and that both may be read and written"),
        (_, code::IOERR | code::NOMEM) => (Unavailable, ""),
        (_, code::FULL) => (
            Unavailable,
            "; free some disk space, or, where there is enough, see that `seq` in `sqlite_sequence` is not at the end of the numbers",
        ),
        (_, code::READONLY | code::PERM | code::AUTH) => (Denied, "; make the file and its directory writable"),
        (_, code::CORRUPT) => (Unexpected, "; restore the file from a backup"),
        (_, code::NOTADB) => (Unexpected, "; the path names a file of another kind, or an encrypted one"),
        (code::CONSTRAINT_FOREIGNKEY, _) => {
            (Unexpected, "; nothing may refer to the event table by a foreign key: its rows change and leave")
        }
        (_, code::ERROR)
            if ["no such table", "no such index", "no such column"].iter().any(|m| message.contains(m)) =>
        {
            (Schema, "")
        }
        _ => (Unexpected, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_for_temporary_files_has_a_remedy() {
        let (kind, remedy) = classify(code::IOERR_GETTEMPPATH, "disk I/O error");
        assert_eq!(kind, StoreErrorKind::Unavailable);
        assert!(remedy.contains("SQLITE_TMPDIR"), "{remedy}");
    }
}
