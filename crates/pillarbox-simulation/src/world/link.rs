use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{HistoryKeeper, Listener, WakeUps, operation};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::answers::Brief;
use super::database::Database;
use crate::check::Op;

/// The time that a driver waits for an answer.
const TIME_LIMIT: Duration = Duration::from_secs(4);
/// Beyond, ways may cost a node its lease.
const LONG: Duration = Duration::from_millis(60);

/// The connections of one node to the database: calls take time, fail before or after their effect, and arrive late.
#[derive(Debug)]
pub(crate) struct Link {
    /// The database.
    pub(super) database: Arc<Database>,
    /// The node's name.
    name: String,
    wire: Arc<Wire>,
    /// The history that the connections have seen.
    pub(super) keeper: HistoryKeeper,
    /// The generation of connections that was used last.
    connected: AtomicU64,
    pub(super) info: pillarbox_core::store::StoreInfo,
    /// Requests on their way, which outlive their senders.
    requests: TaskTracker,
}

/// The way from a host to the database.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    cut: AtomicBool,
}

impl Wire {
    /// Cuts it, or mends it.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Relaxed);
    }

    /// True if nothing passes.
    #[must_use]
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }
}

impl Link {
    /// New connections of the node of this name.
    #[must_use]
    pub(crate) fn new(database: Arc<Database>, name: String, wire: Arc<Wire>, requests: TaskTracker) -> Self {
        use pillarbox_core::store::Store as _;
        let (connected, info) = (AtomicU64::new(database.connections()), database.store.info().clone());
        Self { database, name, wire, keeper: HistoryKeeper::default(), connected, info, requests }
    }

    fn is_reachable(&self) -> bool {
        self.database.is_up() && !self.wire.is_cut()
    }

    /// Notes that a call has failed: what the node does from now on may be its consequence.
    fn trouble(&self, name: &str, what: &str) {
        self.database.checker().members().trouble(&self.name);
        self.database.story.tell(&self.name, format_args!("{name}: {what}"));
    }

    fn unavailable(&self, name: &'static str, what: &'static str) -> StoreError {
        self.trouble(name, what);
        StoreError::new(StoreErrorKind::Unavailable, name, what)
    }

    /// True if a connection of this generation still carries anything.
    pub(super) fn carries(&self, connections: u64) -> bool {
        self.is_reachable() && self.database.connections() == connections
    }

    /// True if the request that is sent now does not arrive.
    pub(super) fn loses_request(&self) -> bool {
        self.database.chance.permille(self.database.weather().fails)
    }

    /// True if the answer that is sent now does not arrive.
    pub(super) fn loses_answer(&self) -> bool {
        self.database.chance.permille(self.database.weather().loses)
    }

    /// Tells what its node does.
    pub(super) fn tell_story(&self, what: std::fmt::Arguments<'_>) {
        self.database.story.tell(&self.name, what);
    }

    /// Waits for as long as a way takes now.
    pub(super) async fn travel(&self) {
        let (chance, weather) = (&self.database.chance, self.database.weather());
        if chance.permille(weather.stalls) {
            self.database.checker().members().trouble(&self.name);
            sleep(chance.millis(200, 3000)).await;
        } else if chance.permille(weather.delays) {
            let takes = chance.millis(1, weather.delay);
            if takes > LONG {
                self.database.checker().members().trouble(&self.name);
            }
            sleep(takes).await;
        } else if chance.one_in(8) {
            // Timers are no finer, and who asks again and again must see time pass.
            sleep(Duration::from_millis(1)).await;
        } else {
            // No answer is there at once.
            tokio::task::yield_now().await;
        }
    }

    /// Uses a connection, which may be the first to another server.
    fn connect(&self) -> u64 {
        let connections = self.database.connections();
        if self.connected.swap(connections, Relaxed) != connections {
            self.keeper.lost();
        }
        self.keeper.reached(&format!("server-{}", self.database.server()));
        connections
    }

