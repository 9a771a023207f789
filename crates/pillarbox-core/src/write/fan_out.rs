use std::collections::HashMap;
use std::sync::Arc;

use super::NewRow;
use crate::event::Envelope;
use crate::handle::{DuplicateHandler, Route};

type IdsByEventType = HashMap<Box<str>, Vec<Arc<str>>>;

/// Who gets a row of an event: the handlers with names, by aggregate type and event type. An event of any other type is one
/// row.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    // As in the router, a look-up allocates nothing.
    routes: HashMap<Box<str>, IdsByEventType>,
}

impl FanOut {
    pub(crate) fn new(named: impl IntoIterator<Item = (Route, Vec<Arc<str>>)>) -> Self {
        let mut fan_out = Self::default();
        for (route, ids) in named {
            fan_out.routes.entry(route.aggregate_type).or_default().insert(route.event_type, ids);
        }
        fan_out
    }

    /// Adds a handler of a route.
    pub(crate) fn add(&mut self, route: &Route, id: Arc<str>) -> Result<(), DuplicateHandler> {
        let Route { aggregate_type, event_type } = route;
        let ids = self.routes.entry(aggregate_type.clone()).or_default().entry(event_type.clone()).or_default();
        if ids.contains(&id) {
            return Err(DuplicateHandler::same_name(route, &id));
        }
        ids.push(id);
        Ok(())
    }

    /// The rows of events, in their order; those of one event lie together.
    pub(crate) fn rows(&self, events: Vec<Envelope>) -> Vec<NewRow> {
        if self.routes.is_empty() {
            return events.into_iter().map(NewRow::new).collect();
        }
        let mut rows = Vec::with_capacity(events.len());
        for event in events {
            let row = NewRow::new(event);
            match self.handlers(row.envelope()) {
                [] => rows.push(row),
                ids => rows.extend(ids.iter().map(|id| row.clone().for_handler(id))),
            }
        }
        rows
    }

    fn handlers(&self, event: &Envelope) -> &[Arc<str>] {
        let events = self.routes.get(event.aggregate_type());
        events.and_then(|events| events.get(event.event_type())).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_row_for_each_handler_with_a_name() {
        let ids = |ids: &[&str]| ids.iter().map(|id| Arc::from(*id)).collect::<Vec<Arc<str>>>();
        let fan_out = FanOut::new([(Route::from(("order", "placed")), ids(&["mailer", "ledger"]))]);
        let event = |aggregate: &str, name: &str| {
            Envelope::builder(name).aggregate(aggregate, "1").payload_json("{}").build().expect("valid")
        };
        let rows = fan_out.rows(vec![event("order", "sent"), event("order", "placed"), event("cart", "placed")]);
        let handlers: Vec<Option<&str>> = rows.iter().map(NewRow::handler).collect();
        assert_eq!(handlers, [None, Some("mailer"), Some("ledger"), None]);
        assert!(Arc::ptr_eq(rows[1].event(), rows[2].event()), "the rows of an event share it");
    }
}
