use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pillarbox_core::clock::Clock as _;
use pillarbox_core::error::StoreError;
use pillarbox_memory::{MemoryStore, MemoryTransaction, Snapshot};
use tokio::sync::Notify;

use super::clock::JumpingClock;
use crate::chance::Chance;
use crate::check::{Checker, Op, Violation};
use crate::engine::panics;
use crate::plan::{Plan, Weather};
use crate::story::Story;

/// So many statements are too many for any world: something spins.
const MOST_STATEMENTS: u64 = 60_000;

/// The database of a world: the in-memory store, what happens to it, and who watches it.
pub(crate) struct Database {
    /// The tables.
    pub(crate) store: MemoryStore,
    clock: Arc<JumpingClock>,
    checker: Mutex<Checker>,
    state: Mutex<State>,
    /// The source of all that is chosen while the world runs.
    pub(crate) chance: Chance,
    /// The story of the run.
    pub(crate) story: Story,
    /// Notified at the first violation.
    pub(crate) violated: Notify,
    weather: Weather,
}

#[derive(Debug, Default)]
struct State {
    up: bool,
    /// Grows when all connections break.
    connections: u64,
    /// Grows when the data goes back so that connections can see it.
    server: u64,
    calm: bool,
    open: Vec<Weak<Held>>,
    prepared: Vec<Prepared>,
    statements: u64,
}

/// A transaction that the database holds open.
pub(crate) type Held = Mutex<Option<MemoryTransaction>>;

/// A transaction that was prepared: it outlives its connection.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Its name in the list of writers before it was prepared.
    pub(crate) first: i64,
    /// The transaction.
    pub(crate) held: Arc<Held>,
    /// The rows that it commits.
    pub(crate) rows: Vec<(i64, u32, u8)>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Database {
    /// An empty database.
    #[must_use]
    pub(crate) fn new(plan: &Plan, chance: Chance, story: Story) -> Self {
        let clock = Arc::new(JumpingClock::ahead(0));
        Self {
            store: MemoryStore::with_clock(Arc::clone(&clock) as Arc<_>),
            clock,
            checker: Mutex::new(Checker::new(plan.modes().map(|mode| plan.rules(mode)).collect(), plan.settings.lease)),
            state: Mutex::new(State { up: true, ..State::default() }),
            chance,
            story,
            violated: Notify::new(),
            weather: plan.weather,
        }
    }

    /// The checker, which watches the run.
    pub(crate) fn checker(&self) -> MutexGuard<'_, Checker> {
        self.checker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if it can be reached.
    #[must_use]
    pub(crate) fn is_up(&self) -> bool {
        self.state().up
    }

    /// The generation of its connections: all of one are broken when there is a next.
    #[must_use]
    pub(crate) fn connections(&self) -> u64 {
        self.state().connections
    }

    /// The name of the server that a connection reaches.
    #[must_use]
    pub(crate) fn server(&self) -> u64 {
        self.state().server
    }

    /// The faults and delays of calls now.
    #[must_use]
    pub(crate) fn weather(&self) -> Weather {
        let calm = self.state().calm;
        if calm {
            Weather { delays: self.weather.delays, delay: self.weather.delay.min(5), ..Weather::default() }
        } else {
            self.weather
        }
    }

    /// From now on no call fails.
    pub(crate) fn calm_down(&self) {
        self.checker().members().healed();
        let mut state = self.state();
        (state.calm, state.up) = (true, true);
    }

    /// Executes a statement, and has it checked.
    ///
    /// # Errors
    /// The statement's.
    pub(crate) async fn execute<T>(
        &self,
        op: Option<&Op>,
        effect: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let result = effect.await;
        if let (Some(op), Ok(_)) = (op, &result) {
            self.executed(op);
        }
        let statements = {
            let mut state = self.state();
            state.statements += 1;
            state.statements
        };
        if statements > MOST_STATEMENTS {
            let what = format!("{MOST_STATEMENTS} statements were executed");
            self.checker().note(Err(Violation::new("liveness", what)));
        }
        self.watch();
        result
    }

    /// Has a statement checked that was executed.
    pub(crate) fn executed(&self, op: &Op) {
        self.checker().executed(op, &self.store, self.now());
        self.watch();
    }

    /// The time by its clock, in microseconds.
    pub(crate) fn now(&self) -> i64 {
        self.clock.now().as_micros()
    }

    /// Ends the world if something was violated.
    pub(crate) fn watch(&self) {
        if let Some(panic) = panics().into_iter().next() {
            self.checker().note(Err(Violation::new("panic", format!("a task of the engine panicked: {panic}"))));
        }
        if self.checker().violation().is_some() {
            self.violated.notify_one();
        }
    }

    /// The number of statements so far.
    #[must_use]
    pub(crate) fn statements(&self) -> u64 {
        self.state().statements
    }

    /// Holds a transaction open.
    pub(crate) fn hold(&self, transaction: MemoryTransaction) -> Arc<Held> {
        let held = Arc::new(Mutex::new(Some(transaction)));
        let mut state = self.state();
        state.open.retain(|open| open.strong_count() > 0);
        state.open.push(Arc::downgrade(&held));
        held
    }

    /// Keeps a transaction that was prepared.
    pub(crate) fn prepare(&self, prepared: Prepared) {
        self.state().prepared.push(prepared);
    }

    /// Takes a prepared transaction, to end it.
    pub(crate) fn take_prepared(&self) -> Option<Prepared> {
        self.state().prepared.pop()
    }

    /// The first `seq` of each prepared transaction.
    #[must_use]
    pub(crate) fn prepared(&self) -> Vec<i64> {
        self.state().prepared.iter().map(|prepared| prepared.first).collect()
    }

    /// Breaks all connections, and rolls back what they had open.
    fn disconnect(&self) {
        let open = {
            let mut state = self.state();
            state.connections += 1;
            let prepared: Vec<*const Held> =
                state.prepared.iter().map(|prepared| Arc::as_ptr(&prepared.held)).collect();
            let open = std::mem::take(&mut state.open);
            open.into_iter().filter(|open| !prepared.contains(&open.as_ptr())).collect::<Vec<_>>()
        };
        for held in open.iter().filter_map(Weak::upgrade) {
            drop(held.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        self.checker().members().trouble_all();
    }

    /// Goes away, with all connections.
    pub(crate) fn crash(&self) {
        self.story.tell("database", format_args!("goes away; all connections break"));
        self.state().up = false;
        self.disconnect();
    }

    /// Comes back.
    pub(crate) fn come_back(&self) {
        self.story.tell("database", format_args!("comes back"));
        self.state().up = true;
    }

    /// Comes back as it was then: with another server, or one that was restored.
    pub(crate) fn go_back(&self, to: &Snapshot, another: bool) {
        self.disconnect();
        self.state().prepared.clear();
        self.store.inspect().restore(to);
        if another {
            self.state().server += 1;
        }
        let what = if another { "fails over to a replica that lags" } else { "is restored from a backup" };
        self.story.tell("database", format_args!("{what}: it has {} rows", self.checker().ledger().lines().len()));
        self.checker().went_back(&self.store, another);
        self.checker().paused_again(self.store.inspect().pauses());
    }

    /// Has its clock jump by so many milliseconds.
    pub(crate) fn jump(&self, millis: i64) {
        self.story.tell("database", format_args!("clock jumps by {millis} ms"));
        self.clock.jump(millis * 1000);
        self.checker().members().trouble_all();
    }
}
