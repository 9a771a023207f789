use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use metrics::Counter;
use pillarbox_core::clock::Random;
use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery, HandlerError, Outcome};
use pillarbox_core::publisher::{Message, PublishError, Receipt};
use pillarbox_core::run::Gate;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::answer::Answer;
use super::{RouteStatus, Way, answer, verdict};
use crate::guard::{Admission, Called, Turn};
use crate::route::{Line, Sending, Unrouted};

/// How long an event may wait for its turn beside others that go elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long at least what has just been held back stays so: until whoever reads the table has noticed.
const A_MOMENT: Duration = Duration::from_millis(50);
/// Types that a route remembers, for the events of which it can be held back.
const MAX_TYPES: usize = 1000;

/// Passes the events of an outbox on, by [`Routes`](crate::Routes): what to give
/// [`on_any_batch`](pillarbox_core::handle::on_any_batch). Cheap to clone.
///
/// A batch holds events of one route only. It is answered when the destination has confirmed, or declined, each of them. While
/// a route is paused its events are put off, without an attempt being counted, and types of which all events take that route are
/// not even read from the table: see [`gate`](Self::gate).
#[derive(Debug, Clone)]
pub struct Forwarder(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) lines: Vec<Line>,
    unrouted: Unrouted,
    /// How many events it was that no route takes.
    unrouted_events: Counter,
    random: Arc<dyn Random>,
    gate: Gate,
    /// Whether there is more than one place to go, so that who waits is in somebody's way.
    shared: bool,
    /// Event types without a route that the log has named.
    told: Mutex<BTreeSet<Box<str>>>,
}

/// Where an event would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// To a broker.
    Sent {
        /// The route.
        route: String,
        /// The broker's kind and address.
        broker: String,
        /// The target there.
        target: String,
        /// The key of the message.
        key: Option<String>,
    },
    /// Nowhere: the route drops it.
    Dropped {
        /// The route.
        route: String,
    },
    /// Its route cannot make a message of it.
    Unsendable {
        /// The route.
        route: String,
        /// Why.
        problem: String,
    },
    /// No route takes it.
    Unrouted,
}

impl Forwarder {
    pub(crate) fn new(
        lines: Vec<Line>,
        unrouted: Unrouted,
        unrouted_events: Counter,
        random: Arc<dyn Random>,
        gate: Gate,
    ) -> Self {
        let shared = lines.len() > 1;
        Self(Arc::new(Inner { lines, unrouted, unrouted_events, random, gate, shared, told: Mutex::default() }))
    }

    /// What to give the outbox beside this, so that it leaves the events of a paused route in the table.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.0.gate.clone()
    }

    /// What [`check`](Self::check) cannot ask for, a sentence each: targets that depend on the event.
    #[must_use]
    pub fn unchecked(&self) -> Vec<String> {
        let sending = self.0.lines.iter().filter_map(|line| line.sending.as_ref().map(|sending| (line, sending)));
        let depends = sending.filter(|(_, sending)| sending.target.fixed().is_none());
        depends.map(|(line, sending)| format!("route `{}`: whether `{}` is there", line.name, sending.target)).collect()
    }

    /// Where an event would go now, if every destination were well.
    #[must_use]
    pub fn destination(&self, event: &Delivery) -> Destination {
        let Some((_, line)) = self.0.line(event) else { return Destination::Unrouted };
        let route = line.name.to_string();
        let Some(sending) = &line.sending else { return Destination::Dropped { route } };
        match sending.message(event) {
            Ok(None) => Destination::Dropped { route },
            Err(problem) => Destination::Unsendable { route, problem },
            Ok(Some(message)) => Destination::Sent {
                route,
                broker: format!("{} at {}", sending.publisher.info().kind, sending.publisher.info().address),
                target: message.target.to_string(),
                key: message.key.map(String::from),
            },
        }
    }

    /// How each route is doing, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<RouteStatus> {
        let now = Instant::now();
        let status = |line: &Line| {
            let info = line.sending.as_ref().map(|sending| sending.publisher.info());
            let paused = line.sending.as_ref().and_then(|sending| sending.circuit().paused());
            RouteStatus {
                route: line.name.to_string(),
                publisher: info.map_or("none", |info| info.kind),
                address: info.map(|info| info.address.clone()).unwrap_or_default(),
                way: paused.map_or(Way::Open, |(until, problem)| Way::Paused {
                    next_probe: Some(until.saturating_duration_since(now)).filter(|pause| !pause.is_zero()),
                    problem: problem.to_string(),
                }),
            }
        };
        self.0.lines.iter().map(status).collect()
    }

    /// Closes every connection. What is handed over after that is put off.
    pub async fn close(&self) {
        join_all(self.0.lines.iter().filter_map(|line| line.sending.as_ref()).map(|sending| sending.publisher.close()))
            .await;
    }
}

