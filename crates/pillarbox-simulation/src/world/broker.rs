use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use pillarbox_core::publisher::{FailureScope, Message, PublishError, Publisher, PublisherInfo, Receipt};
use tokio::time::{Instant, sleep, sleep_until};

use super::World;
use crate::check::event_number;

/// A broker: it takes messages and confirms them, unless something happens to it or on the way.
#[derive(Debug)]
pub(crate) struct Broker {
    number: u8,
    info: PublisherInfo,
    state: AtomicU8,
    world: Weak<World>,
}

/// The state of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It takes messages.
    Well = 0,
    /// Connections are refused.
    Away = 1,
    /// Connections stay, and nobody answers.
    Silent = 2,
    /// It refuses every message until somebody changes something.
    Misconfigured = 3,
}

impl Broker {
    /// The broker of this number.
    #[must_use]
    pub(crate) fn new(number: u8, world: Weak<World>) -> Self {
        let info = PublisherInfo::new("simulated", format!("simulated://broker-{number}"));
        Self { number, info, state: AtomicU8::new(State::Well as u8), world }
    }

    /// Changes its state.
    pub(crate) fn turn(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    fn is(&self, state: State) -> bool {
        self.state.load(Relaxed) == state as u8
    }

    /// The error with which messages are refused at the moment, if they are.
    fn refusal(&self) -> Option<PublishError> {
        if self.is(State::Away) {
            return Some(PublishError::unavailable("the broker is away"));
        }
        let missing = || PublishError::misconfigured("the broker has no such target").limited_to(FailureScope::Target);
        self.is(State::Misconfigured).then(missing)
    }

    /// Takes one message, or not.
    fn take(&self, world: &World, message: &Message, broken: &mut bool) -> Receipt {
        let Some(routing) = &world.plan.routing else { return Ok(None) };
        let (chance, ways, calm) = (&world.chance, routing.brokers, world.is_healed());
        *broken |= !calm && chance.permille(ways.breaks);
        if *broken {
            return Err(PublishError::unavailable("the connection broke"));
        }
        if !calm && chance.permille(ways.declines) {
            let error = PublishError::temporary("not now");
            return Err(if chance.one_in(3) { error.retry_after(chance.millis(0, 500)) } else { error });
        }
        if !calm && chance.permille(ways.forbids) {
            return Err(PublishError::permanent("too large"));
        }
        let event = event_number(message.id.as_str());
        if !calm && chance.permille(ways.loses) {
            world.database.story.tell("broker", format_args!("{self} takes e{event}, and says nothing"));
            let scope = chance.pick([FailureScope::Broker, FailureScope::Broker, FailureScope::Message]);
            return Err(PublishError::unavailable("there was no confirmation in time").limited_to(scope));
        }
        world.database.story.tell("broker", format_args!("{self} takes e{event}"));
        world.database.checker().confirmed(event);
        Ok(event.is_multiple_of(2).then(|| format!("{self}/{event}")))
    }
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broker {}", self.number)
    }
}

/// The publisher of one process.
#[derive(Debug)]
pub(crate) struct Sender {
    broker: Arc<Broker>,
    process: String,
}

impl Sender {
    /// The publisher of the process of this name.
    #[must_use]
    pub(crate) fn new(broker: &Arc<Broker>, process: &str) -> Self {
        Self { broker: Arc::clone(broker), process: process.to_owned() }
    }
}

/// A call of a publisher that runs.
struct UnderWay<'a> {
    world: &'a World,
    number: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.world.database.checker().sent(self.number);
    }
}

#[async_trait]
impl Publisher for Sender {
    fn info(&self) -> &PublisherInfo {
        &self.broker.info
    }

    async fn check(&self, _targets: &[String]) -> Result<(), PublishError> {
        let Some(world) = self.broker.world.upgrade() else { return Ok(()) };
        sleep(world.chance.millis(0, 10)).await;
        if self.broker.is(State::Silent) {
            sleep(world.plan.routing.map_or_else(Default::default, |routing| routing.brokers.limit)).await;
            return Err(PublishError::unavailable("nobody answers"));
        }
        self.broker.refusal().map_or(Ok(()), Err)
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        let Some(world) = self.broker.world.upgrade() else { return Vec::new() };
        let Some(routing) = &world.plan.routing else { return Vec::new() };
        let (chance, ways) = (&world.chance, routing.brokers);
        let limit = Instant::now() + ways.limit;
        let sent = messages.iter().map(|message| (message.id.as_str(), message.body.as_ref()));
        let number = world.database.checker().sending(&self.process, self.broker.number, sent);
        let _under_way = UnderWay { world: &world, number };
        world.database.watch();
        let all = |error: &PublishError| messages.iter().map(|_| Err(error.clone())).collect();
        if chance.permille(ways.takes) {
            sleep_until(limit.min(Instant::now() + chance.millis(1, ways.time))).await;
        }
        if let Some(error) = self.broker.refusal() {
            return all(&error);
        }
        if self.broker.is(State::Silent) {
            sleep_until(limit).await;
            return all(&PublishError::unavailable("nobody answers"));
        }
        let mut broken = false;
        let receipts = messages.iter().map(|message| self.broker.take(&world, message, &mut broken)).collect();
        if chance.permille(ways.takes) {
            // Confirmations are on their way; whoever is dropped here has sent all the same.
            sleep_until(limit.min(Instant::now() + chance.millis(1, ways.time))).await;
        }
        receipts
    }

    fn shown<'a>(&self, target: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(target)
    }

    async fn close(&self) {}
}
