//! A world: nodes, writers, operators and handlers on one database, and what happens to them.

mod answers;
mod broker;
mod clock;
mod database;
mod faults;
mod forwarding;
mod handler;
mod link;
mod node;
mod operator;
mod port;
mod transaction;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::NodeMode;
use pillarbox_engine::run::Role;
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use broker::{Broker, State};
use clock::JumpingClock;
use database::Database;
use link::Link;
use node::Host;

use crate::chance::Chance;
use crate::check::Violation;
use crate::plan::Plan;
use crate::story::Story;

/// Once faults have ended, everything is terminal within this time, unless the database's clock was set back.
const LIVELINESS: Duration = Duration::from_secs(150);

/// Everything there is.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    chance: Chance,
    database: Arc<Database>,
    hosts: Vec<Host>,
    /// One for each route.
    brokers: Vec<Arc<Broker>>,
    stamp: Stamp,
    tasks: TaskTracker,
    requests: TaskTracker,
    /// Events that are still to be written.
    to_write: AtomicUsize,
    /// Writes under way.
    writing: AtomicUsize,
    healed: AtomicBool,
    /// The operators have changed the mode.
    switched: AtomicBool,
}

/// The result of a world.
#[derive(Debug, Clone)]
pub struct End {
    /// The invariant that did not hold, if one did not.
    pub violation: Option<Violation>,
    /// Statements that were executed.
    pub statements: u64,
    /// Virtual seconds that it lasted.
    pub seconds: f64,
}

impl World {
    /// A world of this plan, in which nothing has happened.
    #[must_use]
    pub fn new(plan: Plan, chance: Chance, story: Story) -> Arc<Self> {
        let hosts = (1..=plan.nodes).map(|number| {
            let ahead = i64::try_from(chance.below(10_000_000)).unwrap_or(0) - 5_000_000;
            Host::new(format!("n{number}"), ahead)
        });
        let hosts = hosts.collect();
        Arc::new_cyclic(|world: &Weak<Self>| Self {
            hosts,
            brokers: (1..=3).map(|number| Arc::new(Broker::new(number, world.clone()))).collect(),
            stamp: Stamp::new(Arc::new(JumpingClock::ahead(0)), Arc::new(chance.clone())),
            database: Arc::new(Database::new(&plan, chance.clone(), story)),
            tasks: TaskTracker::new(),
            requests: TaskTracker::new(),
            to_write: AtomicUsize::new(plan.events),
            writing: AtomicUsize::new(0),
            healed: AtomicBool::new(false),
            switched: AtomicBool::new(false),
            plan,
            chance,
        })
    }

    /// True once there are no more faults.
    pub(super) fn is_healed(&self) -> bool {
        self.healed.load(Relaxed)
    }

    /// The mode of the nodes that start now.
    pub(super) fn mode(&self) -> NodeMode {
        self.plan.next_mode.filter(|_| self.switched.load(Relaxed)).unwrap_or(self.plan.mode)
    }

    /// Runs until everything is delivered, or something is violated.
    pub async fn run(self: &Arc<Self>) -> End {
        let violated = Arc::clone(&self.database);
        tokio::select! {
            biased;
            () = violated.violated.notified() => {}
            () = self.history() => {}
        }
        self.database.watch();
        self.hosts.iter().for_each(Host::clear);
        let violation = self.database.checker().violation().cloned();
        End { violation, statements: self.database.statements(), seconds: self.database.story.seconds() }
    }

    async fn history(self: &Arc<Self>) {
        let link = Link::new(Arc::clone(&self.database), "backlog".to_owned(), Arc::default(), self.requests.clone());
        // What the weather takes of the backlog was never there.
        drop(self.fill(&Arc::new(link)).await);
        for node in 0..self.plan.nodes {
            self.start(node);
            if self.chance.one_in(3) {
                sleep(self.chance.millis(0, 300)).await;
            }
        }
        self.go_wrong().await;
        self.heal().await;
        self.settle_down().await;
        self.end().await;
    }

    /// Ends all faults.
    async fn heal(self: &Arc<Self>) {
        self.database.story.tell("world", format_args!("all faults end"));
        self.healed.store(true, Relaxed);
        self.database.calm_down();
        self.brokers.iter().for_each(|broker| broker.turn(State::Well));
        for (node, host) in self.hosts.iter().enumerate() {
            host.wire.cut(false);
            if host.mode().is_some_and(|mode| mode != self.mode()) {
                self.database.story.tell(&host.name, format_args!("is killed, since its mode is an old one"));
                self.kill(node);
            }
            if let Some(process) = host.process() {
                self.database.checker().members().surprise(&host.name);
                process.resume();
            }
        }
        while self.resolve_prepared().await {}
        self.resume_all().await;
        self.revive(true);
    }

    /// Waits until everything is delivered, with an operator who gives no event up.
    async fn settle_down(self: &Arc<Self>) {
        let limit = Instant::now() + LIVELINESS;
        let mut rounds = 0_u64;
        loop {
            self.revive(true);
            let (writes, pending, dead) = {
                let checker = self.database.checker();
                let writes = self.to_write.load(Relaxed) + self.writing.load(Relaxed);
                (writes, checker.pending().count(), checker.dead().len())
            };
            if writes == 0 && pending == 0 && (dead == 0 || rounds > 0) {
                return;
            }
            if Instant::now() >= limit {
                let rows: Vec<String> =
                    self.database.checker().pending().take(5).map(|line| format!("{line:?}")).collect();
                let what = format!("{pending} rows are pending {LIVELINESS:?} after the last fault: {rows:?}");
                return self.database.checker().note(Err(Violation::new("liveness", what)));
            }
            rounds += 1;
            if rounds.is_multiple_of(8) {
                self.operate(true).await;
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Stops all nodes, which leave nothing behind.
    async fn end(self: &Arc<Self>) {
        self.database.story.tell("world", format_args!("everything is delivered"));
        for node in 0..self.plan.nodes {
            let role = self.hosts.get(node).and_then(Host::outbox).map(|outbox| outbox.role());
            let has_lived = self.shut_down(node).await;
            let Some(Role::Active { node }) = role.filter(|_| has_lived) else { continue };
            let mut checker = self.database.checker();
            if checker.members().has_stayed(&node) {
                let what = format!("{node} has shut down without a fault, and is still registered");
                checker.note(Err(Violation::new("I1", what)));
            }
        }
    }

    /// I7: memory is bounded by the capacities.
    fn check_memory(&self, node: usize) {
        let Some(host) = self.hosts.get(node) else { return };
        let (Some(stats), Some(mode)) = (host.outbox().map(|outbox| outbox.stats()), host.mode()) else { return };
        let config = self.plan.config(mode);
        let (dispatch, settle, claim) = (&config.dispatch, &config.settle, &config.claim);
        let most =
            dispatch.hot_capacity + dispatch.cold_capacity + dispatch.workers * 2 + claim.batch + settle.batch * 3;
        let fits = stats.in_memory <= most
            && stats.hot_depth <= dispatch.hot_capacity
            && stats.cold_depth <= dispatch.cold_capacity;
        if !fits {
            let what =
                format!("{} events are in memory, {} hot, {} cold", stats.in_memory, stats.hot_depth, stats.cold_depth);
            self.database.checker().note(Err(Violation::new("I7", what)));
        }
    }
}
