use std::borrow::Cow;

use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::header;

use super::Template;
use crate::select::Pattern;

/// Which headers a message has: what every one has, the event's own, and what the route adds and takes away.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeaderRules {
    /// Names of the event's own headers that do not travel.
    pub(crate) without: Vec<Pattern>,
    /// What the route adds, in place of what the event has of that name.
    pub(crate) with: Vec<(Box<str>, Template)>,
}

/// Names that are the outbox's, in alphabetical order.
const OURS: [&str; 7] = [
    header::AGGREGATE_ID,
    header::AGGREGATE_TYPE,
    header::ID,
    header::KEY,
    header::TIME,
    header::TYPE,
    header::TENANT_ID,
];

/// Whether a name is the outbox's to give.
pub(super) fn is_ours(name: &str) -> bool {
    OURS.contains(&name)
}

pub(crate) type Named = Vec<(Cow<'static, str>, String)>;

impl HeaderRules {
    /// What says which event it is, and all that travels with it.
    pub(crate) fn raw(&self, event: &Delivery, key: Option<&str>) -> Result<Named, String> {
        let mut headers = Vec::with_capacity(OURS.len() + event.headers().len() + self.with.len());
        let mut say = |name, value: Option<&str>| {
            headers.extend(value.map(|value| (Cow::Borrowed(name), value.to_owned())));
        };
        say(header::ID, Some(event.id().as_str()));
        say(header::TYPE, Some(event.event_type()));
        say(header::AGGREGATE_TYPE, Some(event.aggregate_type()));
        say(header::AGGREGATE_ID, event.aggregate_id());
        say(header::TENANT_ID, event.tenant_id());
        say(header::KEY, key);
        headers.push((Cow::Borrowed(header::TIME), event.occurred_at().to_string()));
        self.add_others(&mut headers, event)?;
        Ok(headers)
    }

    /// The event's own headers, and the route's. What is there already stays.
    pub(crate) fn add_others(&self, headers: &mut Named, event: &Delivery) -> Result<(), String> {
        for (name, template) in &self.with {
            headers.push((Cow::Owned(name.to_string()), template.fill(event)?.to_string()));
        }
        for (name, value) in event.headers().iter() {
            let is_there = headers.iter().any(|(other, _)| other == name);
            if !is_there && !is_ours(name) && !self.without.iter().any(|pattern| pattern.matches(name)) {
                headers.push((Cow::Owned(name.to_owned()), value.to_owned()));
            }
        }
        Ok(())
    }
}
