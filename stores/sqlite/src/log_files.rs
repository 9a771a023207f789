//! The write-ahead log and its index, the files beside a database file that a clean-up may take for leftovers.
//!
//! Without them SQLite goes on in the removed ones: other programs begin new ones and see nothing of what is written here, and the
//! connection that is closed last writes its old log over what they have written.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::database_file::FileId;

/// The files as the write connection has opened them.
#[derive(Debug)]
pub(crate) struct LogFiles {
    database: PathBuf,
    opened: Mutex<Vec<(PathBuf, FileId)>>,
    /// The time at which the database file was written last, when the files were last seen in their places.
    written: Mutex<Option<SystemTime>>,
}

/// The fate of the files since they were opened.
#[derive(Debug)]
pub(crate) enum Fate {
    Kept,
    /// One is gone, and no other program has written anything since.
    Removed(PathBuf),
    /// Another program has begun a new one; or the database file was written since the last look, by this program's own checkpoint or by
    /// another program.
    Replaced(PathBuf),
}

impl LogFiles {
    pub(crate) fn of(database: &Path) -> Self {
        Self { database: database.to_owned(), opened: Mutex::default(), written: Mutex::default() }
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
        *self.written() = self.last_write();
        *self.opened() = beside.into_iter().filter_map(|path| Some((path.clone(), FileId::at(&path).ok()?))).collect();
    }

    /// The fate of the files. To be asked while the write connection is open: then SQLite itself takes none of them away, and a new
    /// connection has noted its own.
    pub(crate) fn fate(&self) -> Fate {
        let opened = self.opened();
        let mut missing = opened.iter().filter(|(path, opened)| !opened.is_at(path));
        let Some((path, _)) = missing.next() else {
            *self.written() = self.last_write();
            return Fate::Kept;
        };
        let is_untouched = self.written().is_some_and(|written| self.last_write() == Some(written));
        if is_untouched && opened.iter().all(|(path, opened)| opened.is_at(path) || FileId::at(path).is_err()) {
            Fate::Removed(path.clone())
        } else {
            Fate::Replaced(path.clone())
        }
    }

    /// This program has written the removed log into the database file.
    pub(crate) fn note_saved(&self) {
        *self.written() = self.last_write();
    }

    fn last_write(&self) -> Option<SystemTime> {
        self.database.metadata().and_then(|found| found.modified()).ok()
    }

    fn written(&self) -> MutexGuard<'_, Option<SystemTime>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> MutexGuard<'_, Vec<(PathBuf, FileId)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
