//! The write-ahead log and its index, the files beside a database file that somebody who tidies up may take for leftovers.
//!
//! Without them SQLite goes on in the removed ones: other programs begin new ones and see nothing of what is written here, and the
//! connection that is closed last writes its old log over what they have written.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::database_file::FileId;

/// The files as the write connection has opened them.
#[derive(Debug)]
pub(crate) struct LogFiles {
    database: PathBuf,
    opened: Mutex<Vec<(PathBuf, FileId)>>,
}

impl LogFiles {
    pub(crate) fn of(database: &Path) -> Self {
        Self { database: database.to_owned(), opened: Mutex::default() }
    }

    /// The write connection is new, and has read something: until then it opens none of them.
    pub(crate) fn note(&self) {
        // SQLite puts them beside the file that a link leads to.
        let Ok(database) = self.database.canonicalize() else { return self.opened().clear() };
        let beside = ["-wal", "-shm"].map(|suffix| {
            let mut path = database.clone().into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        });
        *self.opened() = beside.into_iter().filter_map(|path| Some((path.clone(), FileId::at(&path).ok()?))).collect();
    }

    /// One that is another file now, or gone. To be asked while the write connection is held: while it is open, nobody else takes the files
    /// away, and a new one has noted its own.
    pub(crate) fn replaced(&self) -> Option<PathBuf> {
        self.opened().iter().find(|(path, opened)| !opened.is_at(path)).map(|(path, _)| path.clone())
    }

    fn opened(&self) -> MutexGuard<'_, Vec<(PathBuf, FileId)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
