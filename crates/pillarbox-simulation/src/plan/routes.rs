use std::time::Duration;

use crate::chance::Chance;

/// The limit of a publisher: how long it waits for a confirmation.
const TIME_LIMITS: [u64; 3] = [200, 800, 2000];

/// The routes of a world: events of the type `split` go to the first broker, those of the type `plain` with the header `lane`
/// to the second one, all others to the third.
#[derive(Debug, Clone, Copy)]
pub struct Routing {
    /// The ways of brokers.
    pub brokers: Brokers,
    /// Events that are sent together.
    pub batch: usize,
    /// Each type of events has a target of its own at its broker.
    pub by_type: bool,
    /// In permille: an event has the header `lane`, so that its type does not tell where it goes.
    pub lane: u64,
    /// Messages of a route in a second.
    pub rate: Option<u32>,
    /// Calls of a route at once.
    pub concurrency: Option<usize>,
    /// Calls that fail before a route is paused.
    pub failures: u32,
    /// The shortest and the longest pause of a route.
    pub pause: (Duration, Duration),
    /// In permille of an operator's rounds: the routes of a node are replaced.
    pub replaces: u64,
}

/// The ways of brokers while there are faults; in permille of the messages, or of the calls.
#[derive(Debug, Clone, Copy)]
pub struct Brokers {
    /// The time that a publisher waits for confirmations.
    pub limit: Duration,
    /// A message is declined, and may be taken later.
    pub declines: u64,
    /// A message will never be taken.
    pub forbids: u64,
    /// A message is taken, and its confirmation lost.
    pub loses: u64,
    /// The connection breaks before a message is sent: it is lost with all that follow.
    pub breaks: u64,
    /// A call takes time.
    pub takes: u64,
    /// The longest that it takes, in milliseconds.
    pub time: u64,
}

/// The number of a target, in which events keep their order; zero in worlds without routes.
pub type Place = u8;

/// The numbers of a broker's targets are above so many times its number.
const TARGETS: u8 = 4;

impl Routing {
    pub(super) fn choose(chance: &Chance, calm: bool) -> Self {
        let odds = |of: u64, most: u64| if chance.one_in(of) { chance.between(1, most) } else { 0 };
        let first = chance.between(5, 300);
        Self {
            brokers: Brokers {
                limit: Duration::from_millis(chance.pick(TIME_LIMITS)),
                declines: odds(3, 150),
                forbids: odds(4, 60),
                loses: if calm { 0 } else { odds(2, 100) },
                breaks: if calm { 0 } else { odds(2, 100) },
                takes: odds(2, 900),
                time: chance.between(1, 80),
            },
            batch: chance.size(1, 8),
            by_type: chance.one_in(3),
            lane: chance.pick([0, 300, 300]),
            rate: chance.one_in(6).then(|| chance.pick([5, 50, 500])),
            concurrency: chance.one_in(5).then(|| chance.size(1, 2)),
            failures: chance.pick([1, 2, 5]),
            pause: (Duration::from_millis(first), Duration::from_millis(first * chance.between(1, 10))),
            replaces: odds(4, 500),
        }
    }

    /// The target of an event.
    #[must_use]
    pub fn place(&self, event_type: &str, in_lane: bool) -> Place {
        let broker = match (event_type, in_lane) {
            ("split", _) => 1,
            ("plain", true) => 2,
            _ => 3,
        };
        let target = match event_type {
            "plain" => 1,
            "batch" => 2,
            _ => 3,
        };
        broker * TARGETS + if self.by_type { target } else { 0 }
    }

    /// The number of the broker that has this target.
    #[must_use]
    pub fn broker(place: Place) -> u8 {
        place / TARGETS
    }
}
