use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Weak};

use metrics::Gauge;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::HandlerError;
use crate::clock::Timestamp;
use crate::event::{Decode, Event, EventId, Headers, Payload, decode};
use crate::ownership::NodeId;
use crate::store::Row;
use crate::throttle::Throttle;
use crate::write::{Writer, WriterParts};

/// The path by which an event came to its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Path {
    /// From the committing process's memory.
    Hot,
    /// From the table.
    Cold,
}

impl Path {
    /// Its name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
        }
    }
}

/// An event handed to a handler, with its metadata. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Delivery {
    row: Arc<Row>,
    path: Path,
    deliverer: Arc<DeliveringNode>,
    queued_at: Option<Instant>,
}

/// The node that delivers, for as long as it may.
#[derive(Debug)]
pub struct DeliveringNode {
    /// The node.
    pub node: NodeId,
    /// Cancelled when it is to stop: its lease is lost, or another node waits for the partition.
    pub lost: CancellationToken,
    /// Counts the calls of blocking handlers that were abandoned while their threads go on.
    pub abandoned: AbandonedThreads,
    /// The writing half of its outbox, for as long as the outbox is there.
    pub writer: Weak<WriterParts>,
}

/// The number of blocking handlers that were abandoned, since they timed out or the node stopped, while their threads go on. Clones share
/// it.
#[derive(Debug, Clone, Default)]
pub struct AbandonedThreads(Arc<Abandoned>);

#[derive(Debug, Default)]
struct Abandoned {
    count: AtomicIsize,
    complaints: Throttle,
    gauge: Option<Gauge>,
}

impl AbandonedThreads {
    /// None so far; `gauge` shows their number from now on, also after the outbox has ended: its threads may outlive it.
    #[doc(hidden)]
    #[must_use]
    pub fn shown_by(gauge: Gauge) -> Self {
        Self(Arc::new(Abandoned { gauge: Some(gauge), ..Abandoned::default() }))
    }

    /// The number of threads now.
    #[must_use]
    pub fn count(&self) -> usize {
        // A thread may end before it is counted.
        usize::try_from(self.0.count.load(Ordering::Relaxed)).unwrap_or(0)
    }

    pub(super) fn begin(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        if let Some(gauge) = &self.0.gauge {
            gauge.increment(1);
        }
        if let Some(calls) = self.0.complaints.report(1) {
            tracing::warn!(
                calls,
                "a blocking handler was abandoned; its thread cannot be stopped, and the next attempt may run beside it"
            );
        }
    }

    pub(super) fn end(&self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(gauge) = &self.0.gauge {
            gauge.decrement(1);
        }
    }
}

impl DeliveringNode {
    /// The same node for some of its events, which it can be told to stop by themselves.
    #[must_use]
    pub fn of_a_partition(&self) -> Self {
        let (node, lost, writer) = (self.node.clone(), self.lost.child_token(), Weak::clone(&self.writer));
        Self { node, lost, abandoned: self.abandoned.clone(), writer }
    }
}

impl Delivery {
    /// A delivery of a row that no node has taken and whose outcome nobody records: to see what a handler does with an event, or
    /// where it would go. It counts as read from the table, by a node named `nobody`.
    #[must_use]
    pub fn detached(row: Row) -> Self {
        let (lost, abandoned) = (CancellationToken::new(), AbandonedThreads::default());
        let deliverer = DeliveringNode { node: NodeId::from_stored("nobody"), lost, abandoned, writer: Weak::new() };
        Self::new(Arc::new(row), Path::Cold, Arc::new(deliverer))
    }

    /// A delivery of a row by `deliverer`.
    #[must_use]
    pub fn new(row: Arc<Row>, path: Path, deliverer: Arc<DeliveringNode>) -> Self {
        Self { row, path, deliverer, queued_at: None }
    }

    /// The same delivery with the time at which the event came into memory.
    #[must_use]
    pub fn with_queued_at(self, queued_at: Instant) -> Self {
        Self { queued_at: Some(queued_at), ..self }
    }

    /// The time at which the event came into memory, or where keys keep their order at which the read that brought it began; `None` for a
    /// [detached](Self::detached) delivery. Events whose type was paused since then may belong before it.
    #[must_use]
    pub fn queued_at(&self) -> Option<Instant> {
        self.queued_at
    }

    /// The node's count of threads that go on though their calls were abandoned.
    pub(super) fn abandoned(&self) -> AbandonedThreads {
        self.deliverer.abandoned.clone()
    }

