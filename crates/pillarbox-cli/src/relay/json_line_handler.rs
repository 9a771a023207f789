use std::future::pending;
use std::time::Duration;

use pillarbox::{Delivery, HandlerError};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::line::line;
use super::line_writer::LineWriter;

/// Hands each event to the line writer, and answers when its line is written.
#[derive(Debug)]
pub(super) struct JsonLineHandler {
    line_writer: LineWriter,
    /// The wait between writing a line and reporting its event as delivered.
    delay: Option<Duration>,
    closing: CancellationToken,
    /// The calls that have begun to write.
    writing: TaskTracker,
}

impl JsonLineHandler {
    pub(super) fn new(line_writer: LineWriter, delay: Option<Duration>) -> Self {
        Self { line_writer, delay, closing: CancellationToken::new(), writing: TaskTracker::new() }
    }

    /// Delivers one event. A call without a verdict never returns while the relay stops: any answer would change the row.
    pub(super) async fn deliver(&self, delivery: Delivery) -> Result<(), HandlerError> {
        match self.write(&delivery).await {
            Some(verdict) => verdict,
            None => pending().await,
        }
    }

    /// Writes the line of an event; `None` if there is no line, or its fate is unknown.
    async fn write(&self, delivery: &Delivery) -> Option<Result<(), HandlerError>> {
        let _writing = self.writing.token();
        if self.closing.is_cancelled() {
            return None;
        }
        if delivery.should_stop() {
            return Some(Err(left_to_another()));
        }
        let line = match line(delivery) {
            Ok(line) => line,
            Err(error) => return Some(Err(HandlerError::unrecoverable(error))),
        };
        if !self.line_writer.write(line, delivery.stop_requested()).await.ok()? {
            return Some(Err(left_to_another()));
        }
        if let Some(delay) = self.delay {
            sleep(delay).await;
        }
        Some(Ok(()))
    }

    /// Lines written so far.
    pub(super) fn lines(&self) -> u64 {
        self.line_writer.written()
    }

    /// Begins no further line, and waits up to `max_wait` for the lines under way.
    pub(super) async fn close(&self, max_wait: Duration) {
        self.closing.cancel();
        self.writing.close();
        if timeout(max_wait, self.writing.wait()).await.is_err() {
            tracing::warn!("lines that were begun are not written in time; their events are delivered again");
        }
    }
}

/// The answer for an event that another node may deliver by now. That node waits for the end of this call, which nothing else would end while
/// the reader stalls; the engine records no such answer.
fn left_to_another() -> HandlerError {
    HandlerError::interrupted("another node is to deliver the event")
}
