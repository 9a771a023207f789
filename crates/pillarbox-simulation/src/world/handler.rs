use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pillarbox_core::handle::{
    BatchHandler, BoxFuture, Delivery, Failure, Fallback, Handler, HandlerError, HandlerTransaction, Outcome,
};
use tokio::time::sleep;

use super::World;
use super::transaction::{Simulated, SimulatedTransaction};
use crate::check::{Ending, Violation, event_number, handler_number};
use crate::engine::Process;

/// The handlers of one process.
#[derive(Debug, Clone)]
pub(crate) struct Hands {
    pub(super) world: Arc<World>,
    pub(super) node: usize,
    pub(super) process: Process,
    pub(super) limit: Option<Limit>,
}

/// The number of calls of a limited handler that run in a process, and the most that may.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(super) running: Arc<AtomicUsize>,
    pub(super) most: usize,
}

/// A call under way. If it is dropped before it is told how the call ended, the call was dropped.
pub(super) struct UnderWay<'a> {
    hands: &'a Hands,
    pub(super) event: u32,
    handler: u8,
    number: u64,
    pub(super) ending: Ending,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(limit) = &self.hands.limit {
            limit.running.fetch_sub(1, Ordering::Relaxed);
        }
        let database = &self.hands.world.database;
        database.checker().end_call(self.event, self.handler, self.number, self.ending);
        let who = self.hands.process.name();
        database
            .story
            .tell(who, format_args!("call {} of e{}/{}: {:?}", self.number, self.event, self.handler, self.ending));
    }
}

impl Hands {
    pub(super) fn begin(&self, delivery: &Delivery) -> UnderWay<'_> {
        let database = &self.world.database;
        let number = database.checker().begin_call(delivery, database.now());
        let (event, handler) = (event_number(delivery.id().as_str()), handler_number(delivery.handler_id()));
        database.story.tell(
            self.process.name(),
            format_args!(
                "call {number} of e{event}/{handler} (seq {}) by {}, attempt {}, {}",
                delivery.seq(),
                delivery.node(),
                delivery.attempt(),
                delivery.path().name(),
            ),
        );
        self.check_limit();
        self.world.check_memory(self.node);
        database.watch();
        UnderWay { hands: self, event, handler, number, ending: Ending::Dropped }
    }

    /// Counts a call, and checks that it is one that the limit of its handler allows.
    fn check_limit(&self) {
        let Some(Limit { running, most }) = &self.limit else { return };
        let calls = running.fetch_add(1, Ordering::Relaxed) + 1;
        if calls > *most {
            let what = format!("{calls} calls run in {}, {most} may", self.process.name());
            self.world.database.checker().note(Err(Violation::new("limit", what)));
        }
    }

    /// Takes some time, or for ever.
    pub(super) async fn take_time(&self, delivery: &Delivery) {
        let (world, chance) = (&self.world, &self.world.chance);
        let ways = world.plan.handlers;
        if chance.permille(ways.takes) {
            sleep(chance.millis(1, ways.time)).await;
        }
        if world.is_healed() {
            return;
        }
        if chance.permille(ways.stalls) {
            let stall = sleep(chance.millis(100, 4000));
            if chance.one_in(2) {
                tokio::select! {
                    () = stall => {}
                    () = delivery.stop_requested() => {}
                }
            } else {
                stall.await;
            }
        }
        if chance.permille(ways.hangs) {
            std::future::pending::<()>().await;
        }
        if chance.permille(ways.kills) {
            world.database.story.tell(self.process.name(), format_args!("dies in a handler"));
            world.kill(self.node);
            std::future::pending::<()>().await;
        }
    }

    /// Decides how a call ends.
    fn end(&self, under_way: &mut UnderWay<'_>) -> Result<Outcome, HandlerError> {
        let (chance, ways) = (&self.world.chance, self.world.plan.handlers);
        let calm = self.world.is_healed();
        let (ending, answer) = if !calm && chance.permille(ways.fails) {
            let error = if chance.one_in(4) {
                HandlerError::retry_after(chance.millis(0, 800), "it fails, and says when to try again")
            } else {
                HandlerError::retryable("it fails")
            };
            (Ending::Failed, Err(error))
        } else if !calm && chance.permille(ways.defers) {
            let delay = chance.millis(0, 800);
            match chance.below(3) {
                0 => (Ending::Deferred, Ok(Outcome::Defer(delay))),
                1 => (Ending::Deferred, Err(HandlerError::deferred(delay, "not now"))),
                _ => (Ending::Deferred, Err(HandlerError::deferred_on_this_node(delay, "not here"))),
            }
        } else if !calm && chance.permille(ways.hopeless) {
            (Ending::Hopeless, Err(HandlerError::unrecoverable("it will never do")))
        } else {
            (Ending::Done, Ok(Outcome::Done))
        };
        under_way.ending = ending;
        answer
    }

    #[expect(clippy::panic, reason = "handlers of users panic")]
    fn panics(&self, under_way: &mut UnderWay<'_>) {
        if !self.world.is_healed() && self.world.chance.permille(self.world.plan.handlers.panics) {
            under_way.ending = Ending::Failed;
            panic!("a handler of the simulation panics");
        }
    }
}

