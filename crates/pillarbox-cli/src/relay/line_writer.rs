use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::output::Output;

/// Lines written with one call, and flushed together, at most.
const BATCH: usize = 1024;

/// Takes lines from any task, and reports when they are written. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct LineWriter {
    lines: mpsc::Sender<Line>,
    written: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Line {
    text: Text,
    written: oneshot::Sender<()>,
}

/// The text of a line, which the writer or the call that withdraws it takes, whichever is first.
#[derive(Debug, Clone)]
struct Text(Arc<Mutex<Option<Vec<u8>>>>);

impl Text {
    fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Nothing is written any more, and it is unknown if the line was.
#[derive(Debug)]
pub(super) struct Closed;

/// The reason why nothing is written any more.
#[derive(Debug)]
pub(super) enum End {
    Limit,
    Failed(io::Error),
}

impl LineWriter {
    /// Starts the thread that writes: until `limit` lines are written, or one could not be.
    ///
    /// It is a thread and not a task, since a reader that does not read can block it forever; the process does not wait
    /// for it at its end.
    pub(super) fn start(output: Output, limit: Option<u64>) -> io::Result<(Self, oneshot::Receiver<End>)> {
        let (lines, receiver) = mpsc::channel(BATCH);
        let (ended, end) = oneshot::channel();
        let line_writer = Self { lines, written: Arc::default() };
        let writer = Writer { output, written: Arc::clone(&line_writer.written), left: limit.unwrap_or(u64::MAX) };
        thread::Builder::new().name("relay-writer".to_owned()).spawn(move || {
            if let Some(why) = writer.run(receiver) {
                // Nobody may be waiting for it any more.
                let _ = ended.send(why);
            }
        })?;
        Ok((line_writer, end))
    }

    /// Lines written so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Hands over a line and waits until it is written and flushed. Once `withdraw` is ready, the line is taken back unless it is being
    /// written. Returns false if it was taken back.
    pub(super) async fn write(&self, text: Vec<u8>, withdraw: impl Future<Output = ()>) -> Result<bool, Closed> {
        let text = Text(Arc::new(Mutex::new(Some(text))));
        let mut writing = pin!(async {
            let (written, answer) = oneshot::channel();
            self.lines.send(Line { text: text.clone(), written }).await.map_err(|_| Closed)?;
            answer.await.map_err(|_| Closed)
        });
        tokio::select! {
            biased;
            written = &mut writing => return written.map(|()| true),
            () = withdraw => {}
        }
        if text.take().is_some() { Ok(false) } else { writing.await.map(|()| true) }
    }
}

/// The one place that writes, so that lines never interleave.
#[derive(Debug)]
struct Writer {
    output: Output,
    written: Arc<AtomicU64>,
    /// Lines to write until the limit is reached.
    left: u64,
}

impl Writer {
    /// Runs until nothing more is to be written; `None` if all senders of lines are gone.
    fn run(mut self, mut lines: mpsc::Receiver<Line>) -> Option<End> {
        let (mut batch, mut text) = (Vec::with_capacity(BATCH), Vec::new());
        while self.left > 0 {
            let room = usize::try_from(self.left).unwrap_or(BATCH).min(BATCH);
            if lines.blocking_recv_many(&mut batch, room) == 0 {
                return None;
            }
            text.clear();
            batch.retain(|line: &Line| line.text.take().inspect(|line| text.extend_from_slice(line)).is_some());
            if let Err(error) = self.output.write(&text) {
                return Some(End::Failed(error));
            }
            let written = batch.len() as u64;
            self.written.fetch_add(written, Ordering::Relaxed);
            self.left -= written;
            for line in batch.drain(..) {
                // Its call may have been dropped meanwhile; then the event is delivered again.
                let _ = line.written.send(());
            }
        }
        Some(End::Limit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tokio::task::JoinSet;

    use super::*;
    use crate::args::OutputSpec;

    fn file(folder: &tempfile::TempDir) -> (std::path::PathBuf, Output) {
        let path = folder.path().join("lines");
        let output = Output::open(&OutputSpec::File(path.clone()), false).unwrap();
        (path, output)
    }

    /// Writes each line from a task of its own. Returns the number of those that were written.
    async fn write_all(line_writer: &LineWriter, lines: impl Iterator<Item = String>) -> usize {
        let write = |line: String| {
            let line_writer = line_writer.clone();
            async move { line_writer.write(line.into_bytes(), std::future::pending()).await.is_ok() }
        };
        let tasks: JoinSet<bool> = lines.map(write).collect();
        tasks.join_all().await.into_iter().filter(|written| *written).count()
    }

    #[tokio::test]
    async fn a_line_is_withdrawn_unless_it_is_being_written() {
        let (lines, mut receiver) = mpsc::channel(1);
        let line_writer = LineWriter { lines, written: Arc::default() };
        let write = |withdraw| line_writer.write(b"line".to_vec(), withdraw);
        assert!(!write(std::future::ready(())).await.unwrap(), "nobody writes it");
        let line = receiver.recv().await.unwrap();
        assert!(line.text.take().is_none(), "the writer passes over it");

        let (taken, is_taken) = oneshot::channel();
        let writer = async {
            let Line { text, written } = receiver.recv().await.unwrap();
            assert_eq!(text.take().as_deref(), Some(&b"line"[..]));
            taken.send(()).unwrap();
            tokio::task::yield_now().await;
            written.send(()).unwrap();
        };
        let withdraw = async { is_taken.await.unwrap() };
        let (written, ()) = tokio::join!(line_writer.write(b"line".to_vec(), withdraw), writer);
        assert!(written.unwrap(), "it was being written when it was asked for");
    }

    #[tokio::test]
    async fn lines_of_many_tasks_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, output) = file(&folder);
        let (line_writer, _end) = LineWriter::start(output, None).unwrap();
        let lines = || (0..500).map(|number: u32| number.to_string().repeat(500));
        assert_eq!(write_all(&line_writer, lines().map(|line| line + "\n")).await, 500);
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().map(str::to_owned).collect::<HashSet<_>>(), lines().collect());
    }

    #[tokio::test]
    async fn no_line_is_written_beyond_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (path, output) = file(&folder);
        let (line_writer, end) = LineWriter::start(output, Some(3)).unwrap();
        let written = write_all(&line_writer, std::iter::repeat_n("x\n".to_owned(), 20)).await;
        assert!(matches!(end.await, Ok(End::Limit)));
        assert_eq!((written, line_writer.written()), (3, 3));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "x\nx\nx\n");
    }
}
