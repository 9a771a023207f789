use pillarbox_core::handle::Delivery;

use super::Forwarder;

/// The destination of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// To a broker.
    Sent {
        /// The route.
        route: String,
        /// The broker's kind and address.
        broker: String,
        /// The target there, as it may be shown.
        target: String,
        /// The key of the message.
        key: Option<String>,
    },
    /// Nowhere: the route drops it.
    Dropped {
        /// The route.
        route: String,
    },
    /// Its route cannot make a message of it.
    Unsendable {
        /// The route.
        route: String,
        /// The problem.
        problem: String,
    },
    /// No route takes it.
    Unrouted,
}

impl Forwarder {
    /// The destination that an event would have now, if every broker were well.
    #[must_use]
    pub fn destination(&self, event: &Delivery) -> Destination {
        let table = self.0.table();
        let Some((_, runtime)) = table.runtime(event) else { return Destination::Unrouted };
        let route = runtime.name.to_string();
        let Some(output) = &runtime.output else { return Destination::Dropped { route } };
        match output.message(event) {
            Ok(None) => Destination::Dropped { route },
            Err(problem) => Destination::Unsendable { route, problem },
            Ok(Some(message)) => Destination::Sent {
                route,
                broker: format!("{} at {}", output.publisher.info().kind, output.publisher.info().address),
                target: output.publisher.shown(&message.target).into_owned(),
                key: message.key.map(String::from),
            },
        }
    }
}
