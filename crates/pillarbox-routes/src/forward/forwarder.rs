use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use metrics::Counter;
use pillarbox_core::clock::Random;
use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery, HandlerError, Outcome};
use pillarbox_core::lock::Mutex;
use pillarbox_core::plants;
use pillarbox_core::publisher::{Message, PublishError, PublishErrorKind, Receipt, Scope};
use pillarbox_core::store::NO_ROUTE;
use pillarbox_engine::run::TypePause;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::answer::Answer;
use super::findings::{Findings, escalated, findings, part_of};
use super::message_span::MessageSpan;
use super::prepared::Prepared;
use super::{RouteStatus, answer};
use crate::guard::{Admission, CallResult, Parts, Transition};
use crate::route::{Built, RouteRuntime, Sink, Unrouted};

/// The time that a batch may wait for its turn under the limits of its route. Beyond it the batch is put off, which counts no attempt: it
/// would keep a worker from what goes elsewhere, and a call that reaches its time limit counts as a failed attempt.
const PATIENCE: Duration = Duration::from_secs(1);
/// The shortest time for which events are held back: until the reader of the table has noticed.
const A_MOMENT: Duration = Duration::from_millis(50);
/// The time after which an event of a route that an operator has paused looks again whether it still is.
pub(super) const AGAIN_BY_HAND: Duration = Duration::from_secs(5);
/// Types that a route remembers, for the events of which it can be held back.
const MAX_TYPES: usize = 1000;

/// Passes the events of an outbox on, by [`Routes`](crate::Routes): what to give
/// [`on_batch`](pillarbox_engine::handlers::on_batch). Cheap to clone.
///
/// A batch holds events of one route only. It is answered when the destination has confirmed, or declined, each of them. While
/// a route is paused its events are put off, without an attempt being counted, and types of which all events take that route are
/// not even read from the table: see [`type_pause`](Self::type_pause).
#[derive(Debug, Clone)]
pub struct Forwarder(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) table: RwLock<Arc<Table>>,
    /// The number of events that no route took.
    unrouted_events: Counter,
    random: Arc<dyn Random>,
    pub(super) type_pause: TypePause,
    /// Event types without a route that the log has named.
    pub(super) told: Mutex<BTreeSet<Box<str>>>,
}

/// The routes, until they are [replaced](Forwarder::replace). A call has the same ones from beginning to end.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) runtimes: Vec<Arc<RouteRuntime>>,
    unrouted: Unrouted,
    /// One more each time they are replaced.
    pub(super) generation: u64,
}

impl Table {
    pub(super) fn new(built: Built, generation: u64) -> Self {
        let Built { runtimes, unrouted } = built;
        Self { runtimes, unrouted, generation }
    }

    fn runtime(&self, event: &Delivery) -> Option<(usize, &RouteRuntime)> {
        let mut runtimes = self.runtimes.iter().map(|runtime| &**runtime).enumerate();
        runtimes.find(|(_, runtime)| runtime.selector.takes(event))
    }

    /// True if all events of a type take this route, so that they can be left in the table while it is paused.
    fn is_alone_with(&self, index: usize, event_type: &str) -> bool {
        let mut taking =
            self.runtimes.iter().enumerate().filter(|(_, runtime)| runtime.selector.takes_type(event_type));
        taking.next().is_some_and(|(first, runtime)| first == index && runtime.selector.asks_for_the_type_alone())
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
    pub(crate) fn new(built: Built, unrouted_events: Counter, random: Arc<dyn Random>, type_pause: TypePause) -> Self {
        let table = RwLock::new(Arc::new(Table::new(built, 0)));
        Self(Arc::new(Inner { table, unrouted_events, random, type_pause, told: Mutex::default() }))
    }

    /// The pause of types to give the outbox beside this, so that it leaves the events of a paused route in the table.
    #[must_use]
    pub fn type_pause(&self) -> TypePause {
        self.0.type_pause.clone()
    }

    /// The destination that an event would have now, if every broker were well.
    #[must_use]
    pub fn destination(&self, event: &Delivery) -> Destination {
        let table = self.0.table();
        let Some((_, runtime)) = table.runtime(event) else { return Destination::Unrouted };
        let route = runtime.name.to_string();
        let Some(sink) = &runtime.sink else { return Destination::Dropped { route } };
        match sink.message(event) {
            Ok(None) => Destination::Dropped { route },
            Err(problem) => Destination::Unsendable { route, problem },
            Ok(Some(message)) => Destination::Sent {
                route,
                broker: format!("{} at {}", sink.publisher.info().kind, sink.publisher.info().address),
                target: sink.publisher.shown(&message.target).into_owned(),
                key: message.key.map(String::from),
            },
        }
    }

    /// The status of each route, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<RouteStatus> {
        let now = Instant::now();
        self.0.table().runtimes.iter().map(|runtime| RouteStatus::of(runtime, now)).collect()
    }