    /// The outbox that delivers it, to write follow-up events with: in a transaction of its [`begin`](Writer::begin), or in that of
    /// a handler [with one](super::in_transaction).
    ///
    /// ```text
    /// async fn book(delivery: Delivery, mut tx: PgTx) -> Result<(), BoxError> {
    ///     // … the booking itself, on `&mut *tx`.
    ///     delivery.outbox()?.write(&mut tx, Envelope::json("payment.booked", "{}")?).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The outbox is gone, or the delivery is [of none](Self::detached).
    pub fn outbox(&self) -> Result<Writer, HandlerError> {
        let parts = self.deliverer.writer.upgrade();
        parts.map(Writer::new).ok_or_else(|| HandlerError::interrupted("the outbox of this delivery is not running"))
    }

    /// The event's id, by which consumers deduplicate: the same for every delivery of this event, also to other handlers.
    #[must_use]
    pub fn id(&self) -> &EventId {
        self.row.event.id()
    }

    /// The handler it is for, where several named ones share the events of its type; each has a row of its own, with the
    /// same [`id`](Self::id) and its own failures.
    #[must_use]
    pub fn handler_id(&self) -> Option<&str> {
        self.row.handler.as_deref()
    }

    /// Its place in the order of the table.
    #[must_use]
    pub fn seq(&self) -> i64 {
        self.row.seq
    }

    /// The event type, such as `order.placed`.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.row.event.event_type()
    }

    /// The kind of thing it happened to.
    #[must_use]
    pub fn aggregate_type(&self) -> &str {
        self.row.event.aggregate_type()
    }

    /// The id of the thing it happened to.
    #[must_use]
    pub fn aggregate_id(&self) -> Option<&str> {
        self.row.event.aggregate_id()
    }

    /// The tenant it belongs to.
    #[must_use]
    pub fn tenant_id(&self) -> Option<&str> {
        self.row.event.tenant_id()
    }

    /// The ordering key: the explicit one, else the aggregate id.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        // A row inserted by plain SQL may leave the key to its aggregate.
        self.row.event.key()
    }

    /// The string map that travels with it.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        self.row.event.headers()
    }

    /// The payload that it carries, byte for byte as written.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        self.row.event.payload()
    }

    /// Reads the JSON payload as a value.
    ///
    /// # Errors
    /// When it is not JSON, or JSON of another shape. The error is unrecoverable, as that of [`decode`](Self::decode).
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        self.row.event.payload().parse().map_err(HandlerError::unrecoverable)
    }

    /// Reads the payload as a typed event, with the codec of its type, as for a typed handler.
    ///
    /// # Errors
    /// When the payload is of another content type, or not such an event. The error is unrecoverable: returned by the
    /// handler, it makes the event DEAD.
    pub fn decode<E: Event<Codec: Decode<E>>>(&self) -> Result<E, HandlerError> {
        decode(self.row.event.payload()).map_err(HandlerError::unrecoverable)
    }

    /// The number of deliveries of this event that have failed before.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.row.attempts
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.row.attempts.saturating_add(1)
    }

    /// True if an earlier delivery failed.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.row.attempts > 0
    }

    /// The time at which it happened, by the writer's clock.
    #[must_use]
    pub fn occurred_at(&self) -> Timestamp {
        self.row.event.occurred_at()
    }

    /// The time at which it was written: by the database's clock on the cold path, by the writer's on the hot path.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.row.created_at
    }

    /// The path by which it came: from memory or from the table.
    #[must_use]
    pub fn path(&self) -> Path {
        self.path
    }

    /// The node that delivers it.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.deliverer.node
    }

    /// True once this node is to stop delivering it, for one of two reasons.
    ///
    /// - The node has lost its lease: the verdict will be refused, and another node delivers the event.
    /// - In mode `partitioned`, another node has waited for the event's partition for longer than `drain_timeout`. It gets the
    ///   partition when this handler has ended, and no sooner. If the handler succeeds, that is recorded; if it fails, no
    ///   attempt is counted, and the other node delivers the event.
    #[must_use]
    pub fn should_stop(&self) -> bool {
        self.deliverer.lost.is_cancelled()
    }

    /// Waits until this node is to stop delivering it, as [`should_stop`](Self::should_stop) says. A long-running handler
    /// selects on this to end early with an error.
    pub async fn stop_requested(&self) {
        self.deliverer.lost.cancelled().await;
    }
}
