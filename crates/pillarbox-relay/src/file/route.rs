use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::publisher::Publisher;
use pillarbox_routes::{Breaker, Format, Pattern, Route};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::server::span;

/// A `[[route]]`: which events it takes, and where they go.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteSection {
    pub(crate) name: String,
    /// Only events of these sources.
    #[serde(default, deserialize_with = "some")]
    pub(crate) sources: Vec<String>,
    #[serde(default, deserialize_with = "some")]
    types: Vec<Pattern>,
    #[serde(default, deserialize_with = "some")]
    aggregates: Vec<Pattern>,
    #[serde(default, deserialize_with = "some")]
    tenants: Vec<Pattern>,
    #[serde(default, deserialize_with = "some")]
    headers: BTreeMap<String, Pattern>,
    /// True if the events that it takes are done without being sent.
    #[serde(default)]
    drop: bool,
    pub(crate) publisher: Option<String>,
    to: Option<String>,
    key: Option<String>,
    format: Option<Format>,
    /// The `source` of CloudEvents.
    source: Option<String>,
    #[serde(default, deserialize_with = "some")]
    with_headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "some")]
    without_headers: Vec<Pattern>,
    concurrency: Option<usize>,
    rate: Option<u32>,
    breaker: Option<BreakerSection>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BreakerSection {
    failures: Option<u32>,
    #[serde(deserialize_with = "span")]
    pause: Option<Duration>,
    #[serde(deserialize_with = "span")]
    max_pause: Option<Duration>,
}

// A target may hold a secret, as some URLs do.
impl fmt::Debug for RouteSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteSection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads what holds something: an empty list may be meant to match nothing, or everything.
fn some<'de, D: Deserializer<'de>, C: Deserialize<'de>>(deserializer: D) -> Result<C, D::Error>
where
    for<'a> &'a C: IntoIterator,
{
    let read = C::deserialize(deserializer)?;
    let is_empty = (&read).into_iter().next().is_none();
    if is_empty { Err(D::Error::custom("it is empty; leave it out, or write what it should hold")) } else { Ok(read) }
}

impl RouteSection {
    /// The contradiction in its settings, if there is one, and the key that it is about; none if that is missing.
    pub(crate) fn contradiction(&self) -> Option<(Option<&'static str>, &'static str)> {
        if self.drop {
            let sends = self.publisher.is_some()
                || self.to.is_some()
                || self.key.is_some()
                || self.format.is_some()
                || self.source.is_some()
                || !self.with_headers.is_empty()
                || !self.without_headers.is_empty()
                || self.concurrency.is_some()
                || self.rate.is_some()
                || self.breaker.is_some();
            let problem = "it drops what it takes, and says how to send it; leave out one or the other";
            return sends.then_some((Some("drop"), problem));
        }
        if self.types.iter().any(|pattern| pattern.as_str().is_empty()) {
            let problem = "`types` holds an empty text, which no event has for its type; write `*` for all";
            return Some((Some("types"), problem));
        }
        if self.source.is_some() && self.format.unwrap_or_default() == Format::Raw {
            let problem =
                "`source` is that of CloudEvents, and the format is raw; leave it out, or choose such a `format`";
            return Some((Some("source"), problem));
        }
        match (&self.publisher, &self.to) {
            (None, _) => Some((None, "`publisher` is missing; name a [publisher.NAME], or write `drop = true`")),
            (_, None) => {
                Some((None, "`to` is missing; say where the events go, such as `to = \"orders.{event_type}\"`"))
            }
            _ => None,
        }
    }

    /// True if it takes events of this source.
    pub(crate) fn is_for(&self, source: &str) -> bool {
        self.sources.is_empty() || self.sources.iter().any(|name| name == source)
    }

    /// The route, to a publisher unless it drops what it takes.
    pub(crate) fn route(&self, publisher: Option<Arc<dyn Publisher>>) -> Route {
        let mut route = match publisher {
            Some(publisher) => Route::to(publisher, self.to.clone().unwrap_or_default()),
            None => Route::drop(),
        };
        route = route
            .named(&*self.name)
            .without_headers(self.without_headers.clone())
            .format(self.format.unwrap_or_default());
        // An empty list is refused, as in a file.
        if !self.types.is_empty() {
            route = route.types(self.types.clone());
        }
        if !self.aggregates.is_empty() {
            route = route.aggregates(self.aggregates.clone());
        }
        if !self.tenants.is_empty() {
            route = route.tenants(self.tenants.clone());
        }
        for (name, pattern) in &self.headers {
            route = route.header(&**name, pattern.clone());
        }
        for (name, value) in &self.with_headers {
            route = route.with_header(&**name, &**value);
        }
        if let Some(key) = &self.key {
            route = route.key(&**key);
        }
        if let Some(source) = &self.source {
            route = route.source(&**source);
        }
        if let Some(concurrency) = self.concurrency {
            route = route.concurrency(concurrency);
        }
        if let Some(rate) = self.rate {
            route = route.rate(rate);
        }
        if let Some(BreakerSection { failures, pause, max_pause }) = &self.breaker {
            let default = Breaker::default();
            let pause = pause.unwrap_or(default.pause);
            route = route.breaker(Breaker {
                failures: failures.unwrap_or(default.failures),
                pause,
                max_pause: max_pause.unwrap_or(default.max_pause.max(pause)),
            });
        }
        route
    }
}
