use std::sync::Arc;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::{Expected, Status};
use pillarbox_core::store::{BrokenRow, FailedAttempt, FetchedRow, OrderKey, Row, RowId};
use pillarbox_core::write::NewRow;

/// A row of the event table.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) event: NewRow,
    /// The reason why the row makes no event. A row in memory needs no decoding, so only a test can break one.
    pub(super) broken: Option<String>,
    /// `None` until a node stamps a row that another program inserted.
    pub(super) partition: Option<u8>,
    pub(super) handler: Option<Box<str>>,
    pub(super) status: Status,
    pub(super) attempts: u32,
    pub(super) replays: u32,
    /// `None` means at once, as NULL does in the SQL stores.
    pub(super) available_at: Option<Timestamp>,
    pub(super) created_at: Timestamp,
    pub(super) done_at: Option<Timestamp>,
    pub(super) last_error: Option<String>,
    pub(super) delivered_as: Option<String>,
    pub(super) failures: Vec<FailedAttempt>,
    /// True once another event has taken its unique key, after it had ended.
    pub(super) gave_up_key: bool,
    pub(super) locked_by: Option<Box<str>>,
}

impl Stored {
    /// A row that is inserted at `created_at`.
    pub(super) fn new(event: NewRow, created_at: Timestamp) -> Self {
        Self {
            broken: None,
            partition: Some(event.partition()),
            handler: event.handler().map(Box::from),
            status: Status::New,
            attempts: 0,
            replays: 0,
            available_at: event.available_at().or_else(|| event.delay().map(|delay| created_at.plus(delay))),
            created_at,
            done_at: None,
            last_error: None,
            delivered_as: None,
            failures: Vec::new(),
            gave_up_key: false,
            locked_by: event.locked_by().map(Box::from),
            event,
        }
    }

    /// Column `unique_key`.
    pub(super) fn unique_key(&self) -> Option<&str> {
        self.event.unique_key().filter(|_| !self.gave_up_key)
    }

    pub(super) fn id(&self, seq: i64) -> RowId {
        RowId { seq, event_id: self.event.envelope().id().clone(), handler: self.handler.clone() }
    }

    /// The state that verdicts on it are decided on.
    pub(super) fn expected(&self) -> Expected {
        Expected { attempts: self.attempts, replays: self.replays }
    }

    /// True if it is still that row, and not another one in its place.
    pub(super) fn is(&self, row: &RowId) -> bool {
        *self.event.envelope().id() == row.event_id && self.handler == row.handler
    }

    /// Adds a failed attempt to those it keeps.
    pub(super) fn failed(&mut self, attempts: u32, error: &str, node: &NodeId, at: Timestamp) {
        let (node, error) = (node.as_str().to_owned(), error.to_owned());
        FailedAttempt { attempts, at, node, error }.add_to(&mut self.failures);
    }

    /// The due time, if it has one. The due time of a NEW row is its writer's, and is no delay unless it is after the
    /// creation.
    pub(super) fn due_at(&self) -> Option<Timestamp> {
        self.available_at.filter(|due| self.status != Status::New || *due > self.created_at)
    }

    /// True if it waits for its first attempt in the place of its `seq`. A replayed row does not, nor one that was delayed.
    pub(super) fn is_plain(&self) -> bool {
        let undelayed = self.available_at.is_none_or(|due| due == self.created_at);
        self.status == Status::New && self.replays == 0 && undelayed
    }

    /// The row as a fetch hands it over.
    pub(super) fn read(&self, seq: i64) -> FetchedRow {
        let timed = self.due_at().is_some();
        if let Some(reason) = &self.broken {
            return FetchedRow::Broken(BrokenRow {
                seq,
                event_id: self.event.envelope().id().clone(),
                handler: self.handler.clone(),
                attempts: self.attempts,
                replays: self.replays,
                timed,
                partition: self.partition,
                key: self.order_key(),
                content_bytes: self.event.envelope().content_bytes(),
                reason: reason.clone(),
            });
        }
        FetchedRow::Row(Row {
            seq,
            event: Arc::clone(self.event.event()),
            handler: self.handler.clone(),
            attempts: self.attempts,
            replays: self.replays,
            timed,
            status: self.status,
            partition: self.partition,
            locked_by: self.locked_by.clone(),
            created_at: self.created_at,
        })
    }

    /// Its order key; `None` if it has no key.
    pub(super) fn order_key(&self) -> Option<OrderKey> {
        let key = self.event.envelope().key()?;
        Some(OrderKey { handler: self.handler.clone(), key: key.into() })
    }
}
