use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::args::Destination;
use crate::failure::Failure;

/// Where lines go, open.
#[derive(Debug)]
pub(super) enum Output {
    Stdout,
    File { file: File, fsync: bool },
}

impl Output {
    /// Opens a file to append to it, and creates it where it is missing.
    pub(super) fn open(destination: &Destination, fsync: bool) -> Result<Self, Failure> {
        let Destination::File(path) = destination else { return Ok(Self::Stdout) };
        let open = || {
            let torn = is_torn(path)?;
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
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

/// Whether a file ends in the middle of a line, which a relay that was cut off, or a disk that was full, has left. Its
/// event was not settled and is written anew; ending the line keeps the others readable.
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
    use super::*;

    #[test]
    fn a_torn_line_is_ended_and_a_whole_one_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        for (before, after) in [("", "x\n"), ("a\n", "a\nx\n"), ("a\n{\"ev", "a\n{\"ev\nx\n")] {
            std::fs::write(&path, before).unwrap();
            Output::open(&Destination::File(path.clone()), true).unwrap().write(b"x\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
    }
}
