use std::fmt;
use std::sync::Arc;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::EventKind;
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::row::NewRow;

use crate::handlers::DuplicateHandler;

/// Decides, before an event is written, whether a handler gets a row of it.
pub(crate) type Accepts = Arc<dyn Fn(&Envelope) -> bool + Send + Sync>;

/// A handler that gets rows: of its own if it has a name, else the only one of an event.
#[derive(Clone)]
pub(crate) struct Recipient {
    pub(crate) id: Option<Arc<str>>,
    /// `None`: it gets a row of every event of its kind.
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

/// The handlers that get a row of an event, by aggregate type and event type. An event of any other type is one row, if the handler of all
/// others accepts it.
#[derive(Default)]
pub(crate) struct FanOut {
    // As in the router, a look-up allocates nothing.
    event_kinds: HashMap<Box<str>, ByEventType>,
    pub(crate) others: Option<Accepts>,
}

impl fmt::Debug for FanOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FanOut")
            .field("event_kinds", &self.event_kinds)
            .field("others", &self.others.is_some())
            .finish()
    }
}

impl FanOut {
    /// Adds a handler of a kind.
    pub(crate) fn add(&mut self, event_kind: &EventKind, recipient: Recipient) -> Result<(), DuplicateHandler> {
        let events = self.event_kinds.entry(event_kind.aggregate_type().into()).or_default();
        let recipients = events.entry(event_kind.event_type().into()).or_default();
        if let Some(id) = &recipient.id
            && recipients.iter().any(|other| other.id.as_ref() == Some(id))
        {
            return Err(DuplicateHandler::same_name(event_kind, id));
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
                [] if self.others.as_ref().is_none_or(|accepts| accepts(row.envelope())) => rows.push(row),
                recipients => {
                    let taking = recipients.iter().filter(|recipient| recipient.gets(row.envelope()));
                    rows.extend(taking.map(|recipient| match &recipient.id {
                        Some(id) => row.clone().for_handler(id),
                        None => row.clone(),
                    }));
                }
            }
        }
        rows
    }

    fn recipients(&self, event: &Envelope) -> &[Recipient] {
        let events = self.event_kinds.get(event.aggregate_type());
        events.and_then(|events| events.get(event.event_type())).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipient(id: &str, accepts: Option<Accepts>) -> Recipient {
        Recipient { id: Some(Arc::from(id)), accepts }
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
            fan_out.add(&EventKind::from(("order", "placed")), recipient(id, None)).expect("two names");
        }
        let rows = fan_out.rows(vec![event("order", "sent"), event("order", "placed"), event("cart", "placed")]);
        assert_eq!(handlers(&rows), [None, Some("mailer"), Some("ledger"), None]);
        assert!(Arc::ptr_eq(rows[1].event(), rows[2].event()), "the rows of an event share it");
    }

    #[test]
    fn a_handler_gets_no_row_of_an_event_that_it_does_not_accept() {
        let tenant_a: Accepts = Arc::new(|event: &Envelope| event.tenant_id() == Some("a"));
        let mut fan_out = FanOut::default();
        let event_kind = EventKind::from("placed");
        for recipient in [recipient("ledger", None), recipient("mailer", Some(tenant_a.clone()))] {
            fan_out.add(&event_kind, recipient).expect("two names");
        }
        fan_out.add(&EventKind::from("paid"), recipient("mailer", Some(tenant_a))).expect("another kind");
        let of = |name: &str, tenant: &str| {
            Envelope::builder(name).tenant_id(tenant).payload_json("{}").build().expect("valid")
        };
        let events = vec![of("placed", "a"), of("placed", "b"), of("paid", "b"), of("paid", "a")];
        let rows = fan_out.rows(events);
        assert_eq!(handlers(&rows), [Some("ledger"), Some("mailer"), Some("ledger"), Some("mailer")]);
        assert_eq!(rows[3].envelope().tenant_id(), Some("a"), "nobody accepts the other event of that type");
    }

    #[test]
    fn a_handler_without_a_name_gets_the_only_row_or_none() {
        let tenant_a = || -> Accepts { Arc::new(|event: &Envelope| event.tenant_id() == Some("a")) };
        let mut fan_out = FanOut { others: Some(tenant_a()), ..FanOut::default() };
        fan_out
            .add(&EventKind::from("placed"), Recipient { id: None, accepts: Some(tenant_a()) })
            .expect("one handler");
        fan_out.add(&EventKind::from("paid"), Recipient { id: None, accepts: None }).expect("one handler");
        let of = |name: &str, tenant: &str| {
            Envelope::builder(name).tenant_id(tenant).payload_json("{}").build().expect("valid")
        };
        let events = ["placed", "paid", "sent"].into_iter().flat_map(|name| [of(name, "a"), of(name, "b")]).collect();
        let rows = fan_out.rows(events);
        let written: Vec<_> =
            rows.iter().map(|row| (row.envelope().event_type(), row.envelope().tenant_id())).collect();
        assert_eq!(written, [("placed", Some("a")), ("paid", Some("a")), ("paid", Some("b")), ("sent", Some("a"))]);
        assert_eq!(handlers(&rows), [None; 4]);
    }
}