impl BatchHandler for Forwarder {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Answer>> {
        Box::pin(self.0.forward(deliveries))
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        self.0.line(delivery).map_or(u64::MAX, |(index, _)| index as u64)
    }
}

impl Inner {
    fn line(&self, event: &Delivery) -> Option<(usize, &Line)> {
        self.lines.iter().enumerate().find(|(_, line)| line.selector.takes(event))
    }

    /// Whether all events of a type take this route, so that they can be left in the table while it is paused.
    fn is_alone_with(&self, index: usize, event_type: &str) -> bool {
        let mut taking = self.lines.iter().enumerate().filter(|(_, line)| line.selector.takes_type(event_type));
        taking.next().is_some_and(|(first, line)| first == index && line.selector.asks_for_the_type_alone())
    }

    async fn forward(&self, deliveries: Vec<Delivery>) -> Vec<Answer> {
        // Nearly always one: what is called together has one lane. An event that is called alone has too.
        let mut groups: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
        for (place, delivery) in deliveries.iter().enumerate() {
            let line = self.line(delivery).map(|(index, _)| index);
            match groups.iter_mut().find(|(other, _)| *other == line) {
                Some((_, places)) => places.push(place),
                None => groups.push((line, vec![place])),
            }
        }
        let calls = groups.iter().map(|(line, places)| {
            let events: Vec<&Delivery> = places.iter().filter_map(|place| deliveries.get(*place)).collect();
            async move {
                match line.and_then(|index| self.lines.get(index).map(|line| (index, line))) {
                    Some((index, line)) => self.through(index, line, &events).await,
                    None => events.iter().map(|event| self.unrouted(event)).collect(),
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

    fn unrouted(&self, event: &Delivery) -> Answer {
        self.unrouted_events.increment(1);
        let is_first = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.len() < MAX_TYPES && told.insert(event.event_type().into())
        };
        if is_first {
            let (event_type, unrouted) = (event.event_type(), self.unrouted);
            tracing::warn!(event_type, event_id = %event.id(), ?unrouted, "no route takes events of a type; said once for each type");
        }
        let problem = || {
            let (event_type, aggregate_type) = (event.event_type(), event.aggregate_type());
            format!("no route takes event type `{event_type}` of aggregate type `{aggregate_type}`")
        };
        match self.unrouted {
            Unrouted::Dead => Err(HandlerError::unrecoverable(problem())),
            Unrouted::Park(delay) => Err(HandlerError::deferred(delay, problem())),
            Unrouted::Drop => Ok(Outcome::Done),
        }
    }

    /// Takes events of one route; an answer for each.
    async fn through(&self, index: usize, line: &Line, events: &[&Delivery]) -> Vec<Answer> {
        let Some(sending) = &line.sending else {
            line.meters.dropped.increment(events.len() as u64);
            return events.iter().map(|_| Ok(Outcome::Done)).collect();
        };
        let _probing = match self.admit(index, sending, events) {
            Admission::Wait { until, problem } => {
                return self.put_off(line, sending, events, until, &format!("is paused: {problem}"));
            }
            Admission::Probe => Some(Probing(sending)),
            Admission::Go => None,
        };
        let leave = match sending.limits.leave(events.len(), self.shared.then_some(PATIENCE)).await {
            Ok(leave) => leave,
            Err(not_now) => {
                return self.put_off(line, sending, events, Instant::now() + not_now.0, "has reached its limits");
            }
        };
        let (made, messages) = make(line, sending, events);
        let receipts = send(line, sending, messages).await;
        drop(leave);
        let now = Instant::now();
        // Where nothing could be sent, nothing was learnt.
        let paused = if receipts.is_empty() { None } else { self.learn(line, sending, now, verdict(&receipts)) };
        let mut receipts = receipts.into_iter();
        let mut by_receipt = || {
            let pause = paused.map(|until| self.spread(until.saturating_duration_since(now)));
            answer(&line.name, receipts.next().unwrap_or_else(no_receipt), pause)
        };
        made.into_iter().map(|answer| answer.unwrap_or_else(&mut by_receipt)).collect()
    }

    /// Whether these events may be sent now.
    fn admit(&self, index: usize, sending: &Sending, events: &[&Delivery]) -> Admission {
        let is_new = self.note_types(index, sending, events);
        let mut circuit = sending.circuit();
        match circuit.paused() {
            // What was held back may stand before it in its key: it has to wait for that to be read first.
            Some((until, problem)) if is_new => {
                Admission::Wait { until: until.max(Instant::now() + A_MOMENT), problem }
            }
            _ => circuit.admit(Instant::now()),
        }
    }

    /// Tells the breaker, and says of what changed; until when the route is paused, if it is.
    pub(super) fn learn(&self, line: &Line, sending: &Sending, now: Instant, called: Called) -> Option<Instant> {
        let (turn, paused) = {
            let mut circuit = sending.circuit();
            (circuit.ended(now, called), circuit.paused())
        };
        let info = sending.publisher.info();
        match turn {
            Turn::None => {}
            Turn::Paused { pause } => {
                line.meters.paused.set(1.0);
                let problem = paused.as_ref().map(|(_, problem)| problem.to_string()).unwrap_or_default();
                tracing::warn!(
                    route = &*line.name,
                    publisher = info.kind,
                    address = info.address,
                    ?pause,
                    problem,
                    "a route is paused: its destination takes nothing; its events stay pending, and no attempt is counted"
                );
            }
            Turn::Resumed => {
                self.gate.release(sending.types().iter().map(|held| &**held));
                line.meters.paused.set(0.0);
                tracing::info!(
                    route = &*line.name,
                    publisher = info.kind,
                    "a route goes on: its destination takes events again"
                );
            }
        }
        let until = paused.map(|(until, _)| until);
        if let Some(until) = until {
            self.hold(sending, until);
        }
        until
    }

    /// Puts events off until a route may go on, without an attempt.
    fn put_off(&self, line: &Line, sending: &Sending, events: &[&Delivery], until: Instant, why: &str) -> Vec<Answer> {
        line.meters.deferred.increment(events.len() as u64);
        self.hold(sending, until);
        let delay = until.saturating_duration_since(Instant::now());
        let answer = |_| Err(HandlerError::not_here(self.spread(delay), format!("route `{}` {why}", line.name)));
        events.iter().map(answer).collect()
    }

    /// Leaves the route's events in the table, as far as their type says that they are.
    fn hold(&self, sending: &Sending, until: Instant) {
        self.gate.hold_all(sending.types().iter().map(|held| &**held), until);
    }

    /// Remembers the types of events that take this route, if none of their type takes another; whether there was a new one.
    fn note_types(&self, index: usize, sending: &Sending, events: &[&Delivery]) -> bool {
        let mut types = sending.types();
        let (mut is_new, mut last) = (false, "");
        for event in events {
            let event_type = event.event_type();
            if event_type != last && types.len() < MAX_TYPES && !types.contains(event_type) {
                is_new |= self.is_alone_with(index, event_type) && types.insert(event_type.into());
            }
            last = event_type;
        }
        is_new
    }

    /// A tenth more at random, so that what was put off together does not come back at once.
    fn spread(&self, delay: Duration) -> Duration {
        delay.mul_f64(1.0 + self.random.next_f64() / 10.0)
    }
}

/// The messages of a route's events; and an answer for each event, but for those that wait for the receipt of their message.
fn make(line: &Line, sending: &Sending, events: &[&Delivery]) -> (Vec<Option<Answer>>, Vec<Message>) {
    let mut messages = Vec::with_capacity(events.len());
    let made = events.iter().map(|event| match sending.message(event) {
        Ok(Some(message)) => {
            messages.push(message);
            None
        }
        Ok(None) => {
            line.meters.dropped.increment(1);
            Some(Ok(Outcome::Done))
        }
        Err(problem) => {
            line.meters.failed.increment(1);
            Some(Err(HandlerError::unrecoverable(format!("route `{}`: {problem}", line.name))))
        }
    });
    (made.collect(), messages)
}

/// Sends messages, and counts what came of it; a receipt for each.
async fn send(line: &Line, sending: &Sending, messages: Vec<Message>) -> Vec<Receipt> {
    let sent = messages.len();
    if sent == 0 {
        return Vec::new();
    }
    let began = Instant::now();
    let publishing = sending.publisher.publish(messages);
    let mut receipts = publishing.instrument(tracing::error_span!("send", route = &*line.name)).await;
    receipts.resize_with(sent, no_receipt);
    line.meters.duration.record(began.elapsed());
    line.meters.messages.record(f64::from(u32::try_from(sent).unwrap_or(u32::MAX)));
    for receipt in &receipts {
        match receipt {
            Ok(()) => line.meters.confirmed.increment(1),
            Err(error) if error.blames_the_destination() => line.meters.deferred.increment(1),
            Err(_) => line.meters.failed.increment(1),
        }
    }
    receipts
}

/// A publisher that forgets a message has not confirmed it.
fn no_receipt() -> Receipt {
    Err(PublishError::temporary("the publisher gave no receipt for it"))
}

/// One that tries a destination out. Given up, it lets the next one.
pub(super) struct Probing<'a>(pub(super) &'a Sending);

impl Drop for Probing<'_> {
    fn drop(&mut self) {
        self.0.circuit().withdraw();
    }
}
