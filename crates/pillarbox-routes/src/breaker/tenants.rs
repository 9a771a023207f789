use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

/// Tenants that are remembered at most.
const MAX_TENANTS: usize = 1000;

/// The time for which a tenant counts among those of a route after its last event.
const SEEN_FOR: Duration = Duration::from_secs(3600);

/// The time between two searches for tenants that are gone, which each look at all.
const CLEAR_EVERY: Duration = Duration::from_secs(60);

/// The tenants of a route's events, and those whose targets are in trouble. Where targets fail one after the other, the destination as a
/// whole may be in trouble; or one tenant has sent to many places that do not answer, and must not have the route paused for the others.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    /// The tenants of events that have passed, and when. `None`: events without one.
    seen: HashMap<Option<Box<str>>, Instant>,
    /// The last time at which the full map was cleared of tenants that are gone.
    cleared: Option<Instant>,
    /// The tenants in trouble since a message was taken last.
    in_trouble: HashSet<Box<str>>,
}

impl Tenants {
    /// Events of these tenants pass.
    pub(crate) fn see<'a>(&mut self, tenants: impl Iterator<Item = Option<&'a str>>, now: Instant) {
        let mut last = None;
        for tenant in tenants {
            if last == Some(tenant) {
                continue;
            }
            last = Some(tenant);
            let tenant = tenant.map(Into::into);
            if self.seen.len() < MAX_TENANTS || self.seen.contains_key(&tenant) {
                self.seen.insert(tenant, now);
            } else if self.cleared.is_none_or(|cleared| now >= cleared + CLEAR_EVERY) {
                self.cleared = Some(now);
                self.seen.retain(|_, seen| now < *seen + SEEN_FOR);
            }
        }
    }

    /// Events of these tenants were not taken by targets of which nothing was known before. True if that speaks against the destination:
    /// events without a tenant are among them, or a tenant that was not in trouble already, or every tenant of the last hour is.
    pub(crate) fn trouble<'a>(&mut self, tenants: impl Iterator<Item = Option<&'a str>>, now: Instant) -> bool {
        let mut is_new = false;
        for tenant in tenants {
            is_new |= match tenant {
                Some(tenant) if self.in_trouble.contains(tenant) => false,
                Some(tenant) if self.in_trouble.len() < MAX_TENANTS => self.in_trouble.insert(tenant.into()),
                _ => true,
            };
        }
        let mut recent = self.seen.iter().filter(|(_, seen)| now < **seen + SEEN_FOR);
        is_new || recent.all(|(tenant, _)| tenant.as_deref().is_some_and(|tenant| self.in_trouble.contains(tenant)))
    }

    /// A message was taken.
    pub(crate) fn recovered(&mut self) {
        self.in_trouble.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(tenants: &mut Tenants, now: Instant, of: &[Option<&str>]) -> bool {
        tenants.see(of.iter().copied(), now);
        tenants.trouble(of.iter().copied(), now)
    }

    #[test]
    fn trouble_of_one_tenant_speaks_against_the_destination_once_while_there_are_others() {
        let (now, mut tenants) = (Instant::now(), Tenants::default());
        assert_eq!([(); 3].map(|()| trouble(&mut tenants, now, &[Some("a")])), [true; 3], "there is no other");
        tenants.see([Some("b")].into_iter(), now);
        assert_eq!([(); 2].map(|()| trouble(&mut tenants, now, &[Some("a"), Some("a")])), [false; 2]);
        tenants.recovered();
        assert_eq!([(); 2].map(|()| trouble(&mut tenants, now, &[Some("a")])), [true, false]);
        let later = now + SEEN_FOR;
        assert!(trouble(&mut tenants, later, &[Some("a")]), "the other is gone");
    }

    #[test]
    fn trouble_of_all_tenants_always_speaks_against_the_destination() {
        let (now, mut tenants) = (Instant::now(), Tenants::default());
        assert_eq!([(); 3].map(|()| trouble(&mut tenants, now, &[Some("a"), Some("b")])), [true; 3]);
        tenants.see([None].into_iter(), now);
        assert!(!trouble(&mut tenants, now, &[Some("a")]), "events without a tenant pass");
        assert_eq!([(); 2].map(|()| trouble(&mut tenants, now, &[None])), [true; 2]);
    }

    #[test]
    fn remembered_tenants_are_bounded() {
        let (now, mut tenants) = (Instant::now(), Tenants::default());
        let names: Vec<String> = (0..2 * MAX_TENANTS).map(|number| number.to_string()).collect();
        assert!(names.iter().all(|name| trouble(&mut tenants, now, &[Some(name.as_str())])));
        assert_eq!((tenants.in_trouble.len(), tenants.seen.len()), (MAX_TENANTS, MAX_TENANTS));
        tenants.see([Some("new")].into_iter(), now + SEEN_FOR);
        assert!(tenants.seen.is_empty(), "all are gone, and the next one has a place");
    }
}
