use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::args::OutputSpec;
use crate::failure::Failure;

/// The destination of lines, open.
#[derive(Debug)]
pub(super) enum Output {
    Stdout,
    File { file: File, fsync: bool },
}

impl Output {
    /// Opens a file to append to it, and creates it where it is missing.
    ///
    /// Only its owner may read a new file, since events may be confidential. With `fsync` its directory is synced too:
    /// without an entry there, a file is lost with all its lines.
    pub(super) fn open(spec: &OutputSpec, fsync: bool) -> Result<Self, Failure> {
        Self::open_with(spec, fsync, |directory| File::open(directory)?.sync_all())
    }

    fn open_with(
        spec: &OutputSpec,
        fsync: bool,
        sync_directory: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, Failure> {
        let OutputSpec::File(path) = spec else { return Ok(Self::Stdout) };
        let open = || {
            let torn = is_torn(path)?;
            let mut options = OpenOptions::new();
            options.append(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = match options.clone().create_new(true).open(path) {
                // The file exists, or a link names its place.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.create(true).open(path)?,
                created => {
                    let file = created?;
                    if fsync {
                        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                        sync_directory(parent.unwrap_or(Path::new(".")))?;
                    }
                    file
                }
            };
            if torn {
                file.write_all(b"\n")?;
            }
            Ok(file)
        };
        let file = open().map_err(|source| Failure::Open { path: path.display().to_string(), source })?;
        Ok(Self::File { file, fsync })
    }

    /// Writes whole lines with one call, so that those of several relays appending to one file stay whole, and returns
    /// when they have left this process.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::File { file, fsync } => {
                file.write_all(lines)?;
                if *fsync { file.sync_data() } else { Ok(()) }
            }
        }
    }
}

/// True if a file ends in the middle of a line, which a killed relay or a full disk has left. The line's event was not
/// settled and is written anew; ending the line keeps the others readable.
fn is_torn(path: &Path) -> io::Result<bool> {
    // Pipes and devices have no end to look at.
    if !path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_directory_of_a_new_file_is_synced_once_and_only_where_lines_are() {
        let folder = tempfile::tempdir().unwrap();
        let synced = |name: &str, fsync: bool| {
            let mut synced: Option<PathBuf> = None;
            let spec = OutputSpec::File(folder.path().join(name));
            let output = Output::open_with(&spec, fsync, |directory| {
                synced = Some(directory.to_owned());
                Ok(())
            });
            output.unwrap();
            synced
        };
        assert_eq!(synced("events.jsonl", true).as_deref(), Some(folder.path()));
        assert_eq!(synced("events.jsonl", true), None, "the file was there");
        assert_eq!(synced("others.jsonl", false), None);
        let refused = Output::open_with(&OutputSpec::File(folder.path().join("third.jsonl")), true, |_| {
            Err(io::Error::other("the disk is gone"))
        });
        assert!(refused.unwrap_err().to_string().contains("third.jsonl"));
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_its_owners_alone_and_an_old_one_is_left_as_it_is() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let (new, old, link) = (folder.path().join("new"), folder.path().join("old"), folder.path().join("link"));
        std::fs::write(&old, "a\n").unwrap();
        std::fs::set_permissions(&old, PermissionsExt::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(folder.path().join("linked"), &link).unwrap();
        for path in [&new, &old, &link] {
            Output::open(&OutputSpec::File(path.clone()), true).unwrap().write(b"x\n").unwrap();
        }
        assert_eq!((mode(&new), mode(&old), mode(&folder.path().join("linked"))), (0o600, 0o640, 0o600));
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "a\nx\n");
    }

    #[test]
    fn a_torn_line_is_ended_and_a_whole_one_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        for (before, after) in [("", "x\n"), ("a\n", "a\nx\n"), ("a\n{\"ev", "a\n{\"ev\nx\n")] {
            std::fs::write(&path, before).unwrap();
            Output::open(&OutputSpec::File(path.clone()), true).unwrap().write(b"x\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
    }
}
