//! The database file in the file system. One that exists is asked for by its path and never opened: to close it again would drop the locks
//! that SQLite holds.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::operation;

/// Fails early, and with the name of the file, where SQLite would only say that it cannot open the file.
pub(crate) fn check(file: &Path) -> Result<(), StoreError> {
    let found = file.metadata().and_then(|found| readable(file).map(|()| found));
    match refusal(file, found) {
        Some((kind, problem)) => Err(StoreError::new(kind, operation::CONNECT, problem).at(file.display().to_string())),
        None => Ok(()),
    }
}

fn refusal(file: &Path, found: io::Result<Metadata>) -> Option<(StoreErrorKind, String)> {
    match found {
        Ok(found) if found.is_dir() => Some((StoreErrorKind::Config, "it is a directory; name a file".to_owned())),
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let problem =
                "the user of this process may not read the file; let it read and write the file and its directory";
            Some((StoreErrorKind::Denied, problem.to_owned()))
        }
        // A link to a file that is still to be created, elsewhere.
        Err(_) if file.symlink_metadata().is_ok() => None,
        Err(_) => {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if !folder.is_dir() {
                let problem = format!("there is no directory `{}`; create it first", folder.display());
                return Some((StoreErrorKind::Config, problem));
            }
            let problem =
                format!("the user of this process may not create a file in `{}`; make it writable", folder.display());
            writable(folder).is_err().then_some((StoreErrorKind::Denied, problem))
        }
    }
}

#[cfg(unix)]
fn readable(path: &Path) -> io::Result<()> {
    may(path, rustix::fs::Access::READ_OK)
}

/// Fails if the user of this process may not write here, and where nobody may: on a read-only file system.
#[cfg(unix)]
pub(crate) fn writable(path: &Path) -> io::Result<()> {
    may(path, rustix::fs::Access::WRITE_OK)
}

/// Asks for the rights with which files are opened.
#[cfg(unix)]
fn may(path: &Path, access: rustix::fs::Access) -> io::Result<()> {
    Ok(rustix::fs::accessat(rustix::fs::CWD, path, access, rustix::fs::AtFlags::EACCESS)?)
}

#[cfg(not(unix))]
fn readable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn writable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The links in a row that are followed to a file, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// Creates a missing file for its owner alone, since the rows may hold secrets from other users of the machine. SQLite gives the
/// write-ahead log and the shared memory beside it the same permissions. If this fails, SQLite reports the reason.
pub(crate) fn create(file: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = file.to_owned();
    // An open that takes no existing file follows no link either, so links are followed here.
    for _ in 0..MOST_LINKS {
        match (options.open(&file), file.read_link()) {
            (Err(error), Ok(target)) if error.kind() == io::ErrorKind::AlreadyExists => {
                file = file.parent().unwrap_or(Path::new("")).join(target);
            }
            _ => return,
        }
    }
}

/// The device and the number of a file, which no other file has while this one is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    /// The file at this path, on systems that number their files.
    #[cfg(unix)]
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;

        let found = path.metadata()?;
        Ok(Self { device: found.dev(), number: found.ino() })
    }

    #[cfg(not(unix))]
    pub(crate) fn at(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// False if there is another file at this path, or none.
    pub(crate) fn is_at(self, path: &Path) -> bool {
        match Self::at(path) {
            Ok(found) => found == self,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root may read everything, so the answer of the system is made up.
    #[test]
    fn a_file_that_may_not_be_read_is_not_called_missing() {
        let file = std::env::temp_dir().join("shop.db");
        let asked = |kind: io::ErrorKind| refusal(&file, Err(kind.into())).map(|(kind, _)| kind);
        assert_eq!(asked(io::ErrorKind::PermissionDenied), Some(StoreErrorKind::Denied));
        assert_eq!(asked(io::ErrorKind::NotFound), None);
    }
}