    /// Closes every connection. What is handed over after that is put off.
    pub async fn close(&self) {
        let table = self.0.table();
        join_all(table.runtimes.iter().filter_map(|runtime| runtime.sink.as_ref()).map(|sink| sink.publisher.close()))
            .await;
    }
}

impl BatchHandler for Forwarder {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Answer>> {
        Box::pin(self.0.forward(deliveries))
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        self.0.table().runtime(delivery).map_or(u64::MAX, |(index, _)| index as u64)
    }

    fn lanes(&self) -> usize {
        self.0.table().runtimes.len()
    }

    fn has_type_alone(&self, delivery: &Delivery) -> bool {
        let table = self.0.table();
        table.runtime(delivery).is_some_and(|(index, _)| table.is_alone_with(index, delivery.event_type()))
    }
}

impl Inner {
    /// The routes as they are now.
    pub(super) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn runtime_named(&self, route: &str) -> Option<Arc<RouteRuntime>> {
        self.table().runtimes.iter().find(|runtime| &*runtime.name == route).cloned()
    }

    async fn forward(&self, deliveries: Vec<Delivery>) -> Vec<Answer> {
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
                    Some((index, runtime)) => self.through(table, index, runtime, &events).await,
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
            let mut told = self.told.lock();
            told.len() < MAX_TYPES && told.insert(event.event_type().into())
        };
        if is_first {
            let event_type = event.event_type();
            tracing::warn!(
                event_type,
                event_id = event.id().as_str(),
                ?unrouted,
                "no route takes events of a type; said once for each type"
            );
        }
        let problem = || {
            let (event_type, aggregate_type) = (event.event_type(), event.aggregate_type());
            format!("{NO_ROUTE}event type `{event_type}` of aggregate type `{aggregate_type}`")
        };
        match unrouted {
            Unrouted::Dead => Err(HandlerError::unrecoverable(problem())),
            Unrouted::Park(delay) => Err(HandlerError::unroutable(delay, problem())),
            Unrouted::Drop => Ok(Outcome::Done),
        }
    }

    /// Takes events of one route; an answer for each.
    async fn through(&self, table: &Table, index: usize, runtime: &RouteRuntime, events: &[&Delivery]) -> Vec<Answer> {
        let Some(sink) = &runtime.sink else {
            runtime.meters.dropped.increment(events.len() as u64);
            return events.iter().map(|_| Ok(Outcome::Done)).collect();
        };
        let put_off = |until: Instant, why: &str| {
            runtime.meters.deferred.increment(1);
            self.put_off(runtime, until, why)
        };
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
        let turn = match sink.limits.turn(PATIENCE).await {
            Ok(turn) => turn,
            Err(not_now) => {
                let until = Instant::now() + not_now.0;
                self.hold(sink, until);
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
        let leave = turn.spend(messages.len());
        let receipts = send(runtime, sink, &sent, messages).await;
        drop(leave);
        let now = Instant::now();
        let is_well = receipts.iter().all(Result::is_ok) && sink.targets.lock().is_empty();
        let found = if is_well { Findings::well() } else { findings(&parts, &receipts) };
        let paused = self.learn_all(runtime, sink, now, &found);
        let (mut receipts, mut sent) = (receipts.into_iter().zip(parts), sent.into_iter());
        let misses = plants::is("receipts_out_of_step");
        for waiting in answers.iter_mut().filter(|answer| answer.is_none() || misses) {
            let (event, (receipt, parts)) = (sent.next(), receipts.next().unwrap_or_else(|| (no_receipt(), None)));
            let delay = receipt.as_ref().err().and_then(|error| self.delay(sink, error, parts.as_ref(), paused, now));
            if let (None | Some(Delay::LongTrouble(_)), Some(event)) = (&delay, event) {
                sink.stranded.tell(runtime, sink, event, &receipt);
            }
            *waiting = Some(answer(&runtime.name, receipt, delay.map(Delay::length)));
        }
        complete(answers, || answer(&runtime.name, no_receipt(), None))
    }

    /// Decides whether these events may be sent now.
    fn admit(&self, table: &Table, index: usize, sink: &Sink, events: &[&Delivery]) -> Admission {
        let (is_new, held_until) = note_types(table, index, sink, events);
        let now = Instant::now();
        let by_hand = paused_by_hand(sink, now);
        let paused = by_hand.clone().or_else(|| sink.circuit.lock().paused());
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
                    self.hold(sink, end);
                }
                Admission::Wait { until, problem }
            }
            None => {
                let admission = match by_hand {
                    Some((until, problem)) => Admission::Wait { until, problem },
                    None => sink.circuit.lock().admit(now),
                };
                if let Admission::Wait { until, .. } = &admission {
                    self.hold(sink, *until);
                }
                admission
            }
        }
    }

    /// Decides again whether a batch may be sent that was admitted and has waited since; `is_probe` says that it is to try the destination
    /// out. What was held back is not looked at again: the keys of the batch have been in flight since it was admitted, so no event of theirs
    /// was read or left in the table meanwhile.
    fn admit_again(&self, sink: &Sink, is_probe: bool) -> Admission {
        let now = Instant::now();
        let admission = match paused_by_hand(sink, now) {
            Some((until, problem)) => Admission::Wait { until, problem },
            None => sink.circuit.lock().admit_again(now, is_probe),
        };
        if let Admission::Wait { until, .. } = &admission {
            // As after the first decision: the batch is left in the table with the later events of its types.
            self.hold(sink, *until);
        }
        admission
    }

    /// Tells the breakers of the route and of its targets; until when the route is paused, if it is.
    fn learn_all(&self, runtime: &RouteRuntime, sink: &Sink, now: Instant, found: &Findings) -> Option<Instant> {
        let mut is_new = false;
        if !found.parts.is_empty() {
            let mut targets = sink.targets.lock();
            let mut transitions = Vec::new();
            for (part, called) in &found.parts {
                let changed = targets.ended(part, now, called.clone());
                is_new |= changed.is_new;
                if changed.transition != Transition::None {
                    transitions.push((part, changed.transition, targets.paused(part).map(|(_, problem)| problem)));
                }
            }
            drop(targets);
            runtime.report();
            for (part, transition, problem) in transitions {
                sink.target_log.tell(runtime, sink, part, &transition, problem.as_deref());
            }
        }
        let whole = found.whole.clone().or_else(|| escalated(found, is_new));
        whole.and_then(|called| self.learn(runtime, sink, now, called))
    }

    /// Tells the breaker, and says of what changed; until when the route is paused, if it is.
    pub(super) fn learn(
        &self,
        runtime: &RouteRuntime,
        sink: &Sink,
        now: Instant,
        called: CallResult,
    ) -> Option<Instant> {
        let (transition, paused) = {
            let mut circuit = sink.circuit.lock();
            (circuit.ended(now, called), circuit.paused())
        };
        let info = sink.publisher.info();
        match transition {
            Transition::None => {}
            Transition::Paused { pause } | Transition::StillPaused { pause } => {
                runtime.report();
                let problem = paused.as_ref().map(|(_, problem)| problem.to_string()).unwrap_or_default();
                let message = if matches!(transition, Transition::Paused { .. }) {
                    "a route is paused: its destination takes nothing, or asks for a pause; its events stay pending, and no attempt is counted"
                } else {
                    "a route is still paused, for another reason than before"
                };
                let (route, publisher, address) = (&*runtime.name, info.kind, info.address.as_str());
                tracing::warn!(route, publisher, address, ?pause, problem, "{message}");
            }
            Transition::Resumed => {
                // One that an operator has paused stays so.
                if sink.by_hand.lock().is_none() {
                    self.release(runtime, sink, now);
                }
                tracing::info!(
                    route = &*runtime.name,
                    publisher = info.kind,
                    "a route goes on: its destination takes events again"
                );
            }
        }
        let until = paused.map(|(until, _)| until);
        if let Some(until) = until {
            self.hold(sink, until);
        }
        until
    }

    /// Reads the events of the route from the table again.
    pub(super) fn release(&self, runtime: &RouteRuntime, sink: &Sink, now: Instant) {
        let mut types = sink.types.lock();
        types.release(now);
        self.type_pause.resume(types.known.keys().map(|held| &**held));
        drop(types);
        runtime.report();
    }

    /// The time that an event stays away whose destination did not take it: for the pause of its route, which ends at `paused`, or of its
    /// target. Without any the destination takes others, and what is unavailable is put off for longer each time.
    fn delay(
        &self,
        sink: &Sink,
        error: &PublishError,
        parts: Option<&Parts>,
        paused: Option<Instant>,
        now: Instant,
    ) -> Option<Delay> {
        let own = parts.and_then(|parts| sink.targets.lock().paused_until(parts));
        if let Some(until) = paused.max(own) {
            return Some(Delay::Told(self.spread(until.saturating_duration_since(now))));
        }
        match (error.kind(), error.scope()) {
            // It waits for another message, and nothing is known about its destination.
            (PublishErrorKind::Unavailable, Scope::Message) => Some(Delay::Told(sink.backoffs.lock().shortest())),
            (PublishErrorKind::Unavailable, _) => {
                let mut backoffs = sink.backoffs.lock();
                let delay = backoffs.delay(part_of(error, parts), now);
                let is_longest = delay >= backoffs.longest();
                drop(backoffs);
                // Over half of it, so that a destination which takes some at a time is not asked for all at once.
                let spread = delay.mul_f64(0.5 + self.random.next_f64() / 2.0);
                Some(if is_longest { Delay::LongTrouble(spread) } else { Delay::Told(spread) })
            }
            _ => None,
        }
    }

    /// Puts an event off until its route, or its target, may go on, without an attempt.
    pub(super) fn put_off(&self, runtime: &RouteRuntime, until: Instant, why: &str) -> Answer {
        let delay = until.saturating_duration_since(Instant::now());
        Err(HandlerError::defer_on_this_node(self.spread(delay), format!("route `{}` {why}", runtime.name)))
    }

    /// Leaves the route's events in the table, as far as their type says that they are.
    pub(super) fn hold(&self, sink: &Sink, until: Instant) {
        let mut types = sink.types.lock();
        types.hold(Instant::now(), until);
        self.type_pause.pause_all(types.known.keys().map(|held| &**held), until);
        types.are_held(Instant::now());
    }

    /// A tenth more at random, so that what was put off together does not come back at once.
    fn spread(&self, delay: Duration) -> Duration {
        delay.mul_f64(1.0 + self.random.next_f64() / 10.0)
    }
}

