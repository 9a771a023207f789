use std::sync::Arc;

use indicatif::ProgressBar;
use pillarbox::Envelope;
use pillarbox::backend::clock::{Random as _, SystemRandom};
use pillarbox::event::EnvelopeBuilder;

use super::lab::{BATCH, BYSTANDER, BenchDb, COMPANY, EVENT};
use crate::failure::Failure;

/// The events of a run: numbered, of one size.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) events: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) payload: Arc<str>,
    /// The number of keys, assigned to the events in turn; with `None` each event has its own.
    pub(crate) keys: Option<u32>,
    event_type: &'static str,
}

impl Load {
    pub(crate) fn new(events: u32, payload_bytes: u32) -> Self {
        Self { events, payload_bytes, payload: payload(payload_bytes as usize).into(), keys: None, event_type: EVENT }
    }

    /// The same events, with this many keys.
    pub(crate) fn of_keys(self, keys: Option<u32>) -> Self {
        Self { keys, ..self }
    }

    /// The same load, with this many events.
    pub(crate) fn of_events(&self, events: u32) -> Self {
        Self { events, ..self.clone() }
    }

    /// Events of the same size that are not measured, and are written until the writers are stopped.
    pub(crate) fn company(&self) -> Self {
        Self { events: u32::MAX, event_type: COMPANY, ..self.clone() }
    }

    /// Event `number`. The number is its aggregate id, by which the handler recognizes it.
    pub(crate) fn event(&self, number: u32) -> EnvelopeBuilder {
        let event =
            Envelope::builder(self.event_type).aggregate("bench", number.to_string()).payload_json(&*self.payload);
        match self.keys {
            Some(keys) => event.key((number % keys).to_string()),
            None => event,
        }
    }

    /// All events, in batches for bulk writes.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Result<Vec<Envelope>, Failure>> {
        batches(self.events, |number| self.event(number))
    }

    /// Writes all events in transactions of [`BATCH`], without an outbox, and shows the progress on `bar`.
    pub(crate) async fn fill(&self, lab: &dyn BenchDb, bar: &ProgressBar) -> Result<(), Failure> {
        for batch in self.batches() {
            let batch = batch?;
            let events = batch.len() as u64;
            lab.transact(false, batch).await?;
            bar.inc(events);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Writes an event that fails when it is delivered, and `waiting` others of its key behind it.
    pub(crate) async fn block(&self, lab: &dyn BenchDb, waiting: u32) -> Result<(), Failure> {
        let event = |_| Envelope::builder(BYSTANDER).aggregate("bench", "blocked").payload_json(&*self.payload);
        for batch in batches(waiting.saturating_add(1), event) {
            lab.transact(false, batch?).await?;
        }
        Ok(())
    }
}

/// Builds events, [`BATCH`] at a time.
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

/// A JSON object of `bytes` bytes; random, because some databases would compress repetition away.
fn payload(bytes: usize) -> String {
    const FRAME: usize = r#"{"data":""}"#.len();
    let digits = std::iter::repeat_with(|| format!("{:016x}", SystemRandom.next_u64()));
    let data: String = digits.take(bytes.div_ceil(16)).collect();
    format!(r#"{{"data":"{}"}}"#, &data[..bytes.saturating_sub(FRAME)])
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
