use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use metrics::Counter;
use pillarbox_core::clock::Random;
use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery, HandlerError, Outcome};
use pillarbox_core::publisher::{Message, PublishError, Receipt};
use pillarbox_engine::run::Gate;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::answer::Answer;
use super::findings::{Findings, escalated, findings};
use super::{RouteStatus, answer};
use crate::guard::{Admission, Called, Part, Parts, Turn};
use crate::plants;
use crate::route::{Built, Line, Sending, Unrouted};

/// The time that an event may wait for its turn beside others that go elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);
/// The shortest time for which events are held back: until the reader of the table has noticed.
const A_MOMENT: Duration = Duration::from_millis(50);
/// Types that a route remembers, for the events of which it can be held back.
const MAX_TYPES: usize = 1000;

/// Passes the events of an outbox on, by [`Routes`](crate::Routes): what to give
/// [`on_batch`](pillarbox_engine::handlers::on_batch). Cheap to clone.
///
/// A batch holds events of one route only. It is answered when the destination has confirmed, or declined, each of them. While
/// a route is paused its events are put off, without an attempt being counted, and types of which all events take that route are
/// not even read from the table: see [`gate`](Self::gate).
#[derive(Debug, Clone)]
pub struct Forwarder(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) table: RwLock<Arc<Table>>,
    /// The number of events that no route took.
    unrouted_events: Counter,
    random: Arc<dyn Random>,
    pub(super) gate: Gate,
    /// Event types without a route that the log has named.
    pub(super) told: Mutex<BTreeSet<Box<str>>>,
}

/// The routes, until they are [replaced](Forwarder::replace). A call has the same ones from beginning to end.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) lines: Vec<Arc<Line>>,
    unrouted: Unrouted,
    /// True if there is more than one place to go, so that a waiting route is in somebody's way.
    shared: bool,
    /// One more each time they are replaced.
    pub(super) generation: u64,
}

impl Table {
    pub(super) fn new(built: Built, generation: u64) -> Self {
        let Built { lines, unrouted } = built;
        let shared = lines.len() > 1;
        Self { lines, unrouted, shared, generation }
    }

    fn line(&self, event: &Delivery) -> Option<(usize, &Line)> {
        self.lines.iter().enumerate().find(|(_, line)| line.selector.takes(event)).map(|(index, line)| (index, &**line))
    }

    /// True if all events of a type take this route, so that they can be left in the table while it is paused.
    fn is_alone_with(&self, index: usize, event_type: &str) -> bool {
        let mut taking = self.lines.iter().enumerate().filter(|(_, line)| line.selector.takes_type(event_type));
        taking.next().is_some_and(|(first, line)| first == index && line.selector.asks_for_the_type_alone())
    }
}

/// The destination of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// To a broker.
    Sent {
        /// The route.
        route: String,
        /// The broker's kind and address.
        broker: String,
        /// The target there, as it may be shown.
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
    pub(crate) fn new(built: Built, unrouted_events: Counter, random: Arc<dyn Random>, gate: Gate) -> Self {
        let table = RwLock::new(Arc::new(Table::new(built, 0)));
        Self(Arc::new(Inner { table, unrouted_events, random, gate, told: Mutex::default() }))
    }

    /// The gate to give the outbox beside this, so that it leaves the events of a paused route in the table.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.0.gate.clone()
    }

    /// The destination that an event would have now, if every broker were well.
    #[must_use]
    pub fn destination(&self, event: &Delivery) -> Destination {
        let table = self.0.table();
        let Some((_, line)) = table.line(event) else { return Destination::Unrouted };
        let route = line.name.to_string();
        let Some(sending) = &line.sending else { return Destination::Dropped { route } };
        match sending.message(event) {
            Ok(None) => Destination::Dropped { route },
            Err(problem) => Destination::Unsendable { route, problem },
            Ok(Some(message)) => Destination::Sent {
                route,
                broker: format!("{} at {}", sending.publisher.info().kind, sending.publisher.info().address),
                target: sending.publisher.shown(&message.target).into_owned(),
                key: message.key.map(String::from),
            },
        }
    }

    /// The status of each route, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<RouteStatus> {
        let now = Instant::now();
        self.0.table().lines.iter().map(|line| RouteStatus::of(line, now)).collect()
    }

    /// Closes every connection. What is handed over after that is put off.
    pub async fn close(&self) {
        let table = self.0.table();
        join_all(table.lines.iter().filter_map(|line| line.sending.as_ref()).map(|sending| sending.publisher.close()))
            .await;
    }
}

