use std::time::Duration;

use futures_util::future::join_all;
use pillarbox_core::handle::{Delivery, HandlerError, Outcome};
use pillarbox_core::plants;
use tokio::time::Instant;

use super::admission::Probing;
use super::answer::{Answer, answer};
use super::delay::Delay;
use super::findings::{Findings, blames_a_part, findings};
use super::forwarder::Inner;
use super::prepared::Prepared;
use super::send::{no_receipt, send};
use super::table::Table;
use crate::guard::Admission;
use crate::route::RouteRuntime;

/// The time that a batch may wait for its turn under the limits of its route. Beyond it the batch is put off, which counts no attempt: it
/// would keep a worker from what goes elsewhere, and a call that reaches its time limit counts as a failed attempt.
const MAX_WAIT_FOR_TURN: Duration = Duration::from_secs(1);

impl Inner {
    /// Passes events on, each by its route; an answer for each.
    pub(super) async fn forward(&self, deliveries: Vec<Delivery>) -> Vec<Answer> {
        let table = self.table();
        // Nearly always one: what is called together has one lane. An event that is called alone has too.
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
        let Some(sink) = &runtime.sink else {
            runtime.meters.dropped.increment(events.len() as u64);
            return events.iter().map(|_| Ok(Outcome::Done)).collect();
        };
        let put_off = |until: Instant, why: &str| {
            runtime.meters.deferred.increment(1);
            self.put_off(runtime, until, why)
        };
        if sink.target.fixed().is_none() {
            sink.tenants.lock().see(events.iter().map(|event| event.tenant_id()), Instant::now());
        }
        let mut probing = match self.admit(table, index, sink, events) {
            Admission::Wait { until, problem } => {
                let why = format!("is paused: {problem}");
                return events.iter().map(|_| put_off(until, &why)).collect();
            }
            Admission::Probe => Some(Probing(sink)),
            Admission::Go => None,
        };
        let mut prepared = self.prepare(runtime, sink, events);
        if prepared.messages.is_empty() {
            // Where nothing could be sent, nothing is learnt.
            return complete(prepared.answers, no_answer);
        }
        let turn = match sink.limits.turn(MAX_WAIT_FOR_TURN).await {
            Ok(turn) => turn,
            Err(not_now) => {
                let until = Instant::now() + not_now.0;
                self.pause_types(sink, until);
                return complete(prepared.answers, || put_off(until, "has reached its limits"));
            }
        };
        // Until its turn came, the route or a target may have been paused.
        match self.admit_again(sink, probing.is_some()) {
            Admission::Wait { until, problem } => {
                let why = format!("is paused: {problem}");
                return complete(prepared.answers, || put_off(until, &why));
            }
            Admission::Probe => {
                probing.get_or_insert_with(|| Probing(sink));
            }
            Admission::Go => {}
        }
        self.prepare_again(runtime, sink, &mut prepared);
        let Prepared { mut answers, sent, messages, parts, probes: _probes } = prepared;
        if messages.is_empty() {
            return complete(answers, no_answer);
        }
        let permit = turn.spend(messages.len());
        let receipts = send(runtime, sink, &sent, messages).await;
        drop(permit);
        let now = Instant::now();
        let is_well = receipts.iter().all(Result::is_ok) && sink.targets.lock().is_empty();
        let found = if is_well { Findings::well() } else { findings(&parts, &receipts) };
        let failed = sent.iter().zip(&parts).zip(&receipts).filter(|(_, receipt)| blames_a_part(receipt));
        let failed = failed.filter_map(|((event, parts), _)| Some((event.tenant_id(), parts.as_ref()?)));
        let paused = self.learn_all(runtime, sink, now, &found, failed);
        let (mut receipts, mut sent) = (receipts.into_iter().zip(parts), sent.into_iter());
        let misses = plants::is("receipts_out_of_step");
        for waiting in answers.iter_mut().filter(|answer| answer.is_none() || misses) {
            let (event, (receipt, parts)) = (sent.next(), receipts.next().unwrap_or_else(|| (no_receipt(), None)));
            let delay = receipt.as_ref().err().and_then(|error| self.delay(sink, error, parts.as_ref(), paused, now));
            if let (Some(Delay::Prolonged(_)), Some(event)) = (&delay, event) {
                sink.stranded.tell(runtime, sink, event, &receipt);
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
