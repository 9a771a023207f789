//! The plan of a world: all that is chosen before it begins.

mod routes;

pub use routes::{Brokers, Place, Routing};

use std::time::Duration;

use pillarbox_core::ownership::NodeMode;
use pillarbox_engine::run::{Config, FailingHead, FailingKey};

use crate::chance::Chance;
use crate::check::{Order, Rules};

/// All that is chosen before a world begins.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The mode of all nodes at first.
    pub mode: NodeMode,
    /// The mode of all nodes that start after the operators have changed it.
    pub next_mode: Option<NodeMode>,
    /// The number of nodes.
    pub nodes: usize,
    /// The settings of every node.
    pub settings: Settings,
    /// Events that are written.
    pub events: usize,
    /// Events that are in the table before any node starts.
    pub backlog: usize,
    /// The number of keys that the events have.
    pub keys: u64,
    /// Some events have two named handlers.
    pub named: bool,
    /// Some events are handled in batches of at most so many.
    pub batch: Option<usize>,
    /// Some events are handled in the transaction in which they become DONE.
    pub transactions: bool,
    /// The handler of most events has limits: of calls at once, and of events in a second.
    pub limits: Option<(usize, u32)>,
    /// Handlers have a fallback.
    pub fallback: bool,
    /// Events are passed on to brokers by routes, in the place of other handlers.
    pub routing: Option<Routing>,
    /// Operators work on DEAD events and purge old ones while there are faults.
    pub operators: bool,
    /// Operators cancel pending events and have others tried now.
    pub controls: bool,
    /// Operators pause event types and handlers, and resume them.
    pub pauses: bool,
    /// For how long there are faults.
    pub faults_for: Duration,
    /// The longest time between two faults, in milliseconds.
    pub fault_every: u64,
    /// The kinds of faults.
    pub faults: Faults,
    /// The ways of the links to the database.
    pub weather: Weather,
    /// The ways of handlers.
    pub handlers: Handlers,
    /// The ways of writers.
    pub writers: Writers,
    /// Of 256 polls of a task, so many are put off.
    pub yields: u8,
}

/// The settings of every node.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names are those of the engine's settings")]
pub struct Settings {
    pub lease: Duration,
    pub poll: (Duration, Duration),
    pub claim_batch: usize,
    pub cold_capacity: usize,
    pub hot_capacity: usize,
    pub workers: usize,
    pub settle_batch: usize,
    pub delete_done: bool,
    pub max_attempts: u32,
    pub backoff: (Duration, Duration),
    pub failing_key: FailingKey,
    pub failing_head: FailingHead,
    pub drain: Duration,
    pub handler_timeout: Duration,
    pub wake_up: bool,
    pub purge: bool,
}

/// The weights of the faults, of which one is chosen at a time.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the names say what they are")]
pub struct Faults {
    pub kill: u64,
    pub freeze: u64,
    pub cut: u64,
    pub stop: u64,
    pub restart: u64,
    pub go_back: u64,
    pub clock: u64,
    pub broker: u64,
}

/// The ways of the links to the database; in permille of the calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// The call fails before it has an effect.
    pub fails: u64,
    /// The call has its effect, and the answer is lost.
    pub loses: u64,
    /// The request is on its way by itself: it arrives late, whatever becomes of its sender.
    pub detaches: u64,
    /// The longest that it is on its way, in milliseconds.
    pub late: u64,
    /// Another transaction holds the lock.
    pub contends: u64,
    /// The call takes time.
    pub delays: u64,
    /// The longest usual delay, in milliseconds.
    pub delay: u64,
    /// The call takes very long.
    pub stalls: u64,
}

/// The ways of handlers while there are faults; in permille of the calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Handlers {
    /// It fails, and is worth another try.
    pub fails: u64,
    /// It asks for another time.
    pub defers: u64,
    /// It fails for good.
    pub hopeless: u64,
    /// It panics.
    pub panics: u64,
    /// It never ends.
    pub hangs: u64,
    /// It ends its process.
    pub kills: u64,
    /// It takes time.
    pub takes: u64,
    /// The longest usual time, in milliseconds.
    pub time: u64,
    /// It takes very long.
    pub stalls: u64,
}