    /// Calls the database.
    pub(super) async fn call<T: Brief + Send + 'static>(
        &self,
        name: &'static str,
        op: Option<Op>,
        effect: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (chance, weather) = (&self.database.chance, self.database.weather());
        if !self.is_reachable() {
            self.database.checker().members().trouble(&self.name);
            match chance.below(4) {
                0 => {}
                1 => sleep(TIME_LIMIT).await,
                _ => sleep(chance.millis(1, 60)).await,
            }
            return Err(self.unavailable(name, "the database cannot be reached"));
        }
        if matches!(op, Some(Op::Join(_) | Op::Acquire(_) | Op::Rebalance(..))) && chance.permille(weather.contends) {
            sleep(chance.millis(1, 100)).await;
            self.trouble(name, "the lock is taken");
            return Err(StoreError::new(StoreErrorKind::Contention, name, "the lock is taken"));
        }
        let connections = self.connect();
        // What gives a row back and arrives late frees one that its node has claimed anew: nothing in the row tells the two claims apart.
        let frees = name == operation::RELEASE || op.as_ref().is_some_and(Op::puts_off_claimed_rows);
        let gives = matches!(&op, Some(Op::Rebalance(_, give)) if !give.is_empty());
        if !frees && chance.permille(weather.detaches * if gives { 10 } else { 1 }) {
            return self.send_off(name, op, effect, connections).await;
        }
        self.travel().await;
        if !self.carries(connections) {
            self.keeper.lost();
            return Err(self.unavailable(name, "the connection broke before the request arrived"));
        }
        if chance.permille(weather.fails) {
            self.keeper.lost();
            return Err(self.unavailable(name, "the request was lost"));
        }
        let answer = self.database.execute(op.as_ref(), effect).await;
        self.tell(name, &answer);
        self.travel().await;
        if !self.carries(connections) {
            self.keeper.lost();
            return Err(self.unavailable(name, "the connection broke before the answer arrived"));
        }
        if chance.permille(weather.loses) {
            self.keeper.lost();
            return Err(self.unavailable(name, "the answer was lost"));
        }
        answer
    }

    fn tell<T: Brief>(&self, name: &str, answer: &Result<T, StoreError>) {
        match answer {
            Ok(answer) => self.database.story.tell(&self.name, format_args!("{name}: {}", answer.brief())),
            Err(error) => self.database.story.tell(&self.name, format_args!("{name}: {error}")),
        }
    }

    /// Sends a request that arrives whatever becomes of the node, and waits for its answer for a while.
    async fn send_off<T: Brief + Send + 'static>(
        &self,
        name: &'static str,
        op: Option<Op>,
        effect: impl Future<Output = Result<T, StoreError>> + Send + 'static,
        connections: u64,
    ) -> Result<T, StoreError> {
        let (database, who) = (Arc::clone(&self.database), self.name.clone());
        let chance = &self.database.chance;
        let late = self.database.weather().late;
        let (takes, waits) = (chance.millis(1, late), chance.millis(1, 400));
        let (send, receive) = oneshot::channel();
        self.database.checker().members().trouble(&self.name);
        self.requests.spawn(async move {
            sleep(takes).await;
            if !database.is_up() || database.connections() != connections {
                return;
            }
            let answer = database.execute(op.as_ref(), effect).await;
            database.story.tell(&who, format_args!("{name} arrives late"));
            drop(send.send(answer));
        });
        match timeout(waits, receive).await {
            Ok(Ok(answer)) if self.is_reachable() => {
                self.tell(name, &answer);
                answer
            }
            _ => {
                self.keeper.lost();
                Err(self.unavailable(name, "there was no answer in time"))
            }
        }
    }
}

#[async_trait]
impl WakeUps for Link {
    async fn notify(&self) -> Result<(), StoreError> {
        let store = self.database.store.clone();
        self.call(operation::WAKE, None, async move { WakeUps::notify(&store).await }).await
    }

    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError> {
        if !self.is_reachable() {
            sleep(Duration::from_millis(20)).await;
            return Err(self.unavailable(operation::LISTEN, "the database cannot be reached"));
        }
        let connections = self.connect();
        let listener = WakeUps::listen(&self.database.store).await?;
        Ok(Box::new(Ear { listener, database: Arc::clone(&self.database), wire: Arc::clone(&self.wire), connections }))
    }
}

/// Hears the notifications that reach it.
#[derive(Debug)]
struct Ear {
    listener: Box<dyn Listener>,
    database: Arc<Database>,
    wire: Arc<Wire>,
    connections: u64,
}

#[async_trait]
impl Listener for Ear {
    async fn notified(&mut self) -> Result<(), StoreError> {
        self.listener.notified().await?;
        if self.wire.is_cut() || !self.database.is_up() || self.database.connections() != self.connections {
            return Err(StoreError::new(StoreErrorKind::Unavailable, operation::LISTEN, "the connection is gone"));
        }
        Ok(())
    }
}
