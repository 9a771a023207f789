use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::{BoxError, StoreError};
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::row::Status;
use pillarbox_core::store::Store;
use pillarbox_engine::run::Outbox;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::Recorder;
use crate::recorder::gated;

const KEYS: usize = 5;
const POLL: Duration = Duration::from_millis(20);

/// An outbox of each mode, on tables of its own, under which a test takes the database back to an earlier state: by a failover to
/// a replica that lags, or by restoring a backup.
#[derive(Debug)]
pub struct FailoverDrill {
    outboxes: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    mode: NodeMode,
    store: Arc<dyn Store>,
    outbox: Outbox,
    recorder: Recorder,
    /// Lets as many events pass through the handler as it has permits.
    gate: Arc<Semaphore>,
}

impl FailoverDrill {
    /// A table for each mode.
    pub const TABLES: [&str; 4] = ["single_event", "multi_event", "partitioned_event", "ordered_event"];

    /// Makes the tables, and starts an outbox on each, with leases of this length.
    ///
    /// # Errors
    /// When a store fails.
    pub async fn start(stores: [Arc<dyn Store>; 4], lease: Duration) -> Result<Self, BoxError> {
        let modes = [NodeMode::SingleNode, NodeMode::MultiNode, NodeMode::Partitioned, NodeMode::Ordered];
        let mut outboxes = Vec::new();
        for (mode, store) in modes.into_iter().zip(stores) {
            store.migrate().await?;
            outboxes.extend(Self::of(mode, store, lease).await?.outboxes);
        }
        Ok(Self { outboxes })
    }

    /// Starts an outbox of one mode, on a table that is there.
    pub(crate) async fn of(mode: NodeMode, store: Arc<dyn Store>, lease: Duration) -> Result<Self, BoxError> {
        let (recorder, gate) = gated();
        let outbox = Outbox::builder(mode).store(Arc::clone(&store)).lease(lease).poll_interval(POLL, POLL);
        let outbox = outbox.handle_all(recorder.clone()).start().await?;
        Ok(Self { outboxes: vec![Running { mode, store, outbox, recorder, gate }] })
    }

    /// The stores, in the order of the tables.
    pub fn stores(&self) -> impl Iterator<Item = &dyn Store> {
        self.outboxes.iter().map(|running| &*running.store)
    }

    /// Writes events to each table and waits until they are delivered.
    ///
    /// # Errors
    /// When a store or `write` fails.
    pub async fn deliver(
        &self,
        count: usize,
        write: impl AsyncFn(&dyn Store, Vec<Envelope>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        for running in &self.outboxes {
            running.gate.add_permits(count);
            write(&*running.store, of_keys(count)?).await?;
        }
        for running in &self.outboxes {
            while running.store.counts().await?.pending() > 0 {
                sleep(POLL).await;
            }
        }
        Ok(())
    }

    /// Writes events to each table and waits until a handler runs, which does not end: the others wait in memory or in the table.
    ///
    /// # Errors
    /// When `write` fails.
    pub async fn hold(
        &self,
        count: usize,
        write: impl AsyncFn(&dyn Store, Vec<Envelope>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        for running in &self.outboxes {
            let before = running.recorder.calls().len();
            write(&*running.store, of_keys(count)?).await?;
            running.recorder.wait_for_calls(before + 1).await;
        }
        Ok(())
    }

    /// Writes new events to each table, which has gone back, and lets all handlers end. Each new event is delivered, once by each node
    /// that does, in the order of the table or of its key where there is one, and none is DONE without a call.
    ///
    /// # Errors
    /// When a store or `write` fails.
    ///
    /// # Panics
    /// When a promise is broken.
    pub async fn finish(
        self,
        count: usize,
        write: impl AsyncFn(&dyn Store, Vec<Envelope>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let mut written = Vec::new();
        for running in &self.outboxes {
            let events = of_keys(count)?;
            write(&*running.store, events.clone()).await?;
            written.push(events);
        }
        for running in &self.outboxes {
            running.gate.add_permits(Semaphore::MAX_PERMITS / 2);
        }
        for (running, events) in self.outboxes.iter().zip(&written) {
            // A store may still find out that its connections lead nowhere.
            while !running.store.counts().await.is_ok_and(|counts| counts.pending() == 0) {
                sleep(POLL).await;
            }
            running.outbox.shutdown().await;
            running.check(events).await?;
        }
        Ok(())
    }
}

impl Running {
    async fn check(&self, events: &[Envelope]) -> Result<(), StoreError> {
        let place: HashMap<_, _> =
            events.iter().enumerate().map(|(index, event)| (event.id().clone(), index)).collect();
        let mut first_calls: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut seen = vec![false; events.len()];
        let mut by_node = HashSet::new();
        for call in self.recorder.calls() {
            let Some(index) = place.get(&call.id) else { continue };
            // What ran when the lease was lost is delivered again, by the node's next incarnation; its place is that of its first call.
            let is_new = by_node.insert((*index, call.node.clone()));
            assert!(is_new, "{}: {} delivered the new event {index} twice", self.mode, call.node);
            if !std::mem::replace(&mut seen[*index], true) {
                let order = if self.mode == NodeMode::Ordered { 0 } else { index % KEYS };
                first_calls.entry(order).or_default().push(*index);
            }
        }
        let missing = seen.iter().filter(|seen| !**seen).count();
        assert_eq!(missing, 0, "{}: of {} new events so many were never delivered", self.mode, events.len());
        let ordered = matches!(self.mode, NodeMode::Partitioned | NodeMode::Ordered);
        for calls in first_calls.into_values() {
            assert!(calls.is_sorted() || !ordered, "{}: new events were delivered in the order {calls:?}", self.mode);
        }
        for event in events {
            let records = self.store.records(event.id().as_str()).await?;
            let states: Vec<i16> = records.iter().map(|record| record.status).collect();
            assert_eq!(states, [Status::Done.code()], "{}: event {}", self.mode, event.id());
        }
        Ok(())
    }
}

/// Events of a few keys in turn.
fn of_keys(count: usize) -> Result<Vec<Envelope>, BoxError> {
    let event = |index| Envelope::builder("test.keyed").key(format!("key-{}", index % KEYS)).payload_json("{}").build();
    Ok((0..count).map(event).collect::<Result<_, _>>()?)
}