impl BatchHandler for Forwarder {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Answer>> {
        Box::pin(self.0.forward(deliveries))
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        self.0.table().line(delivery).map_or(u64::MAX, |(index, _)| index as u64)
    }

    fn lanes(&self) -> usize {
        self.0.table().lines.len()
    }

    fn has_type_alone(&self, delivery: &Delivery) -> bool {
        let table = self.0.table();
        table.line(delivery).is_some_and(|(index, _)| table.is_alone_with(index, delivery.event_type()))
    }
}

impl Inner {
    /// The routes as they are now.
    pub(super) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn forward(&self, deliveries: Vec<Delivery>) -> Vec<Answer> {
        let table = self.table();
        // Nearly always one: what is called together has one lane. An event that is called alone has too.
        let mut groups: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
        for (place, delivery) in deliveries.iter().enumerate() {
            let line = table.line(delivery).map(|(index, _)| index);
            match groups.iter_mut().find(|(other, _)| *other == line) {
                Some((_, places)) => places.push(place),
                None => groups.push((line, vec![place])),
            }
        }
        let calls = groups.iter().map(|(line, places)| {
            let events: Vec<&Delivery> = places.iter().filter_map(|place| deliveries.get(*place)).collect();
            let table = &table;
            async move {
                match line.and_then(|index| table.lines.get(index).map(|line| (index, line))) {
                    Some((index, line)) => self.through(table, index, line, &events).await,
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

    fn unrouted(&self, unrouted: Unrouted, event: &Delivery) -> Answer {
        self.unrouted_events.increment(1);
        let is_first = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.len() < MAX_TYPES && told.insert(event.event_type().into())
        };
        if is_first {
            let event_type = event.event_type();
            tracing::warn!(event_type, event_id = %event.id(), ?unrouted, "no route takes events of a type; said once for each type");
        }
        let problem = || {
            let (event_type, aggregate_type) = (event.event_type(), event.aggregate_type());
            format!("no route takes event type `{event_type}` of aggregate type `{aggregate_type}`")
        };
        match unrouted {
            Unrouted::Dead => Err(HandlerError::unrecoverable(problem())),
            Unrouted::Park(delay) => Err(HandlerError::unroutable(delay, problem())),
            Unrouted::Drop => Ok(Outcome::Done),
        }
    }

    /// Takes events of one route; an answer for each.
    async fn through(&self, table: &Table, index: usize, line: &Line, events: &[&Delivery]) -> Vec<Answer> {
        let Some(sending) = &line.sending else {
            line.meters.dropped.increment(events.len() as u64);
            return events.iter().map(|_| Ok(Outcome::Done)).collect();
        };
        let put_off = |until: Instant, why: &str| {
            line.meters.deferred.increment(1);
            self.put_off(line, until, why)
        };
        let _probing = match self.admit(table, index, sending, events) {
            Admission::Wait { until, problem } => {
                let why = format!("is paused: {problem}");
                return events.iter().map(|_| put_off(until, &why)).collect();
            }
            Admission::Probe => Some(Probing(sending)),
            Admission::Go => None,
        };
        let Prepared { mut answers, messages, parts, probes: _probes } = self.prepare(line, sending, events);
        if messages.is_empty() {
            // Where nothing could be sent, nothing is learnt.
            return complete(answers, || Err(HandlerError::retryable("the event has no answer")));
        }
        let leave = match sending.limits.leave(messages.len(), table.shared.then_some(PATIENCE)).await {
            Ok(leave) => leave,
            Err(not_now) => {
                let until = Instant::now() + not_now.0;
                self.hold(sending, until);
                return complete(answers, || put_off(until, "has reached its limits"));
            }
        };
        let receipts = send(line, sending, messages).await;
        drop(leave);
        let now = Instant::now();
        let is_well = receipts.iter().all(Result::is_ok) && sending.targets().is_empty();
        let found = if is_well { Findings::well() } else { findings(&parts, &receipts) };
        let paused = self.learn_all(line, sending, now, &found);
        let mut receipts = receipts.into_iter().zip(parts);
        let misses = plants::is("receipts_out_of_step");
        for waiting in answers.iter_mut().filter(|answer| answer.is_none() || misses) {
            let (receipt, parts) = receipts.next().unwrap_or_else(|| (no_receipt(), None));
            let own = parts.filter(|_| receipt.is_err()).and_then(|parts| sending.targets().paused_until(&parts));
            let pause = paused.max(own).map(|until| self.spread(until.saturating_duration_since(now)));
            *waiting = Some(answer(&line.name, receipt, pause));
        }
        complete(answers, || answer(&line.name, no_receipt(), None))
    }

    /// Makes the messages of events, as far as their targets take any now.
    fn prepare<'a>(&self, line: &Line, sending: &'a Sending, events: &[&Delivery]) -> Prepared<'a> {
        let now = Instant::now();
        let mut prepared = Prepared {
            answers: Vec::with_capacity(events.len()),
            messages: Vec::with_capacity(events.len()),
            parts: Vec::with_capacity(events.len()),
            probes: Probes { sending, parts: Vec::new() },
        };
        for event in events {
            let message = match make(line, sending, event) {
                Ok(message) => message,
                Err(answer) => {
                    prepared.answers.push(Some(answer));
                    continue;
                }
            };
            let parts = sending.parts(&message);
            let admission = match &parts {
                Some(parts) => sending.targets().admit(parts, now),
                None => Admission::Go,
            };
            match (admission, &parts) {
                (Admission::Wait { until, problem }, _) => {
                    line.meters.deferred.increment(1);
                    let target = sending.publisher.shown(&message.target);
                    let why = format!("has paused its target {target}: {problem}");
                    prepared.answers.push(Some(self.put_off(line, until, &why)));
                    continue;
                }
                (Admission::Probe, Some(parts)) => prepared.probes.parts.push(parts.clone()),
                _ => {}
            }
            prepared.answers.push(None);
            prepared.messages.push(message);
            prepared.parts.push(parts);
        }
        prepared
    }

    /// Decides whether these events may be sent now.
    fn admit(&self, table: &Table, index: usize, sending: &Sending, events: &[&Delivery]) -> Admission {
        let (is_new, held_until) = note_types(table, index, sending, events);
        let now = Instant::now();
        let paused = sending.circuit().paused();
        let until_read = match (held_until, &paused) {
            _ if plants::is("held_rows_are_overtaken") => None,
            (_, Some((until, _))) if is_new => Some((*until).max(now + A_MOMENT)),
            (held_until, _) => held_until.map(|until| until.max(now) + A_MOMENT),
        };
        match until_read {
            // What was held back may stand before it in its key: it has to wait for that to be read first.
            Some(until) => {
                let (end, problem) =
                    paused.map_or_else(|| (None, "it has reached its limits".into()), |(end, why)| (Some(end), why));
                // No longer than those that wait already: they would wait for one another.
                if let Some(end) = end.or(held_until) {
                    self.hold(sending, end);
                }
                Admission::Wait { until, problem }
            }
            None => {
                let admission = sending.circuit().admit(now);
                if let Admission::Wait { until, .. } = &admission {
                    self.hold(sending, *until);
                }
                admission
            }
        }
    }

    /// Tells the breakers of the route and of its targets; until when the route is paused, if it is.
    fn learn_all(&self, line: &Line, sending: &Sending, now: Instant, found: &Findings) -> Option<Instant> {
        let mut is_new = false;
        if !found.parts.is_empty() {
            let mut targets = sending.targets();
            let mut turns = Vec::new();
            for (part, called) in &found.parts {
                let changed = targets.ended(part, now, called.clone());
                is_new |= changed.is_new;
                if changed.turn != Turn::None {
                    turns.push((part, changed.turn, targets.paused(part).map(|(_, problem)| problem)));
                }
            }
            line.meters.count_paused(targets.all_paused().count());
            drop(targets);
            for (part, turn, problem) in turns {
                tell_of_target(line, sending, part, &turn, problem.as_deref().unwrap_or_default());
            }
        }
        let whole = found.whole.clone().or_else(|| escalated(found, is_new));
        whole.and_then(|called| self.learn(line, sending, now, called))
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
            Turn::StillPaused { pause } => {
                let problem = paused.as_ref().map(|(_, problem)| problem.to_string()).unwrap_or_default();
                tracing::warn!(
                    route = &*line.name,
                    publisher = info.kind,
                    address = info.address,
                    ?pause,
                    problem,
                    "a route is still paused, for another reason than before"
                );
            }
            Turn::Resumed => {
                let mut types = sending.types();
                types.release(now);
                self.gate.release(types.known.keys().map(|held| &**held));
                drop(types);
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

    /// Puts an event off until its route, or its target, may go on, without an attempt.
    fn put_off(&self, line: &Line, until: Instant, why: &str) -> Answer {
        let delay = until.saturating_duration_since(Instant::now());
        Err(HandlerError::not_here(self.spread(delay), format!("route `{}` {why}", line.name)))
    }

    /// Leaves the route's events in the table, as far as their type says that they are.
    fn hold(&self, sending: &Sending, until: Instant) {
        let mut types = sending.types();
        types.hold(Instant::now(), until);
        self.gate.hold_all(types.known.keys().map(|held| &**held), until);
        types.are_held(Instant::now());
    }

    /// A tenth more at random, so that what was put off together does not come back at once.
    fn spread(&self, delay: Duration) -> Duration {
        delay.mul_f64(1.0 + self.random.next_f64() / 10.0)
    }
}

/// Remembers the types of events that take this route, if none of their type takes another. Returns whether there was a new one, and the
/// end of the time in which earlier events than these may have been left in the table, if there was one.
fn note_types(table: &Table, index: usize, sending: &Sending, events: &[&Delivery]) -> (bool, Option<Instant>) {
    let mut types = sending.types();
    // If the routes were replaced meanwhile, other types may be alone with this one now.
    let is_current = types.generation == table.generation;
    let (mut is_new, mut last, mut held_until) = (false, "", None);
    for event in events {
        let event_type = event.event_type();
        if is_current && event_type != last && types.known.len() < MAX_TYPES && !types.known.contains_key(event_type) {
            let is_alone = table.is_alone_with(index, event_type);
            is_new |= is_alone && types.learn(event_type, Instant::now());
        }
        held_until = held_until.max(types.end_before(event_type, event.queued_at()));
        last = event_type;
    }
    (is_new, held_until)
}

/// Not a field `target`: in a line of JSON that is the module which logs.
fn tell_of_target(line: &Line, sending: &Sending, part: &Part, turn: &Turn, problem: &str) {
    let (route, publisher, target) = (&*line.name, sending.publisher.info().kind, sending.shown(part));
    match turn {
        // There may be many targets, each with its own words at every try.
        Turn::None | Turn::StillPaused { .. } => {}
        Turn::Paused { pause } => tracing::warn!(
            route,
            publisher,
            destination = target,
            ?pause,
            problem,
            "a target is paused: it takes nothing; its events stay pending, no attempt is counted, and the route goes on"
        ),
        Turn::Resumed => tracing::info!(route, publisher, destination = target, "a target takes events again"),
    }
}

/// A call of a publisher, and the events that are not part of it.
struct Prepared<'a> {
    /// One for each event; `None` for those that wait for the receipt of their message.
    answers: Vec<Option<Answer>>,
    messages: Vec<Message>,
    /// The parts that each message needs, in the order of the messages.
    parts: Vec<Option<Parts>>,
    /// Held until the call has ended.
    probes: Probes<'a>,
}

/// Gives each event without an answer the one that `rest` makes.
fn complete(answers: Vec<Option<Answer>>, mut rest: impl FnMut() -> Answer) -> Vec<Answer> {
    answers.into_iter().map(|answer| answer.unwrap_or_else(&mut rest)).collect()
}

/// The message of an event, or the answer for an event that is not sent.
fn make(line: &Line, sending: &Sending, event: &Delivery) -> Result<Message, Answer> {
    match sending.message(event) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => {
            line.meters.dropped.increment(1);
            Err(Ok(Outcome::Done))
        }
        Err(problem) => {
            line.meters.failed.increment(1);
            Err(Err(HandlerError::unrecoverable(format!("route `{}`: {problem}", line.name))))
        }
    }
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

/// Messages that try targets out. Given up, they let the next ones.
struct Probes<'a> {
    sending: &'a Sending,
    parts: Vec<Parts>,
}

impl Drop for Probes<'_> {
    fn drop(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        let mut targets = self.sending.targets();
        self.parts.iter().flat_map(Parts::each).for_each(|part| targets.withdraw(part));
    }
}
