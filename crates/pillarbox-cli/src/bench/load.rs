use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox::clock::{Random as _, SystemRandom};
use pillarbox::error::StartError;
use pillarbox::event::EnvelopeBuilder;
use pillarbox::run::{OutboxBuilder, kind};
use pillarbox::{Delivery, Envelope, Outbox, Store};
use tokio::time::{Instant, sleep};

use super::lab::{BATCH, Lab};
use crate::args::ModeArg;
use crate::failure::Failure;
use crate::stopwatch::Stopwatch;

/// The events of a run: numbered, of one size.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) events: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) payload: Arc<str>,
}

impl Load {
    pub(crate) fn new(events: u32, payload_bytes: u32) -> Self {
        Self { events, payload_bytes, payload: payload(payload_bytes as usize).into() }
    }

    /// Event `number`. The number is its aggregate id, by which the handler knows it again.
    pub(crate) fn event(&self, number: u32) -> EnvelopeBuilder {
        Envelope::builder("bench.event").aggregate("bench", number.to_string()).payload_json(&*self.payload)
    }

    /// All events, in batches for bulk writes.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Result<Vec<Envelope>, Failure>> {
        (0..self.events).step_by(BATCH).map(|first| {
            let numbers = (first..self.events).take(BATCH);
            numbers
                .map(|number| self.event(number).build())
                .collect::<Result<_, _>>()
                .map_err(Failure::during("build an event"))
        })
    }

    /// Writes all events in transactions of [`BATCH`], without an outbox. Returns how long it took.
    pub(crate) async fn fill(&self, lab: &dyn Lab) -> Result<Duration, Failure> {
        let started = Instant::now();
        for batch in self.batches() {
            lab.transact(false, batch?).await?;
        }
        Ok(started.elapsed())
    }
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
    pub(crate) stopwatch: Stopwatch,
}

impl Calls {
    pub(crate) fn new(events: u32) -> Arc<Self> {
        let counts = (0..events).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { counts, stopwatch: Stopwatch::new(events as usize) })
    }

    /// Starts an outbox with all defaults and a handler that only counts.
    pub(crate) async fn start_outbox(
        self: &Arc<Self>,
        store: Arc<dyn Store>,
        mode: ModeArg,
    ) -> Result<Outbox, Failure> {
        Ok(match mode {
            ModeArg::SingleNode => self.launch(Outbox::single_node(store)).await?,
            ModeArg::MultiNode => self.launch(Outbox::multi_node(store)).await?,
            ModeArg::Ordered => self.launch(Outbox::ordered(store)).await?,
        })
    }

    async fn launch<K: kind::Deliverer>(self: &Arc<Self>, builder: OutboxBuilder<K>) -> Result<Outbox, StartError> {
        let calls = Arc::clone(self);
        let handler = move |delivery: Delivery| {
            calls.note(&delivery);
            std::future::ready(())
        };
        builder.handle_all(handler).start().await
    }

    fn note(&self, delivery: &Delivery) {
        let Some(number) = delivery.aggregate_id().and_then(|id| id.parse::<usize>().ok()) else { return };
        if let Some(count) = self.counts.get(number) {
            count.fetch_add(1, Ordering::Relaxed);
            self.stopwatch.handled(number, Instant::now());
        }
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