impl Handler for Hands {
    fn handle(&self, delivery: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        Box::pin(async move {
            let mut under_way = self.begin(&delivery);
            self.take_time(&delivery).await;
            self.panics(&mut under_way);
            self.end(&mut under_way)
        })
    }
}

impl BatchHandler for Hands {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Outcome, HandlerError>>> {
        Box::pin(async move {
            let mut under_way: Vec<_> = deliveries.iter().map(|delivery| self.begin(delivery)).collect();
            if let Some(delivery) = deliveries.first() {
                self.take_time(delivery).await;
            }
            under_way.iter_mut().map(|under_way| self.end(under_way)).collect()
        })
    }
}

impl Hands {
    /// A handler that writes an event in the transaction in which its own becomes DONE.
    pub(super) fn booking(
        self,
    ) -> impl Fn(Delivery, Booking) -> BoxFuture<'static, Result<Outcome, HandlerError>> + Send + Sync + 'static {
        move |delivery, tx| {
            let hands = self.clone();
            Box::pin(async move { hands.book(delivery, tx).await })
        }
    }

    async fn book(&self, delivery: Delivery, mut tx: Booking) -> Result<Outcome, HandlerError> {
        let mut under_way = self.begin(&delivery);
        let is_early = self.world.chance.one_in(2);
        if is_early {
            self.write_effect(&under_way, &mut tx).await?;
        }
        self.take_time(&delivery).await;
        self.panics(&mut under_way);
        let answer = self.end(&mut under_way);
        if !is_early {
            let ending = std::mem::replace(&mut under_way.ending, Ending::Dropped);
            self.write_effect(&under_way, &mut tx).await?;
            under_way.ending = ending;
        }
        if under_way.ending == Ending::Done {
            // Whether it has ended well, the commit will say.
            under_way.ending = Ending::Failed;
        }
        answer
    }

    /// Writes an event that says that this one was handled; through the outbox, if it is known already.
    async fn write_effect(&self, under_way: &UnderWay<'_>, tx: &mut Booking) -> Result<(), HandlerError> {
        let Some(envelope) = self.world.effect((under_way.event, under_way.handler)) else { return Ok(()) };
        let host = self.world.hosts.get(self.node);
        let written = match host.and_then(super::node::Host::outbox) {
            Some(outbox) => outbox.write(tx, envelope).await.map(drop),
            None => pillarbox_core::write::insert(&self.world.database.store, tx, vec![envelope]).await.map(drop),
        };
        written.map_err(HandlerError::retryable)
    }
}

/// The transaction of a handler.
type Booking = HandlerTransaction<SimulatedTransaction, Simulated>;

impl Fallback for Hands {
    fn recover(&self, delivery: Delivery, _failure: Failure) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        Box::pin(async move {
            let chance = &self.world.chance;
            sleep(chance.millis(0, 20)).await;
            if chance.one_in(3) {
                return Err(HandlerError::unrecoverable("the fallback fails too"));
            }
            let (event, handler) = (event_number(delivery.id().as_str()), handler_number(delivery.handler_id()));
            self.world.database.story.tell(self.process.name(), format_args!("the fallback takes e{event}/{handler}"));
            self.world.database.checker().rescued(event, handler);
            Ok(Outcome::Done)
        })
    }
}
