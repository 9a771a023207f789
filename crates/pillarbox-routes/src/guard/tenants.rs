use std::collections::HashSet;

/// Tenants that are remembered at most.
const MAX_TENANTS: usize = 1000;

/// The tenants of a route's events whose targets are in trouble. Where targets fail one after the other, the destination as a whole may
/// be in trouble, or one tenant has sent to many places that do not answer, and must not have the route paused for the others.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    seen: Seen,
    /// Those in trouble since a message was taken last.
    in_trouble: HashSet<Box<str>>,
}

/// The tenants of the events that have passed.
#[derive(Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    None,
    One(Option<Box<str>>),
    Several,
}

impl Tenants {
    /// An event of this tenant passes.
    pub(crate) fn see(&mut self, tenant: Option<&str>) {
        match &self.seen {
            Seen::None => self.seen = Seen::One(tenant.map(Into::into)),
            Seen::One(other) if other.as_deref() != tenant => self.seen = Seen::Several,
            Seen::One(_) | Seen::Several => {}
        }
    }

    /// Events of these tenants were not taken by their targets. True if that speaks against the destination: events without a tenant are
    /// among them, or one whose targets were not in trouble already, or all events are of one tenant.
    pub(crate) fn trouble<'a>(&mut self, tenants: impl IntoIterator<Item = Option<&'a str>>) -> bool {
        let mut is_new = false;
        for tenant in tenants {
            self.see(tenant);
            is_new |= match tenant {
                Some(tenant) if self.in_trouble.contains(tenant) => false,
                Some(tenant) if self.in_trouble.len() < MAX_TENANTS => self.in_trouble.insert(tenant.into()),
                _ => true,
            };
        }
        is_new || self.seen != Seen::Several
    }

    /// A message was taken.
    pub(crate) fn recovered(&mut self) {
        self.in_trouble.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_one_tenant_speaks_against_the_destination_once_if_there_are_others() {
        let mut tenants = Tenants::default();
        assert_eq!([(); 3].map(|()| tenants.trouble([Some("a")])), [true; 3], "there is no other");
        tenants.see(Some("b"));
        assert_eq!([(); 2].map(|()| tenants.trouble([Some("a"), Some("a")])), [false; 2]);
        assert_eq!([(); 2].map(|()| tenants.trouble([Some("a"), Some("b")])), [true, false]);
        tenants.recovered();
        assert_eq!([(); 2].map(|()| tenants.trouble([Some("a")])), [true, false]);
    }

    #[test]
    fn trouble_of_events_without_a_tenant_always_does() {
        let mut tenants = Tenants::default();
        tenants.see(Some("a"));
        assert_eq!([(); 2].map(|()| tenants.trouble([None])), [true; 2]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut tenants = Tenants::default();
        let names: Vec<String> = (0..2 * MAX_TENANTS).map(|number| number.to_string()).collect();
        assert!(names.iter().all(|name| tenants.trouble([Some(name.as_str())])));
        assert_eq!(tenants.in_trouble.len(), MAX_TENANTS);
    }
}
