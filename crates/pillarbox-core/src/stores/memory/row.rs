use crate::clock::Timestamp;
use crate::settle::Status;
use crate::store::{BrokenRow, FetchedRow, OrderKey, Row};
use crate::write::NewRow;

/// A row of the event table.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) event: NewRow,
    /// Why the row makes no event. A row in memory needs no decoding, so only a test can break one.
    pub(super) broken: Option<String>,
    /// `None` until a node stamps a row that another program inserted.
    pub(super) partition: Option<u8>,
    pub(super) handler: Option<Box<str>>,
    pub(super) status: Status,
    pub(super) attempts: u32,
    /// `None` means at once, as NULL does in the SQL stores.
    pub(super) available_at: Option<Timestamp>,
    pub(super) created_at: Timestamp,
    pub(super) done_at: Option<Timestamp>,
    pub(super) last_error: Option<String>,
    pub(super) locked_by: Option<Box<str>>,
}

impl Stored {
    pub(super) fn new(event: NewRow, created_at: Timestamp) -> Self {
        Self {
            broken: None,
            partition: Some(event.partition()),
            handler: event.handler().map(Box::from),
            status: Status::New,
            attempts: 0,
            available_at: event.available_at(),
            created_at,
            done_at: None,
            last_error: None,
            locked_by: event.locked_by().map(Box::from),
            event,
        }
    }

    /// The row as a fetch hands it over.
    pub(super) fn read(&self, seq: i64) -> FetchedRow {
        let (attempts, timed) = (self.attempts, self.available_at.is_some());
        if let Some(reason) = &self.broken {
            let (partition, key) = (self.partition, self.order_key());
            return FetchedRow::Broken(BrokenRow { seq, attempts, timed, partition, key, reason: reason.clone() });
        }
        let (status, partition, locked_by) = (self.status, self.partition, self.locked_by.clone());
        let fresh = Row::fresh(&self.event, seq, self.created_at);
        FetchedRow::Row(Row { attempts, timed, status, partition, handler: self.handler.clone(), locked_by, ..fresh })
    }

    /// What it is ordered by; `None` if it has no key.
    pub(super) fn order_key(&self) -> Option<OrderKey> {
        let key = self.event.envelope().key()?;
        Some(OrderKey { handler: self.handler.clone(), key: key.into() })
    }
}
