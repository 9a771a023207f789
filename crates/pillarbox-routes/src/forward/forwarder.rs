use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::join_all;
use metrics::Counter;
use pillarbox_core::clock::Random;
use pillarbox_core::handle::{BatchHandler, BoxFuture, Delivery};
use pillarbox_core::lock::Mutex;
use pillarbox_engine::run::TypePause;
use tokio::time::Instant;

use super::RouteStatus;
use super::answer::Answer;
use super::table::Table;
use crate::route::{Built, RouteRuntime};

/// Passes the events of an outbox on, by [`Routes`](crate::Routes): what to give
/// [`on_batch`](pillarbox_engine::handlers::on_batch). Cheap to clone.
///
/// A batch holds events of one route only. It is answered when the destination has confirmed, or declined, each of them. While
/// a route is paused its events are deferred, without an attempt being counted, and types of which all events take that route are
/// not even read from the table: see [`type_pause`](Self::type_pause).
#[derive(Debug, Clone)]
pub struct Forwarder(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) table: RwLock<Arc<Table>>,
    /// The number of events that no route took.
    pub(super) unrouted_events: Counter,
    pub(super) random: Arc<dyn Random>,
    pub(super) type_pause: TypePause,
    /// Event types without a route that the log has named.
    pub(super) logged_types: Mutex<BTreeSet<Box<str>>>,
}

impl Forwarder {
    pub(crate) fn new(built: Built, unrouted_events: Counter, random: Arc<dyn Random>, type_pause: TypePause) -> Self {
        let table = RwLock::new(Arc::new(Table::new(built, 0)));
        Self(Arc::new(Inner { table, unrouted_events, random, type_pause, logged_types: Mutex::default() }))
    }

    /// The pause of types to give the outbox beside this, so that it leaves the events of a paused route in the table.
    #[must_use]
    pub fn type_pause(&self) -> TypePause {
        self.0.type_pause.clone()
    }

    /// The status of each route, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<RouteStatus> {
        let now = Instant::now();
        self.0.table().runtimes.iter().map(|runtime| RouteStatus::of(runtime, now)).collect()
    }

    /// Closes every connection. What is handed over after that is deferred.
    pub async fn close(&self) {
        let table = self.0.table();
        join_all(
            table.runtimes.iter().filter_map(|runtime| runtime.output.as_ref()).map(|output| output.publisher.close()),
        )
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
}
