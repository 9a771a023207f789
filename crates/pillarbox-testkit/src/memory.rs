use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pillarbox_core::clock::{Clock, SystemClock, Timestamp};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::EventId;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::Store;
use pillarbox_memory::{Memory, MemoryRow, MemoryStore, MemoryTransaction};

use crate::{Capabilities, Columns, Harness};

/// The harness of the in-memory store.
#[derive(Debug)]
pub struct MemoryHarness {
    store: MemoryStore,
    clock: Arc<JumpingClock>,
}

/// The operating system's clock, but for the seconds it was put forward, or back.
#[derive(Debug, Default)]
struct JumpingClock {
    ahead: AtomicI64,
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        seconds_after(SystemClock.now(), self.ahead.load(Ordering::SeqCst))
    }
}

fn seconds_after(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_micros(time.as_micros() + seconds * 1_000_000)
}

impl MemoryHarness {
    fn row(&self, event_id: &str) -> Result<MemoryRow, BoxError> {
        let row = self.store.inspect().row_of(&EventId::new(event_id)?);
        row.ok_or_else(|| format!("no event `{event_id}`").into())
    }
}

impl Harness for MemoryHarness {
    type Marker = Memory;
    type Transaction = MemoryTransaction;
    type Source<'a> = &'a MemoryStore;

    const CAPABILITIES: Capabilities =
        Capabilities { sql: false, concurrent_writers: true, wake_ups: true, row_locks: false, tells_writers: true };

    async fn create() -> Result<Self, BoxError> {
        let clock = Arc::new(JumpingClock::default());
        Ok(Self { store: MemoryStore::with_clock(clock.clone()), clock })
    }

    async fn destroy(self) -> Result<(), BoxError> {
        Ok(())
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn connect(&self) -> Result<Arc<dyn Store>, BoxError> {
        Ok(Arc::new(self.store.reopen()))
    }

    fn source(&self) -> &MemoryStore {
        &self.store
    }

    async fn savepoint(transaction: &mut MemoryTransaction, name: &str) -> Result<(), BoxError> {
        transaction.savepoint(name);
        Ok(())
    }

    async fn rollback_to(transaction: &mut MemoryTransaction, name: &str) -> Result<(), BoxError> {
        Ok(transaction.rollback_to(name)?)
    }

    async fn release(transaction: &mut MemoryTransaction, name: &str) -> Result<(), BoxError> {
        Ok(transaction.release(name)?)
    }

    async fn insert_three_columns(&self, event_id: &str, event_type: &str, payload: &str) -> Result<(), BoxError> {
        self.store.inspect().insert_three_columns(event_id, event_type, payload).map(drop)
    }

    async fn insert_of_aggregate(&self, event_id: &str, aggregate_id: &str) -> Result<(), BoxError> {
        self.store.inspect().insert_of_aggregate(event_id, aggregate_id).map(drop)
    }

    async fn break_row(&self, event_id: &str) -> Result<(), BoxError> {
        let row = self.row(event_id)?;
        found(self.store.inspect().corrupt(row.seq, "the headers are no map of strings"))
    }

    /// The table in memory holds none that does not exist.
    async fn set_partition(&self, _event_id: &str, partition: i16) -> Result<(), BoxError> {
        if u8::try_from(partition).is_ok() {
            Err("only partitions that do not exist are left out".into())
        } else {
            Ok(())
        }
    }

    async fn set_handler(&self, event_id: &str, handler: &str) -> Result<(), BoxError> {
        let row = self.row(event_id)?;
        found(self.store.inspect().set_handler(row.seq, handler))
    }

    async fn insert_broken(&self, event_id: &str) -> Result<(), BoxError> {
        let seq = self.store.inspect().insert_three_columns(event_id, "broken", "{}")?;
        found(self.store.inspect().corrupt(seq, "the headers are no map of strings"))
    }

    async fn columns(&self, event_id: &str) -> Result<Option<Columns>, BoxError> {
        Ok(self.row(event_id).ok().map(columns))
    }

    async fn make_due(&self, event_id: &str) -> Result<(), BoxError> {
        let row = self.row(event_id)?;
        found(self.store.inspect().make_due(row.seq))
    }

    async fn age(&self, seconds: i64) -> Result<(), BoxError> {
        self.clock.ahead.fetch_add(seconds, Ordering::SeqCst);
        Ok(())
    }

    async fn age_from(&self, _seq: i64, seconds: i64) -> Result<(), BoxError> {
        self.age(seconds).await
    }

    async fn age_audit(&self, seconds: i64) -> Result<(), BoxError> {
        self.age(seconds).await
    }

    async fn age_inbox(&self, seconds: i64) -> Result<(), BoxError> {
        self.age(seconds).await
    }

    async fn register(&self, node: &NodeId, mode: &str, lease: i64) -> Result<(), BoxError> {
        self.store.inspect().register(node, mode, seconds_after(self.clock.now(), lease));
        Ok(())
    }

    async fn expire(&self, node: &NodeId) -> Result<(), BoxError> {
        found(self.store.inspect().expire(node))
    }

    async fn go_back(&self) -> Result<(), BoxError> {
        self.store.inspect().lose_rows(seconds_after(self.clock.now(), 2));
        Ok(())
    }

    async fn set_clock_back(&self, seconds: i64) -> Result<(), BoxError> {
        self.clock.ahead.fetch_sub(seconds, Ordering::SeqCst);
        Ok(())
    }

    async fn set_clock_forward(&self, by: Duration) -> Result<(), BoxError> {
        self.clock.ahead.fetch_add(i64::try_from(by.as_secs())?, Ordering::SeqCst);
        Ok(())
    }

    /// In memory a node that leaves touches no row either.
    async fn forget(&self, node: &NodeId) -> Result<(), BoxError> {
        Ok(self.store.leave(node).await?)
    }
}

fn found(found: bool) -> Result<(), BoxError> {
    if found { Ok(()) } else { Err("there is no such row".into()) }
}

fn columns(row: MemoryRow) -> Columns {
    let event = &row.event;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let binary = event.payload().as_json().is_none();
    Columns {
        seq: row.seq,
        event_type: event.event_type().to_owned(),
        aggregate_type: Some(event.aggregate_type().to_owned()),
        aggregate_id: owned(event.aggregate_id()),
        tenant_id: owned(event.tenant_id()),
        ordering_key: owned(event.key()),
        partition: row.partition,
        payload: owned(event.payload().as_json()),
        payload_bytes: binary.then(|| event.payload().as_bytes().to_vec()),
        content_type: binary.then(|| event.payload().content_type().to_owned()),
        headers: event.headers().to_json(),
        status: row.status.code(),
        attempts: row.attempts,
        timed: row.available_at.is_some_and(|at| at >= row.created_at),
        ended: row.done_at.is_some(),
        last_error: row.last_error,
        locked_by: row.locked_by,
    }
}
