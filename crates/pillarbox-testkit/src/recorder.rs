use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::event::{EventId, Payload};
use pillarbox_core::handle::{BoxFuture, Delivery, Handler, HandlerError, IntoHandler, Outcome, Path};
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::OrderKey;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

/// A handler that keeps a record of every call, around one that does the work.
///
/// It counts calls, not distinct events, so that a duplicate is seen. Clones share the record.
///
/// ```
/// use pillarbox_engine::run::Outbox;
/// use pillarbox_memory::MemoryStore;
/// use pillarbox_testkit::Recorder;
///
/// # async fn example() -> Result<(), pillarbox_core::error::BoxError> {
/// let store = MemoryStore::new();
/// let recorder = Recorder::new();
/// let outbox = Outbox::single_node(store.clone()).handle_all(recorder.clone()).start().await?;
/// store.inspect().insert_three_columns("event-1", "order.placed", "{}")?;
/// recorder.wait_for_calls(1).await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Recorder {
    handler: Arc<dyn Handler>,
    record: Arc<Record>,
}

#[derive(Debug, Default)]
struct Record {
    calls: Mutex<Vec<Call>>,
    /// The number of calls that have begun, and of those that have ended.
    progress: watch::Sender<(usize, usize)>,
}

/// One call of the handler.
#[derive(Debug, Clone)]
pub struct Call {
    /// The event.
    pub id: EventId,
    /// Its place in the order of the table.
    pub seq: i64,
    /// The ordering key of the event; `None` if it has no key.
    pub order_key: Option<OrderKey>,
    /// The payload of the event.
    pub payload: Payload,
    /// From memory or from the table.
    pub path: Path,
    /// The number of the attempt, as the handler was told, from 1.
    pub attempt: u32,
    /// The node that called.
    pub node: NodeId,
    /// The time at which the call began.
    pub began: Instant,
    /// The time and the kind of its end; `None` while it runs.
    pub ended: Option<(Instant, Ending)>,
}

/// The ending of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The event was delivered.
    Done,
    /// It was deferred; not a failure.
    Deferred,
    /// It was given up by the handler's decision.
    Dead,
    /// The handler returned an error.
    Failed,
    /// The handler panicked, or was dropped while it ran.
    Unfinished,
}

impl Recorder {
    /// Records and does nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::around(|_: Delivery| std::future::ready(()))
    }

    /// Records what `handler` is called with and what it answers.
    pub fn around<S>(handler: impl IntoHandler<S>) -> Self {
        Self { handler: handler.into_handler(), record: Arc::default() }
    }

    /// All calls, in the order in which they began.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.record.lock().clone()
    }

    /// The calls for one event.
    #[must_use]
    pub fn calls_of(&self, id: &EventId) -> Vec<Call> {
        self.record.lock().iter().filter(|call| call.id == *id).cloned().collect()
    }

    /// Waits until at least `count` calls have begun.
    pub async fn wait_for_calls(&self, count: usize) {
        self.wait(|(began, _)| began >= count).await;
    }

    /// Waits until at least `count` calls have ended, in whatever way.
    pub async fn wait_for_ends(&self, count: usize) {
        self.wait(|(_, ended)| ended >= count).await;
    }

    async fn wait(&self, reached: impl Fn((usize, usize)) -> bool) {
        let mut progress = self.record.progress.subscribe();
        // The sender lives in `self`, so waiting ends only when the number is reached.
        drop(progress.wait_for(|now| reached(*now)).await);
    }
}

/// A handler that ends once for each permit of the semaphore, and at once when that is closed.
pub(crate) fn gated() -> (Recorder, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&gate);
    let recorder = Recorder::around(move |_: Delivery| {
        let permits = Arc::clone(&permits);
        async move { permits.acquire().await.map_or((), SemaphorePermit::forget) }
    });
    (recorder, gate)
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Handler for Recorder {
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        Box::pin(async move {
            let running = Running::begin(&self.record, &delivery);
            let result = self.handler.handle(delivery).await;
            running.end(match &result {
                Ok(Outcome::Done | Outcome::DeliveredAs(_)) => Ending::Done,
                Ok(Outcome::Defer(_)) => Ending::Deferred,
                Ok(Outcome::Dead(_)) => Ending::Dead,
                Err(_) => Ending::Failed,
            });
            result
        })
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way; one that is dropped without an end has panicked or was cancelled.
struct Running<'a> {
    record: &'a Record,
    index: usize,
    ending: Ending,
}

impl<'a> Running<'a> {
    fn begin(record: &'a Record, delivery: &Delivery) -> Self {
        let call = Call {
            id: delivery.id().clone(),
            seq: delivery.seq(),
            order_key: delivery
                .key()
                .map(|key| OrderKey { handler: delivery.handler_id().map(Box::from), key: key.into() }),
            payload: delivery.payload().clone(),
            path: delivery.path(),
            attempt: delivery.attempt(),
            node: delivery.node().clone(),
            began: Instant::now(),
            ended: None,
        };
        let mut calls = record.lock();
        let index = calls.len();
        calls.push(call);
        drop(calls);
        record.progress.send_modify(|(began, _)| *began += 1);
        Self { record, index, ending: Ending::Unfinished }
    }

    fn end(mut self, ending: Ending) {
        self.ending = ending;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.record.lock().get_mut(self.index) {
            call.ended = Some((Instant::now(), self.ending));
        }
        self.record.progress.send_modify(|(_, ended)| *ended += 1);
    }
}
