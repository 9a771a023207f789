//! The log of a test, kept so that the test can read it.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Subscriber};

/// A log that clones write to together: hand one to `with_writer`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The text so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("text")
    }
}

/// Sends what this thread logs to a subscriber, until the guard is dropped.
///
/// A second one lives beside it for as long as the process: tracing asks the subscriber of the thread that comes by a
/// line first where there is only one, and if that is the thread of a test without any, nobody is told of the line from
/// then on. Where there are two it asks all of them.
pub(crate) fn install(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    tracing::subscriber::set_default(subscriber)
}
