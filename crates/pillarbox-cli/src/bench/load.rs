use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox::clock::{Random as _, SystemRandom};
use pillarbox::error::StartError;
use pillarbox::event::EnvelopeBuilder;
use pillarbox::run::{OutboxBuilder, kind};
use pillarbox::{Delivery, Envelope, HandlerError, Outbox, Store};
use tokio::time::{Instant, sleep};

use super::lab::{BATCH, BYSTANDER, Lab};
use super::order::Order;
use crate::args::ModeArg;
use crate::failure::Failure;
use crate::stopwatch::Stopwatch;

/// The events of a run: numbered, of one size.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) events: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) payload: Arc<str>,
    /// How many keys they belong to in turn; otherwise each has its own.
    pub(crate) keys: Option<u32>,
}

impl Load {
    pub(crate) fn new(events: u32, payload_bytes: u32) -> Self {
        Self { events, payload_bytes, payload: payload(payload_bytes as usize).into(), keys: None }
    }

    /// The same events, of so many keys.
    pub(crate) fn of_keys(self, keys: Option<u32>) -> Self {
        Self { keys, ..self }
    }

    /// Event `number`. The number is its aggregate id, by which the handler knows it again.
    pub(crate) fn event(&self, number: u32) -> EnvelopeBuilder {
        let event =
            Envelope::builder("bench.event").aggregate("bench", number.to_string()).payload_json(&*self.payload);
        match self.keys {
            Some(keys) => event.key((number % keys).to_string()),
            None => event,
        }
    }

    /// All events, in batches for bulk writes.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Result<Vec<Envelope>, Failure>> {
        batches(self.events, |number| self.event(number))
    }

    /// Writes all events in transactions of [`BATCH`], without an outbox. Returns how long it took.
    pub(crate) async fn fill(&self, lab: &dyn Lab) -> Result<Duration, Failure> {
        let started = Instant::now();
        for batch in self.batches() {
            lab.transact(false, batch?).await?;
        }
        Ok(started.elapsed())
    }

    /// Writes an event that fails when it is delivered, and `waiting` others of its key behind it.
    pub(crate) async fn block(&self, lab: &dyn Lab, waiting: u32) -> Result<(), Failure> {
        let event = |_| Envelope::builder(BYSTANDER).aggregate("bench", "blocked").payload_json(&*self.payload);
        for batch in batches(waiting.saturating_add(1), event) {
            lab.transact(false, batch?).await?;
        }
        Ok(())
    }
}

/// So many events, [`BATCH`] at a time.
fn batches(
    events: u32,
    event: impl Fn(u32) -> EnvelopeBuilder,
) -> impl Iterator<Item = Result<Vec<Envelope>, Failure>> {
    (0..events).step_by(BATCH).map(move |first| {
        let numbers = (first..events).take(BATCH);
        let built: Result<_, _> = numbers.map(|number| event(number).build()).collect();
        built.map_err(Failure::during("build an event"))
    })
}

/// A JSON object of `bytes` bytes; random, because repetition would be compressed away by some databases.
fn payload(bytes: usize) -> String {
    const FRAME: usize = r#"{"data":""}"#.len();
    let digits = std::iter::repeat_with(|| format!("{:016x}", SystemRandom.next_u64()));
    let data: String = digits.take(bytes.div_ceil(16)).collect();
    format!(r#"{{"data":"{}"}}"#, &data[..bytes.saturating_sub(FRAME)])
}

/// What the handler has seen: the one thing that the database cannot tell.
#[derive(Debug)]
pub(crate) struct Calls {
    counts: Box<[AtomicU32]>,
    order: Option<Order>,
    pub(crate) stopwatch: Stopwatch,
}

impl Calls {
    pub(crate) fn new(load: &Load) -> Arc<Self> {
        let counts = (0..load.events).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { counts, order: load.keys.map(Order::new), stopwatch: Stopwatch::new(load.events as usize) })
    }

    /// Starts an outbox with all defaults, deletion aside, and a handler that only counts.
    pub(crate) async fn start_outbox(
        self: &Arc<Self>,
        store: Arc<dyn Store>,
        mode: ModeArg,
        delete_done: bool,
    ) -> Result<Outbox, Failure> {
        Ok(match mode {
            ModeArg::SingleNode => self.launch(Outbox::single_node(store), delete_done).await?,
            ModeArg::MultiNode => self.launch(Outbox::multi_node(store), delete_done).await?,
            ModeArg::Partitioned => self.launch(Outbox::partitioned(store), delete_done).await?,
            ModeArg::Ordered => self.launch(Outbox::ordered(store), delete_done).await?,
        })
    }

    async fn launch<K: kind::Deliverer>(
        self: &Arc<Self>,
        builder: OutboxBuilder<K>,
        delete_done: bool,
    ) -> Result<Outbox, StartError> {
        let calls = Arc::clone(self);
        let handler = move |delivery: Delivery| std::future::ready(calls.note(&delivery));
        builder.delete_done(delete_done).handle_all(handler).start().await
    }

    /// Notes a call. Bystanders are not to be delivered: the one that is reached fails, and is not tried again.
    fn note(&self, delivery: &Delivery) -> Result<(), HandlerError> {
        const DAY: Duration = Duration::from_secs(86_400);
        if delivery.event_type() == BYSTANDER {
            return Err(HandlerError::retry_after(DAY, "it blocks its key, as it was asked to"));
        }
        let Some(number) = delivery.aggregate_id().and_then(|id| id.parse::<usize>().ok()) else { return Ok(()) };
        if let Some(count) = self.counts.get(number) {
            self.stopwatch.handled(number, Instant::now());
            let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
            if let Some(order) = self.order.as_ref().filter(|_| is_first) {
                order.note(number, delivery.seq());
            }
        }
        Ok(())
    }

    /// Events that were called at all.
    pub(crate) fn called(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed) > 0)).sum()
    }

    /// First calls after the first call of a later event of the same key; `None` if nobody asked for an order.
    pub(crate) fn out_of_order(&self) -> Option<u64> {
        self.order.as_ref().map(Order::violations)
    }

    /// Calls beyond the first for an event.
    pub(crate) fn duplicates(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed).saturating_sub(1))).sum()
    }
}

/// Waits until the outboxes have recorded that many events as DONE, asking the process rather than the database so that
/// the waiting costs the measurement nothing.
pub(crate) async fn wait_until_done(outboxes: &[Outbox], events: u32) -> Result<(), Failure> {
    const LOOK_AGAIN: Duration = Duration::from_millis(2);
    const NO_PROGRESS: Duration = Duration::from_secs(60);
    let (mut done, mut moved) = (0, Instant::now());
    while done < u64::from(events) {
        sleep(LOOK_AGAIN).await;
        let now = outboxes.iter().map(|outbox| outbox.stats().done).sum();
        if now > done {
            (done, moved) = (now, Instant::now());
        } else if moved.elapsed() > NO_PROGRESS {
            return Err(Failure::Stalled { done, events: events.into(), seconds: NO_PROGRESS.as_secs() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_of_the_size_asked_for() {
        for bytes in [16, 200, 1_048_576] {
            let text = payload(bytes);
            assert_eq!(text.len(), bytes);
            assert!(Envelope::json("x", text).is_ok());
        }
    }

    #[test]
    fn batches_hold_every_event_once() {
        let load = Load::new(2_500, 16);
        let events = load.batches().flat_map(Result::unwrap);
        let numbers: Vec<_> = events.map(|event| event.aggregate_id().unwrap().to_owned()).collect();
        assert_eq!(numbers, (0..2_500).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}
