use std::time::Duration;

use pillarbox_core::store::Backlog;
use pillarbox_engine::run::Outbox;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// The time for which an answer is good: however often the page is asked for, the table is counted no more often.
const GOOD_FOR: Duration = Duration::from_secs(5);
/// The time that counting may take. A page that does not come says less than one without counts.
const PATIENCE: Duration = Duration::from_secs(2);

/// The backlog of an outbox's table, counted at most every few seconds, for one request at a time.
#[derive(Debug)]
pub(crate) struct BacklogReader {
    outbox: Outbox,
    last: Mutex<Option<Reading>>,
}

/// The backlog at a moment, or the reason why it could not be counted.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) backlog: Result<Backlog, String>,
}

impl BacklogReader {
    pub(crate) fn new(outbox: Outbox) -> Self {
        Self { outbox, last: Mutex::default() }
    }

    /// The last answer if it is still good, or else the database's.
    pub(crate) async fn read(&self) -> Reading {
        let mut last = self.last.lock().await;
        if let Some(reading) = last.as_ref().filter(|reading| reading.at.elapsed() < GOOD_FOR) {
            return reading.clone();
        }
        let backlog = match timeout(PATIENCE, self.outbox.store().backlog()).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_elapsed) => Err("the database did not count the rows within two seconds".to_owned()),
        };
        let reading = Reading { at: Instant::now(), backlog };
        *last = Some(reading.clone());
        reading
    }
}
