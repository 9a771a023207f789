use pillarbox_core::handle::{Delivery, HandlerError, Outcome};
use pillarbox_core::publisher::Message;
use tokio::time::Instant;

use super::answer::Answer;
use super::forwarder::Inner;
use crate::breaker::{Admission, Parts};
use crate::route::{RouteOutput, RouteRuntime};

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
    pub(super) fn prepare<'a>(
        &self,
        runtime: &RouteRuntime,
        output: &'a RouteOutput,
        events: &[&'a Delivery],
    ) -> Prepared<'a> {
        let now = Instant::now();
        let mut prepared = Prepared {
            answers: Vec::with_capacity(events.len()),
            sent: Vec::with_capacity(events.len()),
            messages: Vec::with_capacity(events.len()),
            parts: Vec::with_capacity(events.len()),
            probes: Probes { output, parts: Vec::new() },
        };
        for event in events {
            let message = match make(runtime, output, event) {
                Ok(message) => message,
                Err(answer) => {
                    prepared.answers.push(Some(answer));
                    continue;
                }
            };
            let parts = output.parts(&message);
            let admission = match &parts {
                Some(parts) => output.targets.lock().admit(parts, now),
                None => Admission::Go,
            };
            let answer = self.defer_for_target(runtime, output, &message, &admission);
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

    /// Takes out of a call that has waited the events that may not be sent any more, since their target was paused meanwhile.
    pub(super) fn prepare_again(&self, runtime: &RouteRuntime, output: &RouteOutput, prepared: &mut Prepared<'_>) {
        if output.targets.lock().is_empty() {
            return;
        }
        let now = Instant::now();
        let Prepared { answers, sent, messages, parts, probes } = prepared;
        let before = std::mem::take(sent).into_iter().zip(std::mem::take(messages)).zip(std::mem::take(parts));
        for (answer, ((event, message), needed)) in answers.iter_mut().filter(|answer| answer.is_none()).zip(before) {
            let admission = match &needed {
                Some(needed) => output.targets.lock().admit_again(needed, now, probes.parts.contains(needed)),
                None => Admission::Go,
            };
            *answer = self.defer_for_target(runtime, output, &message, &admission);
            if answer.is_none() {
                probes.note(&admission, needed.as_ref());
                sent.push(event);
                messages.push(message);
                parts.push(needed);
            }
        }
    }

    /// The answer for an event whose target has to wait, if it has.
    fn defer_for_target(
        &self,
        runtime: &RouteRuntime,
        output: &RouteOutput,
        message: &Message,
        admission: &Admission,
    ) -> Option<Answer> {
        let Admission::Wait { until, problem } = admission else { return None };
        let target = output.publisher.shown(&message.target);
        let why = format!("has paused its target {target}: {problem}");
        Some(self.defer(runtime, *until, &why))
    }
}

/// The message of an event, or the answer for an event that is not sent.
fn make(runtime: &RouteRuntime, output: &RouteOutput, event: &Delivery) -> Result<Message, Answer> {
    match output.message(event) {
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

/// The parts that messages of this call probe. Releases their probe slots when dropped.
pub(super) struct Probes<'a> {
    output: &'a RouteOutput,
    parts: Vec<Parts>,
}

impl Probes<'_> {
    /// Notes the parts that a message probes, unless they are noted already.
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
        let mut targets = self.output.targets.lock();
        self.parts.iter().flat_map(Parts::each).for_each(|part| targets.withdraw(part));
    }
}
