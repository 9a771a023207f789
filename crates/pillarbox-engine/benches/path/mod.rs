//! The way of an event within a process, on the in-memory store: what the programs beside this folder measure.
//!
//! One thread, a clock that stands still, and randomness from a counter, so that every run does the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pillarbox_core::clock::{Clock, Random, Timestamp};
use pillarbox_core::event::{Envelope, Stamp};
use pillarbox_core::handle::Delivery;
use pillarbox_core::write::insert;
use pillarbox_engine::run::{Outbox, OutboxBuilder, kind};
use pillarbox_memory::MemoryStore;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// A moment in 2023, for ever.
#[derive(Debug)]
struct Standstill;

impl Clock for Standstill {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000)
    }
}

/// Numbers that are spread well and the same in every run: `SplitMix64` from seed 0.
#[derive(Debug, Default)]
pub(crate) struct Counted(AtomicU64);

impl Random for Counted {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The source of the events' ids and times.
pub(crate) fn stamp() -> Stamp {
    Stamp::new(Arc::new(Standstill), Arc::new(Counted::default()))
}

/// 200 bytes of JSON.
const PAYLOAD: &str = concat!(
    r#"{"order_id":"order-4711","customer_id":"customer-1815","total_cents":1999,"currency":"EUR","#,
    r#""note":"Leave it with the neighbours, please, and ring twice.","lines":[{"sku":"ABC-123","n":1}],"gift":"no"}"#,
);

/// An event as services write them.
pub(crate) fn envelope(stamp: &Stamp, number: u32, keys: u32) -> Envelope {
    let event = Envelope::builder("order.placed").aggregate("order", format!("order-{}", number % keys));
    event.payload_json(PAYLOAD).build_with(stamp).expect("a valid event")
}

/// Events of so many keys in turn.
pub(crate) fn envelopes(events: u32, keys: u32) -> Vec<Envelope> {
    let stamp = stamp();
    (0..events).map(|number| envelope(&stamp, number, keys)).collect()
}

/// A table in which events wait, or will.
#[derive(Debug)]
pub(crate) struct Table {
    /// One thread, whose timers do not wait for time to pass.
    runtime: Runtime,
    store: MemoryStore,
}

impl Table {
    pub(crate) fn empty() -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        Self { runtime: runtime.expect("a runtime starts"), store: MemoryStore::with_clock(Arc::new(Standstill)) }
    }

    /// A table in which so many events of so many keys wait.
    pub(crate) fn backlog(events: u32, keys: u32) -> Self {
        let table = Self::empty();
        let mut tx = table.store.begin();
        table.runtime.block_on(insert(&table.store, &mut tx, envelopes(events, keys))).expect("the table takes them");
        tx.commit();
        table
    }

    /// Delivers the backlog to a handler that does nothing, and records that it is done. Returns the table, so that
    /// freeing it is not measured.
    pub(crate) fn drain<K: kind::DeliveringMode>(
        self,
        outbox: impl FnOnce(MemoryStore) -> OutboxBuilder<K>,
        events: u32,
    ) -> Self {
        self.runtime.block_on(async {
            let (outbox, calls) = start(outbox(self.store.clone()), events).await;
            finish(outbox, calls, events).await;
        });
        self
    }

    /// Writes events one per transaction and delivers them from memory. Returns the table, so that freeing it is not
    /// measured.
    pub(crate) fn write_and_deliver(self, events: Vec<Envelope>) -> Self {
        // So many that the hot queue takes them all.
        const AT_ONCE: usize = 100;
        let count = u32::try_from(events.len()).expect("a small number");
        self.runtime.block_on(async {
            let (outbox, calls) = start(Outbox::single_node(self.store.clone()), count).await;
            for (number, event) in events.into_iter().enumerate() {
                let mut tx = outbox.begin(&self.store).await.expect("a transaction begins");
                outbox.write(&mut tx, event).await.expect("the table takes it");
                tx.commit().await.expect("it commits");
                if number % AT_ONCE == AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
            }
            finish(outbox, calls, count).await;
        });
        self
    }
}

async fn start<K: kind::DeliveringMode>(outbox: OutboxBuilder<K>, events: u32) -> (Outbox, Arc<Calls>) {
    let calls = Arc::new(Calls { left: AtomicU32::new(events), all: Notify::new() });
    let noted = Arc::clone(&calls);
    let handler = move |_: Delivery| {
        noted.note();
        std::future::ready(())
    };
    let outbox = outbox.clock(Standstill).random(Counted::default()).handle_all(handler).start().await;
    (outbox.expect("an outbox starts"), calls)
}

async fn finish(outbox: Outbox, calls: Arc<Calls>, events: u32) {
    calls.all.notified().await;
    // What was handled is recorded before it returns.
    outbox.shutdown().await;
    assert_eq!(outbox.stats().done, u64::from(events));
}

/// Calls of the handler that are still to come.
#[derive(Debug)]
struct Calls {
    left: AtomicU32,
    all: Notify,
}

impl Calls {
    fn note(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.all.notify_one();
        }
    }
}
