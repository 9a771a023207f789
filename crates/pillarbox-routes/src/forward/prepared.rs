use pillarbox_core::handle::{Delivery, HandlerError, Outcome};
use pillarbox_core::publisher::Message;
use tokio::time::Instant;

use super::answer::Answer;
use super::forwarder::Inner;
use crate::guard::{Admission, Parts};
use crate::route::{RouteRuntime, Sink};

/// A call of a publisher, and the events that are not part of it.
pub(super) struct Prepared<'a> {
    /// One for each event; `None` for those that wait for the receipt of their message.
    pub(super) answers: Vec<Option<Answer>>,
    /// The events that are sent, and their messages.
    pub(super) sent: Vec<&'a Delivery>,
    pub(super) messages: Vec<Message>,
    /// The parts that each message needs, in the order of the messages.
    pub(super) parts: Vec<Option<Parts>>,
    /// Held until the call has ended.
    pub(super) probes: Probes<'a>,
}

impl Inner {
    /// Makes the messages of events, as far as their targets take any now.
    pub(super) fn prepare<'a>(&self, runtime: &RouteRuntime, sink: &'a Sink, events: &[&'a Delivery]) -> Prepared<'a> {
        let now = Instant::now();
        let mut prepared = Prepared {
            answers: Vec::with_capacity(events.len()),
            sent: Vec::with_capacity(events.len()),
            messages: Vec::with_capacity(events.len()),
            parts: Vec::with_capacity(events.len()),
            probes: Probes { sink, parts: Vec::new() },
        };
        for event in events {
            let message = match make(runtime, sink, event) {
                Ok(message) => message,
                Err(answer) => {
                    prepared.answers.push(Some(answer));
                    continue;
                }
            };
            let parts = sink.parts(&message);
            let admission = match &parts {
                Some(parts) => sink.targets.lock().admit(parts, now),
                None => Admission::Go,
            };
            let answer = self.put_off_for_target(runtime, sink, &message, &admission);
            if answer.is_none() {
                prepared.probes.note(&admission, parts.as_ref());
                prepared.sent.push(event);
                prepared.messages.push(message);
                prepared.parts.push(parts);
            }
            prepared.answers.push(answer);
        }
        prepared
    }

    /// Takes out of a call that has waited what may not be sent any more, since its target was paused meanwhile.
    pub(super) fn prepare_again(&self, runtime: &RouteRuntime, sink: &Sink, prepared: &mut Prepared<'_>) {
        if sink.targets.lock().is_empty() {
            return;
        }
        let now = Instant::now();
        let Prepared { answers, sent, messages, parts, probes } = prepared;
        let before = std::mem::take(sent).into_iter().zip(std::mem::take(messages)).zip(std::mem::take(parts));
        for (answer, ((event, message), needed)) in answers.iter_mut().filter(|answer| answer.is_none()).zip(before) {
            let admission = match &needed {
                Some(needed) => sink.targets.lock().admit_again(needed, now, probes.parts.contains(needed)),
                None => Admission::Go,
            };
            *answer = self.put_off_for_target(runtime, sink, &message, &admission);
            if answer.is_none() {
                probes.note(&admission, needed.as_ref());
                sent.push(event);
                messages.push(message);
                parts.push(needed);
            }
        }
    }

    /// The answer for an event whose target has to wait, if it has.
    fn put_off_for_target(
        &self,
        runtime: &RouteRuntime,
        sink: &Sink,
        message: &Message,
        admission: &Admission,
    ) -> Option<Answer> {
        let Admission::Wait { until, problem } = admission else { return None };
        runtime.meters.deferred.increment(1);
        let target = sink.publisher.shown(&message.target);
        let why = format!("has paused its target {target}: {problem}");
        Some(self.put_off(runtime, *until, &why))
    }
}

/// The message of an event, or the answer for an event that is not sent.
fn make(runtime: &RouteRuntime, sink: &Sink, event: &Delivery) -> Result<Message, Answer> {
    match sink.message(event) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => {
            runtime.meters.dropped.increment(1);
            Err(Ok(Outcome::Done))
        }
        Err(problem) => {
            runtime.meters.failed.increment(1);
            Err(Err(HandlerError::unrecoverable(format!("route `{}`: {problem}", runtime.name))))
        }
    }
}

/// Messages that try targets out. Given up, they let the next ones.
pub(super) struct Probes<'a> {
    sink: &'a Sink,
    parts: Vec<Parts>,
}

impl Probes<'_> {
    /// Notes a message that tries its parts out, unless it does so already.
    fn note(&mut self, admission: &Admission, parts: Option<&Parts>) {
        if *admission == Admission::Probe {
            self.parts.extend(parts.filter(|parts| !self.parts.contains(parts)).cloned());
        }
    }
}

impl Drop for Probes<'_> {
    fn drop(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        let mut targets = self.sink.targets.lock();
        self.parts.iter().flat_map(Parts::each).for_each(|part| targets.withdraw(part));
    }
}