/// The ways of writers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writers {
    /// The longest pause between two writes, in milliseconds.
    pub pause: u64,
    /// In permille: a transaction stays open for long.
    pub lingers: u64,
    /// In permille: it is rolled back.
    pub rolls_back: u64,
    /// In permille: part of it is rolled back to a savepoint.
    pub saves: u64,
    /// In permille: it is prepared, and ended later by somebody else.
    pub prepares: u64,
    /// In permille: an event is due later.
    pub delays: u64,
    /// In permille: a row is inserted by another program.
    pub foreign: u64,
}

impl Plan {
    /// Chooses a world.
    #[must_use]
    pub fn choose(chance: &Chance) -> Self {
        let mode = chance.pick([
            NodeMode::Partitioned,
            NodeMode::Partitioned,
            NodeMode::Partitioned,
            NodeMode::MultiNode,
            NodeMode::MultiNode,
            NodeMode::SingleNode,
            NodeMode::SingleNode,
            NodeMode::Ordered,
        ]);
        // Without any fault, the checks excuse nothing.
        let calm = chance.one_in(5);
        let deep = !calm && chance.one_in(12);
        let deep_backlog = deep || chance.one_in(25);
        let nodes = match mode {
            NodeMode::Partitioned | NodeMode::MultiNode => chance.size(1, if deep_backlog { 2 } else { 5 }),
            _ => chance.size(1, 3),
        };
        let odds = |of: u64, most: u64| if chance.one_in(of) { chance.between(1, most) } else { 0 };
        // Nodes come and go all the time, and partitions with them.
        let churns = mode == NodeMode::Partitioned && !calm && chance.one_in(3);
        let nodes = if churns { nodes.max(2) } else { nodes };
        // Transactions stay open, are prepared, and end late.
        let prepares = !churns && !calm && chance.one_in(6);
        let faults_for = if calm { chance.millis(200, 2000) } else { chance.millis(500, 9000) };
        let mut plan = Self {
            mode,
            next_mode: None,
            nodes,
            settings: Settings::choose(chance, deep_backlog),
            events: chance.size(3, 24),
            backlog: if deep_backlog { chance.size(30, 120) } else { chance.size(0, 12) },
            keys: if prepares { chance.between(1, 2) } else { chance.between(1, 6) },
            named: chance.one_in(3),
            batch: chance.one_in(4).then(|| chance.size(2, 5)),
            transactions: chance.one_in(3),
            limits: None,
            fallback: chance.one_in(5),
            routing: None,
            operators: chance.one_in(2),
            controls: false,
            pauses: false,
            faults_for,
            fault_every: if churns { chance.between(60, 500) } else { chance.between(150, 2500) },
            faults: match (calm, churns) {
                (true, _) => Faults::default(),
                (false, true) => Faults { stop: 3, kill: chance.below(3), ..Faults::default() },
                (false, false) => Faults::choose(chance),
            },
            weather: if calm {
                Weather { delays: odds(2, 500), delay: chance.between(1, 30), ..Weather::default() }
            } else if churns {
                Weather {
                    detaches: chance.pick([0, 80, 200]),
                    late: 2500,
                    delays: odds(2, 700),
                    delay: chance.pick([10, 100, 600]),
                    ..Weather::default()
                }
            } else {
                Weather {
                    fails: odds(2, 60),
                    loses: odds(2, 60),
                    detaches: odds(3, 60),
                    late: 900,
                    contends: odds(4, 60),
                    delays: if prepares { 500 } else { odds(2, 500) },
                    delay: chance.between(1, 40),
                    stalls: odds(4, 8),
                }
            },
            handlers: Handlers {
                fails: odds(2, 250),
                defers: odds(4, 100),
                hopeless: odds(4, 60),
                panics: odds(5, 50),
                hangs: if calm { 0 } else { odds(6, 30) },
                kills: if calm { 0 } else { odds(6, 40) },
                takes: odds(2, 700),
                time: chance.between(1, 60),
                stalls: odds(5, 60),
            },
            writers: if prepares {
                let pause = chance.pick([300, 1000]);
                Writers { pause, lingers: 600, prepares: 500, ..Writers::default() }
            } else {
                Writers {
                    pause: chance.pick([0, 5, 50, 500, 1500]),
                    lingers: odds(3, 250),
                    rolls_back: odds(3, 150),
                    saves: odds(3, 300),
                    prepares: odds(3, 250),
                    delays: odds(3, 250),
                    foreign: odds(4, 250),
                }
            },
            yields: chance.pick([0, 30, 90, 160]),
        };
        if !(calm || churns || prepares) {
            plan.turn(chance);
        }
        if chance.one_in(4) {
            plan.route(chance, calm);
        }
        if !calm && plan.mode != NodeMode::Ordered && chance.one_in(8) {
            plan.next_mode = Some(chance.pick([NodeMode::Partitioned, NodeMode::MultiNode, NodeMode::SingleNode]));
        }
        if !calm && plan.routing.is_none() {
            plan.provoke(chance);
        }
        plan.controls = chance.one_in(4);
        plan.pauses = chance.one_in(4);
        if (plan.controls || plan.pauses) && plan.routing.is_none() && chance.one_in(3) {
            plan.hold_up(chance);
        }
        if plan.routing.is_none() && chance.one_in(4) {
            plan.limits = Some((chance.pick([1, 1, 2, 3]), chance.pick([100, 1000, 100_000])));
        }
        plan
    }

