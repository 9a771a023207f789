use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use pillarbox::{Delivery, HandlerError};
use tokio::time::Instant;

use super::lab::{BYSTANDER, EVENT};
use super::load::Load;
use super::order::Order;
use pillarbox_program::stopwatch::Stopwatch;

/// The calls of the handler, which are the one thing that the database cannot count.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Calls for each event; empty if only their sum is counted.
    counts: Box<[AtomicU32]>,
    sum: AtomicU64,
    order: Option<Order>,
    pub(crate) stopwatch: Stopwatch,
}

impl Calls {
    pub(crate) fn new(load: &Load) -> Arc<Self> {
        let counts = (0..load.events).map(|_| AtomicU32::new(0)).collect();
        let stopwatch = Stopwatch::new(load.events as usize);
        Arc::new(Self { counts, sum: AtomicU64::new(0), order: load.keys.map(Order::new), stopwatch })
    }

    /// Counts calls without telling events apart, in constant memory.
    pub(crate) fn sum_only() -> Arc<Self> {
        Self::new(&Load::new(0, 16))
    }

    /// All calls, if events are not told apart.
    pub(crate) fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// Notes a call. The call of a bystander fails, to block its key, and is due again a day later.
    pub(crate) fn note(&self, delivery: &Delivery) -> Result<(), HandlerError> {
        const DAY: Duration = Duration::from_secs(86_400);
        if delivery.event_type() == BYSTANDER {
            return Err(HandlerError::retry_after(DAY, "it blocks its key, as it was asked to"));
        }
        if delivery.event_type() != EVENT {
            return Ok(());
        }
        if self.counts.is_empty() {
            self.sum.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if let Some(number) = delivery.aggregate_id().and_then(|id| id.parse::<usize>().ok()) {
            self.note_number(number, delivery.seq());
        }
        Ok(())
    }

    /// Notes that a broker has confirmed event `number`.
    pub(crate) fn confirmed(&self, number: usize) {
        self.note_number(number, 0);
    }

    fn note_number(&self, number: usize, seq: i64) {
        if let Some(count) = self.counts.get(number) {
            self.stopwatch.handled(number, Instant::now());
            let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
            if let Some(order) = self.order.as_ref().filter(|_| is_first) {
                order.note(number, seq);
            }
        }
    }

    /// Events with at least one call.
    pub(crate) fn called(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed) > 0)).sum()
    }

    /// First calls that came after the first call of a later event of the same key; `None` if no order is checked.
    pub(crate) fn out_of_order(&self) -> Option<u64> {
        self.order.as_ref().map(Order::violations)
    }

    /// Calls beyond the first for an event.
    pub(crate) fn duplicates(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed).saturating_sub(1))).sum()
    }
}
