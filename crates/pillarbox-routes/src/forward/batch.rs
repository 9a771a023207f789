use std::time::Duration;

use futures_util::future::join_all;
use pillarbox_core::handle::{Delivery, HandlerError, Outcome};
use pillarbox_core::planted_bug;
use tokio::time::Instant;

use super::admission::ProbeGuard;
use super::answer::{Answer, answer};
use super::delay::Delay;
use super::findings::{Findings, blames_a_part, findings};
use super::forwarder::Inner;
use super::prepared::Prepared;
use super::send::{no_receipt, send};
use super::table::Table;
use crate::breaker::{Admission, SendSlot};
use crate::route::{RouteOutput, RouteRuntime};

/// The time that a batch may wait under the limits of its route. Beyond it the batch is deferred, which counts no attempt: it would
/// keep a worker from other routes, and a call that reaches its time limit counts as a failed attempt.
const MAX_WAIT_FOR_SLOT: Duration = Duration::from_secs(1);

impl Inner {
    /// Passes events on, each by its route; an answer for each.
    pub(super) async fn forward(&self, deliveries: Vec<Delivery>) -> Vec<Answer> {
        let table = self.table();
        // Nearly always one: the events of a call have one lane, and an event that is called alone has too.
        let mut groups: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
        for (place, delivery) in deliveries.iter().enumerate() {
            let runtime = table.runtime(delivery).map(|(index, _)| index);
            match groups.iter_mut().find(|(other, _)| *other == runtime) {
                Some((_, places)) => places.push(place),
                None => groups.push((runtime, vec![place])),
            }
        }
        let calls = groups.iter().map(|(runtime, places)| {
            let events: Vec<&Delivery> = places.iter().filter_map(|place| deliveries.get(*place)).collect();
            let table = &table;
            async move {
                match runtime.and_then(|index| table.runtimes.get(index).map(|runtime| (index, runtime))) {
                    Some((index, runtime)) => self.forward_by(table, index, runtime, &events).await,
                    None => events.iter().map(|event| self.unrouted(table.unrouted, event)).collect(),
                }
            }
        });
        let answered = join_all(calls).await;
        let places = groups.into_iter().map(|(_, places)| places);
        let mut answers: Vec<(usize, Answer)> =
            places.zip(answered).flat_map(|(places, answers)| places.into_iter().zip(answers)).collect();
        answers.sort_unstable_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Takes events of one route; an answer for each.
    async fn forward_by(
        &self,
        table: &Table,
        index: usize,
        runtime: &RouteRuntime,
        events: &[&Delivery],
    ) -> Vec<Answer> {
        let Some(output) = &runtime.output else {
            runtime.meters.dropped.increment(events.len() as u64);
            return events.iter().map(|_| Ok(Outcome::Done)).collect();
        };
        if output.target.fixed().is_none() {
            output.tenants.lock().see(events.iter().map(|event| event.tenant_id()), Instant::now());
        }
        let mut probe = match self.admit(table, index, output, events) {
            Admission::Wait { until, problem } => {
                let why = format!("is paused: {problem}");
                return events.iter().map(|_| self.defer(runtime, until, &why)).collect();
            }
            Admission::Probe => Some(ProbeGuard(output)),
            Admission::Go => None,
        };
        let mut prepared = self.prepare(runtime, output, events);
        if prepared.messages.is_empty() {
            // If nothing could be sent, nothing is learnt.
            return complete(prepared.answers, no_answer);
        }
        let slot = match self.wait_for_slot(output, &mut probe).await {
            Ok(slot) => slot,
            Err((until, why)) => return complete(prepared.answers, || self.defer(runtime, until, &why)),
        };
        self.prepare_again(runtime, output, &mut prepared);
        self.send_and_learn(runtime, output, prepared, slot).await
    }

    /// Waits until the limits of the route let the batch go, and decides again whether it may: the route may have been paused meanwhile. An error
    /// is the time until which the batch has to wait, and the reason.
    async fn wait_for_slot<'a>(
        &self,
        output: &'a RouteOutput,
        probe: &mut Option<ProbeGuard<'a>>,
    ) -> Result<SendSlot<'a>, (Instant, String)> {
        let slot = match output.limits.slot(MAX_WAIT_FOR_SLOT).await {
            Ok(slot) => slot,
            Err(not_now) => {
                let until = Instant::now() + not_now.0;
                self.pause_types(output, until);
                return Err((until, "has reached its limits".to_owned()));
            }
        };
        match self.admit_again(output, probe.is_some()) {
            Admission::Wait { until, problem } => return Err((until, format!("is paused: {problem}"))),
            Admission::Probe => {
                probe.get_or_insert_with(|| ProbeGuard(output));
            }
            Admission::Go => {}
        }
        Ok(slot)
    }

    /// Sends the messages of a batch, and tells the breakers the result; an answer for each event.
    async fn send_and_learn(
        &self,
        runtime: &RouteRuntime,
        output: &RouteOutput,
        prepared: Prepared<'_>,
        slot: SendSlot<'_>,
    ) -> Vec<Answer> {
        let Prepared { mut answers, sent, messages, parts, probes: _probes } = prepared;
        if messages.is_empty() {
            return complete(answers, no_answer);
        }
        let permit = slot.spend(messages.len());
        let receipts = send(runtime, output, &sent, messages).await;
        drop(permit);
        let now = Instant::now();
        let is_well = receipts.iter().all(Result::is_ok) && output.targets.lock().is_empty();
        let found = if is_well { Findings::well() } else { findings(&parts, &receipts) };
        let failed = sent.iter().zip(&parts).zip(&receipts).filter(|(_, receipt)| blames_a_part(receipt));
        let failed = failed.filter_map(|((event, parts), _)| Some((event.tenant_id(), parts.as_ref()?)));
        let paused = self.learn_all(runtime, output, now, &found, failed);
        let (mut receipts, mut sent) = (receipts.into_iter().zip(parts), sent.into_iter());
        let misses = planted_bug::is_active("receipts_out_of_step");
        for waiting in answers.iter_mut().filter(|answer| answer.is_none() || misses) {
            let (event, (receipt, parts)) = (sent.next(), receipts.next().unwrap_or_else(|| (no_receipt(), None)));
            let delay = receipt.as_ref().err().and_then(|error| self.delay(output, error, parts.as_ref(), paused, now));
            if let (Some(Delay::Prolonged(_)), Some(event)) = (&delay, event) {
                output.stuck_event_log.warn(runtime, output, event, &receipt);
            }
            *waiting = Some(answer(&runtime.name, receipt, delay.map(Delay::length)));
        }
        complete(answers, || answer(&runtime.name, no_receipt(), None))
    }
}

/// Gives each event without an answer the one that `rest` makes.
fn complete(answers: Vec<Option<Answer>>, mut rest: impl FnMut() -> Answer) -> Vec<Answer> {
    answers.into_iter().map(|answer| answer.unwrap_or_else(&mut rest)).collect()
}

/// An event that was neither sent nor answered for is tried again.
fn no_answer() -> Answer {
    Err(HandlerError::retryable("the event has no answer"))
}
