use std::fmt;
use std::sync::Arc;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Route;
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::row::NewRow;

use crate::handlers::DuplicateHandler;

/// Decides, before an event is written, whether a named handler gets a row of it.
pub(crate) type Accepts = Arc<dyn Fn(&Envelope) -> bool + Send + Sync>;

/// A named handler that gets rows of its own.
#[derive(Clone)]
pub(crate) struct Recipient {
    pub(crate) id: Arc<str>,
    /// `None`: it gets a row of every event of its route.
    pub(crate) accepts: Option<Accepts>,
}

impl Recipient {
    fn gets(&self, event: &Envelope) -> bool {
        self.accepts.as_ref().is_none_or(|accepts| accepts(event))
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipient").field("id", &self.id).field("accepts", &self.accepts.is_some()).finish()
    }
}

type ByEventType = HashMap<Box<str>, Vec<Recipient>>;

/// The named handlers that get a row of an event, by aggregate type and event type. An event of any other type is one row.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    // As in the router, a look-up allocates nothing.
    routes: HashMap<Box<str>, ByEventType>,
}

impl FanOut {
    /// Adds a handler of a route.
    pub(crate) fn add(&mut self, route: &Route, recipient: Recipient) -> Result<(), DuplicateHandler> {
        let events = self.routes.entry(route.aggregate_type().into()).or_default();
        let recipients = events.entry(route.event_type().into()).or_default();
        if recipients.iter().any(|other| other.id == recipient.id) {
            return Err(DuplicateHandler::same_name(route, &recipient.id));
        }
        recipients.push(recipient);
        Ok(())
    }

    /// The rows of events, in their order; those of one event lie together.
    pub(crate) fn rows(&self, events: Vec<Envelope>) -> Vec<NewRow> {
        let mut rows = Vec::with_capacity(events.len());
        for event in events {
            let row = NewRow::new(event);
            match self.recipients(row.envelope()) {
                [] => rows.push(row),
                recipients => {
                    let taking = recipients.iter().filter(|recipient| recipient.gets(row.envelope()));
                    rows.extend(taking.map(|recipient| row.clone().for_handler(&recipient.id)));
                }
            }
        }
        rows
    }

    fn recipients(&self, event: &Envelope) -> &[Recipient] {
        let events = self.routes.get(event.aggregate_type());
        events.and_then(|events| events.get(event.event_type())).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipient(id: &str, accepts: Option<Accepts>) -> Recipient {
        Recipient { id: Arc::from(id), accepts }
    }

    fn event(aggregate: &str, name: &str) -> Envelope {
        Envelope::builder(name).aggregate(aggregate, "1").payload_json("{}").build().expect("valid")
    }

    fn handlers(rows: &[NewRow]) -> Vec<Option<&str>> {
        rows.iter().map(NewRow::handler).collect()
    }

    #[test]
    fn an_event_is_a_row_for_each_handler_with_a_name() {
        let mut fan_out = FanOut::default();
        for id in ["mailer", "ledger"] {
            fan_out.add(&Route::from(("order", "placed")), recipient(id, None)).expect("two names");
        }
        let rows = fan_out.rows(vec![event("order", "sent"), event("order", "placed"), event("cart", "placed")]);
        assert_eq!(handlers(&rows), [None, Some("mailer"), Some("ledger"), None]);
        assert!(Arc::ptr_eq(rows[1].event(), rows[2].event()), "the rows of an event share it");
    }

    #[test]
    fn a_handler_gets_no_row_of_an_event_that_it_does_not_accept() {
        let tenant_a: Accepts = Arc::new(|event: &Envelope| event.tenant_id() == Some("a"));
        let mut fan_out = FanOut::default();
        let route = Route::from("placed");
        for recipient in [recipient("ledger", None), recipient("mailer", Some(tenant_a.clone()))] {
            fan_out.add(&route, recipient).expect("two names");
        }
        fan_out.add(&Route::from("paid"), recipient("mailer", Some(tenant_a))).expect("another route");
        let of = |name: &str, tenant: &str| {
            Envelope::builder(name).tenant_id(tenant).payload_json("{}").build().expect("valid")
        };
        let events = vec![of("placed", "a"), of("placed", "b"), of("paid", "b"), of("paid", "a")];
        let rows = fan_out.rows(events);
        assert_eq!(handlers(&rows), [Some("ledger"), Some("mailer"), Some("ledger"), Some("mailer")]);
        assert_eq!(rows[3].envelope().tenant_id(), Some("a"), "nobody accepts the other event of that type");
    }
}
