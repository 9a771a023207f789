use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::ConfigError;
use pillarbox_core::event::EventId;
use tokio::time::timeout;

use super::followed::{MAX_FOLLOWED, Progress, Waiter};
use super::{EventEnd, Followed};

/// The time for which an event is waited for, unless told otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for the end of one event when it is awaited: see [`Outbox::delivered`](crate::run::Outbox::delivered).
#[derive(Debug)]
#[must_use = "nothing is waited for until it is awaited"]
pub struct Wait(WaitAll);

/// Waits for the end of several events when it is awaited: see [`Outbox::delivered_all`](crate::run::Outbox::delivered_all).
#[derive(Debug)]
#[must_use = "nothing is waited for until it is awaited"]
pub struct WaitAll {
    followed: Arc<Followed>,
    ids: Vec<EventId>,
    limit: Duration,
}

impl Wait {
    pub(crate) fn new(followed: &Arc<Followed>, id: EventId) -> Self {
        Self(WaitAll::new(followed, vec![id]))
    }

    /// Waits for no longer than this. Default 30 s.
    pub fn within(self, limit: Duration) -> Self {
        Self(self.0.within(limit))
    }
}

impl IntoFuture for Wait {
    type Output = Result<EventEnd, WaitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.wait().await?.pop().ok_or(WaitError::Stopped) })
    }
}

impl WaitAll {
    pub(crate) fn new(followed: &Arc<Followed>, ids: Vec<EventId>) -> Self {
        Self { followed: Arc::clone(followed), ids, limit: DEFAULT_TIMEOUT }
    }

    /// Waits for no longer than this, for all of them together. Default 30 s.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    async fn wait(self) -> Result<Vec<EventEnd>, WaitError> {
        if self.followed.delete_done {
            let problem = "deletes the rows of delivered events, so that nothing tells one that was delivered from one that was never written";
            let remedy = "switch it off, and delete them some time later: `purge_done_after`";
            return Err(ConfigError::new("settle.delete_done", problem, remedy).into());
        }
        if self.ids.len() > MAX_FOLLOWED {
            return Err(WaitError::TooMany);
        }
        let mut waiters =
            self.ids.into_iter().map(|id| self.followed.join(id)).collect::<Result<Vec<Waiter<'_>>, WaitError>>()?;
        let mut ends = Vec::with_capacity(waiters.len());
        let all = async {
            for waiter in &mut waiters {
                ends.push(waiter.end().await?);
            }
            Ok(())
        };
        match timeout(self.limit, all).await {
            Ok(result) => result.map(|()| ends),
            Err(_elapsed) => end_or_timeout(&waiters, self.limit),
        }
    }
}

impl IntoFuture for WaitAll {
    type Output = Result<Vec<EventEnd>, WaitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

/// The answer when the time is over: all ends, if the last of them has come at that moment.
fn end_or_timeout(waiters: &[Waiter<'_>], limit: Duration) -> Result<Vec<EventEnd>, WaitError> {
    let (mut ends, mut left) = (Vec::with_capacity(waiters.len()), Vec::new());
    for waiter in waiters {
        match waiter.progress() {
            Progress::Ended(end) => ends.push(end),
            Progress::Pending => left.push((&waiter.id, true)),
            Progress::Unseen => left.push((&waiter.id, false)),
        }
    }
    let Some((id, seen)) = left.first() else { return Ok(ends) };
    Err(WaitError::Timeout { id: (*id).clone(), seen: *seen, left: left.len(), limit })
}

/// The end of an event is not known. That says nothing of the event itself, which is delivered all the same.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error("{}", describe(id, *seen, *left, *limit))]
    Timeout {
        /// The event, the first of several.
        id: EventId,
        /// True if it is in the table and pending, false if it was never seen there.
        seen: bool,
        /// The number of events that have not ended, this one included.
        left: usize,
        /// The time for which they were waited for.
        limit: Duration,
    },
    /// The settings of this outbox make the answer impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Too many events are waited for in this process already.
    #[error("this process waits for {MAX_FOLLOWED} events already, which is the most; wait for fewer at once")]
    TooMany,
    /// The outbox has been shut down.
    #[error("the outbox was shut down while it waited for an event; ask for it by another one")]
    Stopped,
}

/// Writes the same text as `Display`, as [`StoreError`](pillarbox_core::error::StoreError) does.
impl fmt::Debug for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn describe(id: &EventId, seen: bool, left: usize, limit: Duration) -> String {
    let others = if left > 1 { format!(", nor were {} others over", left - 1) } else { String::new() };
    if seen {
        return format!(
            "event {id} was still pending after {limit:?}{others}; `pillarbox pending show {id}` tells why"
        );
    }
    format!("event {id} was not seen within {limit:?}{others}; was its transaction committed, on this database?")
}