    /// Makes some worlds worse in one way: the database goes back under slow verdicts, or nodes are cut off with much to do.
    fn turn(&mut self, chance: &Chance) {
        match chance.below(6) {
            0 => {
                self.faults = Faults { go_back: 4, clock: chance.below(5), ..Faults::default() };
                self.fault_every = chance.between(200, 900);
                (self.weather.delays, self.weather.delay) = (500, 60);
                (self.writers.pause, self.events) = (chance.pick([5, 50, 500]), 30);
            }
            1 => {
                self.faults = Faults { cut: 4, ..Faults::default() };
                self.fault_every = chance.between(800, 2500);
                (self.nodes, self.backlog) = (self.nodes.max(2), 60);
                (self.handlers.takes, self.handlers.time) = (900, 200);
                (self.settings.claim_batch, self.settings.cold_capacity) = (100, 100);
            }
            _ => {}
        }
    }

    /// Makes some worlds such as rare bugs need: heads that a transaction ends while a read is under way, and verdicts that arrive behind a
    /// replay.
    fn provoke(&mut self, chance: &Chance) {
        match chance.below(6) {
            0 if self.mode == NodeMode::Partitioned => {
                (self.transactions, self.handlers.fails) = (true, 250);
                (self.keys, self.backlog) = (2, self.backlog.max(20));
                (self.weather.delays, self.weather.delay) = (700, 60);
            }
            1 if self.operators => {
                (self.handlers.hopeless, self.weather.detaches, self.weather.late) = (100, 100, 900);
            }
            _ => {}
        }
    }

    /// Has events wait in memory for long while operators change or pause them, and no fault that would excuse whoever does not notice.
    fn hold_up(&mut self, chance: &Chance) {
        self.faults = Faults::default();
        self.weather = Weather { delays: 300, delay: chance.between(1, 30), ..Weather::default() };
        self.handlers = Handlers { takes: 1000, time: 1500, fails: self.handlers.fails, ..Handlers::default() };
        self.writers = Writers { pause: self.writers.pause, ..Writers::default() };
        self.backlog = self.backlog.max(12);
        (self.faults_for, self.fault_every) = (chance.millis(3000, 7000), chance.between(400, 1500));
        let settings = &mut self.settings;
        (settings.workers, settings.handler_timeout) = (chance.pick([1, 2]), Duration::from_secs(5));
        (settings.claim_batch, settings.cold_capacity) = (16, 32);
    }

    /// Has events passed on to brokers. Whether a call ends well is up to them then.
    fn route(&mut self, chance: &Chance, calm: bool) {
        self.routing = Some(Routing::choose(chance, calm));
        (self.named, self.batch, self.transactions) = (false, None, false);
        // Longer than a publisher and the wait for a route's turn may take: what is cut off before counts as failed.
        self.settings.handler_timeout = Duration::from_secs(5);
        self.handlers = Handlers { hangs: 0, fails: 0, defers: 0, hopeless: 0, ..self.handlers };
        if !calm {
            self.faults.broker = chance.between(1, 4);
        }
    }

    /// The modes of nodes in this world.
    pub fn modes(&self) -> impl Iterator<Item = NodeMode> {
        std::iter::once(self.mode).chain(self.next_mode)
    }

