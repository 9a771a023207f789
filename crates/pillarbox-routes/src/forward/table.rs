use std::sync::Arc;

use pillarbox_core::handle::Delivery;

use crate::route::{Built, RouteRuntime, Unrouted};

/// The routes, until they are [replaced](super::Forwarder::replace). A call has the same ones from beginning to end.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) runtimes: Vec<Arc<RouteRuntime>>,
    pub(super) unrouted: Unrouted,
    /// One more each time they are replaced.
    pub(super) generation: u64,
}

impl Table {
    pub(super) fn new(built: Built, generation: u64) -> Self {
        let Built { runtimes, unrouted } = built;
        Self { runtimes, unrouted, generation }
    }

    pub(super) fn runtime(&self, event: &Delivery) -> Option<(usize, &RouteRuntime)> {
        let mut runtimes = self.runtimes.iter().map(|runtime| &**runtime).enumerate();
        runtimes.find(|(_, runtime)| runtime.selector.takes(event))
    }

    /// True if all events of a type take this route, so that they can be left in the table while it is paused.
    pub(super) fn is_alone_with(&self, index: usize, event_type: &str) -> bool {
        let mut taking =
            self.runtimes.iter().enumerate().filter(|(_, runtime)| runtime.selector.takes_type(event_type));
        taking.next().is_some_and(|(first, runtime)| first == index && runtime.selector.asks_for_the_type_alone())
    }
}
