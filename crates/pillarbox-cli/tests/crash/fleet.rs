//! Relays, and what they have written.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Child;

use serde_json::Value;
use tempfile::TempDir;

use crate::database::Database;
use crate::support::{Ended, end_of, pillarbox, send};

/// A running relay. Its name is in its node's id, so that the table says what it holds.
pub(crate) struct Relay {
    pub(crate) name: String,
    process: Child,
}

impl Relay {
    /// Freezes it: it neither ends nor notices.
    pub(crate) fn freeze(&self) {
        send("-STOP", &self.process);
    }

    /// Lets it go on, as if no time had passed.
    pub(crate) fn thaw(&self) {
        send("-CONT", &self.process);
    }

    /// Ends it as power loss would.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        assert_eq!(self.process.wait().unwrap().code(), None, "it was killed, it did not end");
    }

    /// Asks it to stop.
    pub(crate) fn terminate(&self) {
        send("-TERM", &self.process);
    }

    /// Waits for its end, which has to be in order.
    pub(crate) async fn ended(self) -> Ended {
        let ended = end_of(self.process).await;
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", self.name);
        ended
    }
}

/// Where relays append their lines, one file for all that are launched under a name.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Starts a relay that appends to the file called `file`.
    pub(crate) fn launch(&self, database: &dyn Database, name: &str, file: &str, args: &[&str]) -> Relay {
        let to = format!("file:{}", self.path(file).display());
        let own = ["relay", "--store", database.url(), "--to", &to, "--node-name", name];
        let process = pillarbox(&[own.as_slice(), args].concat()).spawn().unwrap();
        Relay { name: name.to_owned(), process }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// How often each event was written, to all files together, and how many lines a kill has torn.
    pub(crate) fn written(&self) -> Written {
        let mut written = Written::default();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            written.read(&std::fs::read_to_string(file.unwrap().path()).unwrap());
        }
        written
    }

    /// As [`written`](Self::written), of one file; nothing if it is not there yet.
    pub(crate) fn written_to(&self, file: &str) -> Written {
        let mut written = Written::default();
        written.read(&std::fs::read_to_string(self.path(file)).unwrap_or_default());
        written
    }
}

/// What files hold.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Lines by event id.
    pub(crate) lines: BTreeMap<String, u32>,
    /// Beginnings of lines.
    pub(crate) torn: u32,
}

impl Written {
    fn read(&mut self, text: &str) {
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(line) => *self.lines.entry(line["event_id"].as_str().unwrap().to_owned()).or_default() += 1,
                Err(_) => self.torn += 1,
            }
        }
    }

    /// All events that were written exactly once, in the order of their numbers; an error names another one.
    pub(crate) fn assert_each_once(&self, events: u32) {
        assert_eq!(self.lines.len(), usize::try_from(events).unwrap(), "every event is delivered");
        let twice: Vec<_> = self.lines.iter().filter(|(_, lines)| **lines != 1).collect();
        assert!(twice.is_empty() && self.torn == 0, "each once: {twice:?}, {} torn", self.torn);
    }
}
