use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::RowId;
use crate::clock::Timestamp;
use crate::event::{Envelope, Payload};
use crate::ownership::NodeId;

/// An event on its way into the table: the values of the columns that a writer sets.
///
/// Every other column takes the table's default.
#[derive(Debug, Clone)]
pub struct NewRow {
    envelope: Arc<Envelope>,
    headers: Option<Box<str>>,
    partition: u8,
    handler: Option<Arc<str>>,
    owner: Option<NodeId>,
    /// The end of a delay that begins with the write.
    due: Option<Instant>,
}

impl NewRow {
    /// The row of an event, for no handler in particular.
    #[must_use]
    pub fn new(envelope: Envelope) -> Self {
        let headers = envelope.headers().to_json().map(Into::into);
        let due = envelope.deliver_after().and_then(|delay| Instant::now().checked_add(delay));
        let partition = envelope.partition();
        Self { envelope: Arc::new(envelope), headers, partition, handler: None, owner: None, due }
    }

    /// The row, for one of the handlers of its event.
    #[must_use]
    pub fn for_handler(mut self, id: &Arc<str>) -> Self {
        self.handler = Some(Arc::clone(id));
        self
    }

    /// The row, held by `node` from the moment it is committed.
    #[must_use]
    pub fn owned_by(mut self, node: &NodeId) -> Self {
        self.owner = Some(node.clone());
        self
    }

    /// Column `locked_by`: the node that will deliver it from memory, or NULL.
    #[must_use]
    pub fn locked_by(&self) -> Option<&str> {
        self.owner.as_ref().map(NodeId::as_str)
    }

    /// Column `handler`: the one of several handlers that the row is for, or NULL.
    #[must_use]
    pub fn handler(&self) -> Option<&str> {
        self.handler.as_deref()
    }

    /// The identity of the row that was inserted as `seq`.
    pub fn id(&self, seq: i64) -> RowId {
        RowId { seq, event_id: self.envelope.id().clone(), handler: self.handler.as_deref().map(Box::from) }
    }

    /// The event.
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The event, which its rows share.
    pub fn event(&self) -> &Arc<Envelope> {
        &self.envelope
    }

    /// Column `event_id`.
    #[must_use]
    pub fn event_id(&self) -> &str {
        self.envelope.id().as_str()
    }

    /// Column `headers`: a JSON object, or NULL when there are none.
    #[must_use]
    pub fn headers(&self) -> Option<&str> {
        self.headers.as_deref()
    }

    /// Column `payload`: JSON text, or NULL for a binary payload.
    #[must_use]
    pub fn payload(&self) -> Option<&str> {
        self.envelope.payload().as_json()
    }

    /// Columns `payload_bytes` and `content_type`; both NULL for a JSON payload.
    #[must_use]
    pub fn payload_bytes(&self) -> Option<(&[u8], &str)> {
        match self.envelope.payload() {
            Payload::Json(_) => None,
            Payload::Binary { content_type, bytes } => Some((bytes, content_type)),
        }
    }

    /// Column `unique_key`.
    #[must_use]
    pub fn unique_key(&self) -> Option<&str> {
        self.envelope.unique_key()
    }

    /// Column `partition`.
    #[must_use]
    pub fn partition(&self) -> u8 {
        self.partition
    }

    /// Column `available_at`, if the event has a time of delivery. Without it and a [`delay`](Self::delay) the column is NULL,
    /// which means at once, so that only delayed rows pay for an entry in the index of due times.
    #[must_use]
    pub fn available_at(&self) -> Option<Timestamp> {
        self.envelope.available_at()
    }

    /// The delay that the database adds to its time at the insert, to give the column `available_at`.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.envelope.deliver_after()
    }

    /// True if delivery waits for a time.
    pub fn is_delayed(&self) -> bool {
        self.envelope.is_delayed()
    }

    /// The time that a delayed row has to wait, by the clocks of this process: a hint for when to look.
    pub fn due_in(&self, now: Timestamp) -> Duration {
        match (self.available_at(), self.due) {
            (Some(time), _) => time.since(now),
            (None, Some(due)) => due.saturating_duration_since(Instant::now()),
            (None, None) => Duration::ZERO,
        }
    }
}