    /// The rules that nodes of this mode keep to.
    #[must_use]
    pub fn rules(&self, mode: NodeMode) -> Rules {
        let settings = &self.settings;
        let at_once = self.gives_up_at_once(mode);
        let order = match (mode, settings.failing_key) {
            (NodeMode::Ordered, _) => Order::Table { retries: !at_once },
            (NodeMode::Partitioned, FailingKey::Wait) => Order::Key { dead_blocks: true },
            (NodeMode::Partitioned, FailingKey::SkipDead) => Order::Key { dead_blocks: false },
            (NodeMode::Partitioned, FailingKey::Continue) => Order::First,
            _ => Order::None,
        };
        Rules { mode, order, max_attempts: if at_once { 1 } else { settings.max_attempts } }
    }

    /// True if an event is given up at its first failure, so that nothing else can be said about its attempts.
    fn gives_up_at_once(&self, mode: NodeMode) -> bool {
        mode == NodeMode::Ordered && self.settings.failing_head == FailingHead::DeadAndContinue
    }

    /// The engine's settings of a node of this mode.
    #[must_use]
    pub fn config(&self, mode: NodeMode) -> Config {
        let settings = &self.settings;
        let mut config = Config::default();
        config.claim.batch = settings.claim_batch;
        (config.claim.min_interval, config.claim.max_interval) = settings.poll;
        config.dispatch.cold_capacity = settings.cold_capacity;
        if mode != NodeMode::Ordered {
            config.dispatch.workers = settings.workers;
        }
        if matches!(mode, NodeMode::SingleNode | NodeMode::MultiNode) {
            config.dispatch.hot_capacity = settings.hot_capacity;
        }
        config.dispatch.handler_timeout = Some(settings.handler_timeout);
        if !self.gives_up_at_once(mode) {
            config.retry.max_attempts = settings.max_attempts;
        }
        match mode {
            NodeMode::Partitioned => config.retry.failing_key = settings.failing_key,
            NodeMode::Ordered => config.retry.failing_head = settings.failing_head,
            _ => {}
        }
        config.settle.batch = settings.settle_batch;
        config.settle.delete_done = settings.delete_done;
        config.ownership.lease = settings.lease;
        config.shutdown.drain_timeout = settings.drain;
        config.wake_up.enabled = settings.wake_up;
        if settings.purge {
            config.purge.done_after = Some(Duration::from_secs(2));
            config.purge.interval = Duration::from_secs(1);
        }
        config
    }
}

impl Settings {
    fn choose(chance: &Chance, deep: bool) -> Self {
        let small = deep || chance.one_in(2);
        let max = chance.pick([100, 400, 1500, 5000]);
        Self {
            lease: chance.pick([600, 1000, 1500, 3000].map(Duration::from_millis)),
            poll: (chance.millis(1, 50.min(max)), Duration::from_millis(max)),
            claim_batch: if small { chance.size(1, 8) } else { chance.pick([16, 1000]) },
            cold_capacity: if small { chance.size(1, 16) } else { chance.pick([32, 4000]) },
            hot_capacity: if chance.one_in(2) { chance.size(1, 4) } else { 2000 },
            workers: chance.pick([1, 2, 2, 4, 8]),
            settle_batch: if chance.one_in(2) { chance.size(1, 6) } else { 1000 },
            delete_done: chance.one_in(4),
            max_attempts: u32::try_from(chance.between(1, 6)).unwrap_or(1),
            backoff: (chance.millis(1, 50), chance.millis(50, 1500)),
            failing_key: chance.pick([FailingKey::Wait, FailingKey::Wait, FailingKey::SkipDead, FailingKey::Continue]),
            failing_head: chance.pick([
                FailingHead::RetryInPlace,
                FailingHead::RetryInPlace,
                FailingHead::DeadAndContinue,
            ]),
            drain: chance.pick([100, 500, 2000].map(Duration::from_millis)),
            handler_timeout: chance.pick([400, 1500, 5000].map(Duration::from_millis)),
            wake_up: chance.one_in(2),
            purge: chance.one_in(6),
        }
    }
}

impl Faults {
    fn choose(chance: &Chance) -> Self {
        let weight = |of: u64| if chance.one_in(of) { chance.between(1, 4) } else { 0 };
        Self {
            kill: weight(2),
            freeze: weight(2),
            cut: weight(2),
            stop: weight(2),
            restart: weight(3),
            go_back: weight(3),
            clock: weight(5),
            broker: 0,
        }
    }
}
