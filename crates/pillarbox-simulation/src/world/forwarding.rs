use std::sync::Arc;

use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery, HandlerError, Outcome};
use pillarbox_core::publisher::Publisher;
use pillarbox_routes::{Breaker, Forwarder, Route, RouteError, Routes};

use super::World;
use super::broker::Sender;
use super::handler::Hands;
use crate::check::Ending;
use crate::engine::ending;
use crate::plan::Routing;

/// The handler of a process that passes events on to brokers, watched from outside.
#[derive(Debug)]
pub(crate) struct Passing {
    pub(super) hands: Hands,
    pub(super) forwarder: Forwarder,
}

impl World {
    /// The routes of this world.
    pub(super) fn routes(&self, routing: &Routing, process: &str) -> Routes {
        let (pause, max_pause) = routing.pause;
        let breaker = Breaker { failures: routing.failures, pause, max_pause };
        let target = if routing.by_type { "events.{event_type}" } else { "events" };
        let to = |place: usize| {
            let broker =
                self.brokers.get(place).map(|broker| Arc::new(Sender::new(broker, process)) as Arc<dyn Publisher>);
            let mut route = broker.map_or_else(Route::drop, |broker| Route::to(broker, target)).breaker(breaker);
            if let Some(rate) = routing.rate {
                route = route.rate(rate);
            }
            match routing.concurrency {
                Some(calls) => route.concurrency(calls),
                None => route,
            }
        };
        let mut routes = Routes::new().random(self.chance.clone()).route(to(0).named("first").types(["split"]));
        if routing.lane > 0 {
            routes = routes.route(to(1).named("second").types(["plain"]).header("lane", "x"));
        }
        routes.otherwise(to(2).named("third"))
    }

    /// Replaces the routes of a node by the same ones, which all begin anew, or some of them.
    pub(super) fn replace_routes(&self, node: usize) -> Result<(), RouteError> {
        let (Some(host), Some(routing)) = (self.hosts.get(node), &self.plan.routing) else { return Ok(()) };
        let Some(forwarder) = host.forwarder() else { return Ok(()) };
        self.database.story.tell("operator", format_args!("replaces the routes of {}", host.name));
        forwarder.replace(self.routes(routing, &host.name), |_| self.chance.one_in(2))
    }
}

impl BatchHandler for Passing {
    fn handle(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Outcome, HandlerError>>> {
        Box::pin(async move {
            let mut under_way: Vec<_> = deliveries.iter().map(|delivery| self.hands.begin(delivery)).collect();
            let first = deliveries.first().cloned();
            let answers = self.forwarder.handle(deliveries).await;
            // What is sent is sent, whatever becomes of the process before it says so.
            if let Some(delivery) = &first {
                self.hands.take_time(delivery).await;
            }
            for (under_way, answer) in under_way.iter_mut().zip(&answers) {
                under_way.ending = ending(answer);
                if under_way.ending == Ending::Done {
                    self.hands.world.database.checker().check_confirmed(under_way.event);
                }
            }
            self.hands.world.database.watch();
            answers
        })
    }

    fn lane(&self, delivery: &Delivery) -> u64 {
        self.forwarder.lane(delivery)
    }

    fn lanes(&self) -> usize {
        self.forwarder.lanes()
    }

    fn has_type_alone(&self, delivery: &Delivery) -> bool {
        self.forwarder.has_type_alone(delivery)
    }
}
