use std::fmt;
use std::sync::Arc;

use pillarbox_core::handle::Delivery;

use super::Pattern;
use crate::shape::header_of;

pub(crate) type Predicate = Arc<dyn Fn(&Delivery) -> bool + Send + Sync>;

/// The conditions on an event, all of which have to hold. Of several patterns for one thing, one has to match.
#[derive(Clone, Default)]
pub(crate) struct Selector {
    pub(crate) types: Vec<Pattern>,
    pub(crate) aggregates: Vec<Pattern>,
    pub(crate) tenants: Vec<Pattern>,
    /// The header has to be there and to match.
    pub(crate) headers: Vec<(Box<str>, Pattern)>,
    pub(crate) when: Option<Predicate>,
}

impl Selector {
    pub(crate) fn takes(&self, delivery: &Delivery) -> bool {
        self.takes_type(delivery.event_type())
            && any(&self.aggregates, Some(delivery.aggregate_type()))
            && any(&self.tenants, delivery.tenant_id())
            && self
                .headers
                .iter()
                .all(|(name, pattern)| header_of(delivery, name).is_some_and(|value| pattern.matches(value)))
            && self.when.as_ref().is_none_or(|when| when(delivery))
    }

    /// True if events of this type may be taken, as far as the type decides.
    pub(crate) fn takes_type(&self, event_type: &str) -> bool {
        any(&self.types, Some(event_type))
    }

    /// True if nothing but the type decides.
    pub(crate) fn asks_for_the_type_alone(&self) -> bool {
        let Self { types: _, aggregates, tenants, headers, when } = self;
        all_match(aggregates) && tenants.is_empty() && headers.is_empty() && when.is_none()
    }

    /// The `earlier` selectors that together take all events of this one, so that nothing is left for it; none if something is.
    pub(crate) fn hidden_by<N: Copy + PartialEq>(&self, earlier: &[(N, &Self)]) -> Vec<N> {
        let any_type = [Pattern::new("*")];
        let types = if self.types.is_empty() { &any_type[..] } else { &self.types };
        let mut hiding = Vec::new();
        for kind in types {
            let Some((name, _)) = earlier.iter().find(|(_, other)| other.takes_all_of(kind, self)) else {
                return Vec::new();
            };
            if !hiding.contains(name) {
                hiding.push(*name);
            }
        }
        hiding
    }

    /// True if it takes all events that `other` would, as far as their type is like `kind`.
    fn takes_all_of(&self, kind: &Pattern, other: &Self) -> bool {
        let covered = |patterns: &[Pattern], pattern: &Pattern| patterns.iter().any(|own| own.covers(pattern));
        let all_covered = |own: &[Pattern], others: &[Pattern]| {
            !others.is_empty() && others.iter().all(|pattern| covered(own, pattern))
        };
        (self.types.is_empty() || covered(&self.types, kind))
            && (all_match(&self.aggregates) || all_covered(&self.aggregates, &other.aggregates))
            && (self.tenants.is_empty() || all_covered(&self.tenants, &other.tenants))
            && self.headers.iter().all(|(name, pattern)| {
                other.headers.iter().any(|(others, narrower)| others == name && pattern.covers(narrower))
            })
            && self.when.is_none()
    }

    /// True if it takes every event.
    pub(crate) fn takes_all(&self) -> bool {
        all_match(&self.types) && self.asks_for_the_type_alone()
    }
}

/// Without patterns nothing is asked for.
fn any(patterns: &[Pattern], text: Option<&str>) -> bool {
    patterns.is_empty() || text.is_some_and(|text| patterns.iter().any(|pattern| pattern.matches(text)))
}

fn all_match(patterns: &[Pattern]) -> bool {
    patterns.is_empty() || patterns.iter().any(Pattern::is_any)
}

/// In words: `type order.* or stock.*, tenant acme`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let any_of = |name: &str, patterns: &[Pattern]| {
            let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
            (!texts.is_empty()).then(|| format!("{name} {}", texts.join(" or ")))
        };
        let headers = self.headers.iter().map(|(name, pattern)| Some(format!("header {name} {pattern}")));
        let when = self.when.is_some().then(|| "what its own condition takes".to_owned());
        let lists =
            [any_of("type", &self.types), any_of("aggregate", &self.aggregates), any_of("tenant", &self.tenants)];
        let words: Vec<String> = lists.into_iter().chain(headers).chain([when]).flatten().collect();
        if words.is_empty() { f.write_str("every event") } else { f.write_str(&words.join(", ")) }
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selector")
            .field("types", &self.types)
            .field("aggregates", &self.aggregates)
            .field("tenants", &self.tenants)
            .field("headers", &self.headers)
            .field("when", &self.when.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_told_in_words() {
        let patterns = |texts: &[&str]| texts.iter().map(|text| Pattern::new(*text)).collect();
        let selector = Selector {
            types: patterns(&["order.*", "stock.sold"]),
            aggregates: patterns(&["order"]),
            tenants: patterns(&["acme"]),
            headers: vec![("region".into(), Pattern::new("eu-*"))],
            when: Some(Arc::new(|_| true)),
        };
        assert_eq!(
            selector.to_string(),
            "type order.* or stock.sold, aggregate order, tenant acme, header region eu-*, what its own condition takes"
        );
        assert_eq!(Selector::default().to_string(), "every event");
    }
}