/// Remembers the types of events that take this route, if none of their type takes another. Returns whether there was a new one, and the
/// end of the time in which earlier events than these may have been left in the table, if there was one.
fn note_types(table: &Table, index: usize, sink: &Sink, events: &[&Delivery]) -> (bool, Option<Instant>) {
    let mut types = sink.types.lock();
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

/// The time that an event stays away.
enum Delay {
    /// For a pause that the log tells of, or for a short while.
    Told(Duration),
    /// For trouble that has lasted, while its route and its target go on: nothing else would tell of it.
    LongTrouble(Duration),
}

impl Delay {
    fn length(self) -> Duration {
        match self {
            Self::Told(length) | Self::LongTrouble(length) => length,
        }
    }
}

/// Until when a route is paused by an operator at least, and why.
fn paused_by_hand(sink: &Sink, now: Instant) -> Option<(Instant, Arc<str>)> {
    sink.by_hand.lock().clone().map(|reason| (now + AGAIN_BY_HAND, reason))
}

/// Gives each event without an answer the one that `rest` makes.
fn complete(answers: Vec<Option<Answer>>, mut rest: impl FnMut() -> Answer) -> Vec<Answer> {
    answers.into_iter().map(|answer| answer.unwrap_or_else(&mut rest)).collect()
}

/// Sends the messages of events, and counts what came of it; a receipt for each.
async fn send(runtime: &RouteRuntime, sink: &Sink, events: &[&Delivery], messages: Vec<Message>) -> Vec<Receipt> {
    let sent = messages.len();
    if sent == 0 {
        return Vec::new();
    }
    let spans: Vec<_> = events
        .iter()
        .zip(&messages)
        .map(|(event, message)| MessageSpan::begin(runtime, sink, event, message))
        .collect();
    let began = Instant::now();
    let publishing = sink.publisher.publish(messages);
    let mut receipts = publishing.instrument(tracing::error_span!("send", route = &*runtime.name)).await;
    receipts.resize_with(sent, no_receipt);
    runtime.meters.duration.record(began.elapsed());
    runtime.meters.messages.record(f64::from(u32::try_from(sent).unwrap_or(u32::MAX)));
    spans.into_iter().zip(&receipts).for_each(|(span, receipt)| span.end(receipt));
    for receipt in &receipts {
        match receipt {
            Ok(_) => runtime.meters.confirmed.increment(1),
            Err(error) if error.blames_the_destination() => runtime.meters.deferred.increment(1),
            Err(_) => runtime.meters.failed.increment(1),
        }
    }
    receipts
}

/// An event that was neither sent nor answered for is tried again.
fn no_answer() -> Answer {
    Err(HandlerError::retryable("the event has no answer"))
}

/// A publisher that forgets a message has not confirmed it.
fn no_receipt() -> Receipt {
    Err(PublishError::temporary("the publisher gave no receipt for it"))
}

/// One that tries a destination out. Given up, it lets the next one.
pub(super) struct Probing<'a>(pub(super) &'a Sink);

impl Drop for Probing<'_> {
    fn drop(&mut self) {
        self.0.circuit.lock().withdraw();
    }
}
