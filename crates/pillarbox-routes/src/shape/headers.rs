use std::borrow::Cow;

use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::header;

use super::Template;
use crate::select::Pattern;

/// The value of the event's header of this name: of the very name, else of the first that differs in case alone.
pub(crate) fn header_of<'a>(event: &'a Delivery, name: &str) -> Option<&'a str> {
    let headers = event.headers();
    let alike = || headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    headers.get(name).or_else(alike)
}

/// The rules for the headers of a message: those of every message, the event's own, and those that the route adds and takes away.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeaderRules {
    /// Names of the event's own headers that do not travel, in small letters. None is that of a header which the format gives.
    pub(crate) without: Vec<Pattern>,
    /// The headers that the route adds, in place of the event's own of the same name.
    pub(crate) with: Vec<(Box<str>, Template)>,
}

pub(crate) type Named = Vec<(Cow<'static, str>, String)>;

impl HeaderRules {
    /// The headers that identify the event, and all others that travel with it.
    pub(crate) fn raw(&self, event: &Delivery, key: Option<&str>) -> Result<Named, String> {
        let mut headers = Vec::with_capacity(7 + event.headers().len() + self.with.len());
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
        self.add_others(&mut headers, event, |_| false)?;
        Ok(headers)
    }

    /// Adds the route's headers and the event's own, but for those of the event that have a name of the outbox, a name that the
    /// message has already, or one that is `reserved`. Names are compared without case.
    pub(crate) fn add_others(
        &self,
        headers: &mut Named,
        event: &Delivery,
        reserved: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        for (name, template) in &self.with {
            headers.push((Cow::Owned(name.to_string()), template.fill(event)?.to_string()));
        }
        // Two of the event's own may differ in case alone, where the broker tells them apart.
        let given = headers.len();
        for (name, value) in event.headers().iter() {
            let is_there = headers.iter().take(given).any(|(other, _)| other.eq_ignore_ascii_case(name));
            if !is_there && !header::is_of_the_outbox(name) && !reserved(name) && !self.leaves_out(name) {
                headers.push((Cow::Owned(name.to_owned()), value.to_owned()));
            }
        }
        Ok(())
    }

    fn leaves_out(&self, name: &str) -> bool {
        if self.without.is_empty() {
            return false;
        }
        let name = name.to_ascii_lowercase();
        self.without.iter().any(|pattern| pattern.matches(&name))
    }
}
