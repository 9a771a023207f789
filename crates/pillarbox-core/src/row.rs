//! Rows of the table, their states, and the verdicts that change them.

mod new_row;
mod position;
mod raw;
mod verdict;

pub use new_row::NewRow;
pub use position::{InvalidPosition, Position};
pub use raw::{Column, RawRow};
pub use verdict::{Change, Expected, Status, Verdict};

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::event::{Envelope, EventId};

/// Identifies a row for good: its place, and the event and the handler that it is for.
///
/// The place alone does not. A database that fails over to a replica that lags, or is restored from a backup, loses its last
/// rows, and its sequence gives their numbers to the events that are written next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RowId {
    /// Its place in the order of the table.
    pub seq: i64,
    /// Column `event_id`.
    pub event_id: EventId,
    /// Column `handler`.
    pub handler: Option<Box<str>>,
}

/// The unit of order: the events of one key that are for one handler.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderKey {
    /// Column `handler`.
    pub handler: Option<Box<str>>,
    /// The key.
    pub key: Box<str>,
}

/// A row that was read, or could not be.
#[derive(Debug)]
pub enum FetchedRow {
    /// A row that can be handed to a handler.
    Row(Row),
    /// A row whose columns make no event; it goes DEAD by itself while the others go on.
    Broken(BrokenRow),
}

impl FetchedRow {
    /// The row's place in the order of the table.
    #[must_use]
    pub fn seq(&self) -> i64 {
        match self {
            Self::Row(row) => row.seq,
            Self::Broken(row) => row.seq,
        }
    }

    /// The row's identity.
    #[must_use]
    pub fn id(&self) -> RowId {
        match self {
            Self::Row(row) => row.id(),
            Self::Broken(row) => row.id(),
        }
    }

    /// The bytes of its payload and headers; of a row that makes no event, as far as they can be read.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        match self {
            Self::Row(row) => row.event.content_bytes(),
            Self::Broken(row) => row.content_bytes,
        }
    }

    /// True if the row has a due time.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        match self {
            Self::Row(row) => row.timed,
            Self::Broken(row) => row.timed,
        }
    }
}

/// A row whose columns make no event.
#[derive(Debug, Clone)]
pub struct BrokenRow {
    /// Its place in the order of the table.
    pub seq: i64,
    /// Column `event_id`, as it is.
    pub event_id: EventId,
    /// Column `handler`.
    pub handler: Option<Box<str>>,
    /// Failed handler calls so far.
    pub attempts: u32,
    /// The number of times that the row was replayed, from DEAD to NEW.
    pub replays: u32,
    /// True if it has a due time.
    pub timed: bool,
    /// Its partition, if it has one that exists.
    pub partition: Option<u8>,
    /// Its order key, as far as that can be read: the row keeps the later rows of its key waiting like any that fails.
    pub key: Option<OrderKey>,
    /// The bytes of its payload and headers, as far as they can be read.
    pub content_bytes: usize,
    /// The reason why it makes no event.
    pub reason: String,
}

impl BrokenRow {
    /// The row's identity.
    #[must_use]
    pub fn id(&self) -> RowId {
        RowId { seq: self.seq, event_id: self.event_id.clone(), handler: self.handler.clone() }
    }

    /// The state that verdicts on it are decided on.
    #[must_use]
    pub const fn expected(&self) -> Expected {
        Expected { attempts: self.attempts, replays: self.replays }
    }
}

/// An event in the table, or on the hot path the same event from memory.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its place in the order of the table, given by the database.
    pub seq: i64,
    /// The event. On the hot path it is the one that was written, which its rows share; one that was read from a table says nothing of
    /// a delay or a unique key.
    pub event: Arc<Envelope>,
    /// The handler the row is for, if its event has several.
    pub handler: Option<Box<str>>,
    /// Failed handler calls so far.
    pub attempts: u32,
    /// The number of times that the row was replayed, from DEAD to NEW.
    pub replays: u32,
    /// True if it has a due time: it was delayed, deferred or has failed before.
    pub timed: bool,
    /// NEW or RETRY.
    pub status: Status,
    /// Its group of keys; `None` if it is not assigned yet.
    pub partition: Option<u8>,
    /// Column `locked_by` before this node took the row; see [`PriorAttempt`](crate::ownership::PriorAttempt).
    pub locked_by: Option<Box<str>>,
    /// The time of the insert, by the database's clock; on the hot path by the writer's.
    pub created_at: Timestamp,
}

impl Row {
    /// A row that was written as `seq` and never handled.
    #[must_use]
    pub fn fresh(row: &NewRow, seq: i64, created_at: Timestamp) -> Self {
        let event = row.event();
        Self {
            seq,
            event: Arc::clone(event),
            handler: row.handler().map(Box::from),
            attempts: 0,
            replays: 0,
            timed: event.is_delayed(),
            status: Status::New,
            partition: Some(row.partition()),
            locked_by: None,
            created_at,
        }
    }

    /// The row's identity.
    #[must_use]
    pub fn id(&self) -> RowId {
        RowId { seq: self.seq, event_id: self.event.id().clone(), handler: self.handler.clone() }
    }

    /// The state that verdicts on it are decided on.
    #[must_use]
    pub const fn expected(&self) -> Expected {
        Expected { attempts: self.attempts, replays: self.replays }
    }

    /// Its order key; `None` if it has no key, and so no order.
    #[must_use]
    pub fn order_key(&self) -> Option<OrderKey> {
        Some(OrderKey { handler: self.handler.clone(), key: self.event.key()?.into() })
    }
}
