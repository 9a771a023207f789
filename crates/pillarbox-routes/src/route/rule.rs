use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::EventId;
use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{Message, PublishErrorKind, Publisher};

use super::RouteError;
use crate::breaker::Breaker;
use crate::select::{Pattern, Predicate, Selector};
use crate::shape::{Format, HeaderRules, Template};

pub(crate) type Remake = Arc<dyn Fn(&Delivery, Message) -> Result<Message, String> + Send + Sync>;

/// Longest pause of a breaker.
const MAX_BREAKER_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// A route: the events that it takes, their destination, and the shape of their messages.
///
/// ```
/// use std::sync::Arc;
/// use pillarbox_core::publisher::Publisher;
/// use pillarbox_routes::{Format, Route};
///
/// fn orders(broker: Arc<dyn Publisher>) -> Route {
///     Route::to(broker, "orders.{event_type}")
///         .named("orders")
///         .types(["order.*"])
///         .header("region", "eu-*")
///         .key("{aggregate_id}")
///         .format(Format::CloudeventsBinary)
///         .source("/shop")
/// }
/// ```
#[derive(Clone)]
#[must_use = "it takes nothing until it is among Routes"]
pub struct Route {
    pub(crate) name: Option<Box<str>>,
    pub(crate) selector: Selector,
    /// The conditions that were given a list, by their names: an empty list would ask for nothing, and so take every event.
    listed: Vec<&'static str>,
    /// `None`: the events that it takes are dropped.
    pub(crate) publisher: Option<Arc<dyn Publisher>>,
    pub(crate) target: Box<str>,
    pub(crate) key: Option<Box<str>>,
    pub(crate) format: Format,
    pub(crate) source: Box<str>,
    pub(crate) without: Vec<Pattern>,
    pub(crate) with: Vec<(Box<str>, Box<str>)>,
    pub(crate) only: Option<Predicate>,
    pub(crate) remake: Option<Remake>,
    pub(crate) breaker: Breaker,
    pub(crate) concurrency: Option<usize>,
    pub(crate) rate: Option<u32>,
}

impl Route {
    /// Sends what it takes to `target`: what that means is the publisher's, such as a subject or a topic. It may hold places for
    /// what the event says of itself: `{event_id}`, `{event_type}`, `{aggregate_type}`, `{aggregate_id}`, `{tenant_id}`, `{key}`,
    /// `{header:NAME}`, each with `|` and what to say where the event has no such thing: `{tenant_id|none}`. A value is one part of
    /// the target, percent-encoded where it has to be; `{+key}` stands as it is.
    pub fn to(publisher: Arc<dyn Publisher>, target: impl Into<Box<str>>) -> Self {
        Self::new(Some(publisher), target.into())
    }

    /// Drops what it takes: the event is done, and nothing is sent.
    pub fn drop() -> Self {
        Self::new(None, "".into())
    }

    fn new(publisher: Option<Arc<dyn Publisher>>, target: Box<str>) -> Self {
        Self {
            name: None,
            selector: Selector::default(),
            listed: Vec::new(),
            publisher,
            target,
            key: None,
            format: Format::Raw,
            source: "pillarbox".into(),
            without: Vec::new(),
            with: Vec::new(),
            only: None,
            remake: None,
            breaker: Breaker::default(),
            concurrency: None,
            rate: None,
        }
    }

    /// Its name in logs, metrics and errors. Default: its number among the routes.
    pub fn named(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Takes events whose type matches one of these. An empty list is refused, as in [`aggregates`](Self::aggregates) and [`tenants`](Self::tenants):
    /// it may be meant to take nothing.
    pub fn types<P: Into<Pattern>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.selector.types.extend(patterns.into_iter().map(Into::into));
        self.listed.push("types");
        self
    }

    /// Takes events whose aggregate type matches one of these.
    pub fn aggregates<P: Into<Pattern>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.selector.aggregates.extend(patterns.into_iter().map(Into::into));
        self.listed.push("aggregates");
        self
    }

    /// Takes events of a tenant that matches one of these. An event without a tenant matches none.
    pub fn tenants<P: Into<Pattern>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.selector.tenants.extend(patterns.into_iter().map(Into::into));
        self.listed.push("tenants");
        self
    }

    /// Takes events that have this header, whatever the case of its name, with a value that matches. Of several, all have to.
    pub fn header(mut self, name: impl Into<Box<str>>, value: impl Into<Pattern>) -> Self {
        self.selector.headers.push((name.into(), value.into()));
        self
    }

    /// Takes events of which this is true as well. It has to be quick, and to say the same of the same event each time. Of several, all have to be
    /// true.
    pub fn when(mut self, predicate: impl Fn(&Delivery) -> bool + Send + Sync + 'static) -> Self {
        self.selector.when = Some(both(self.selector.when.take(), predicate));
        self
    }

    /// The places of the `earlier` routes that together take all events of this one; none if there is something left for it.
    #[must_use]
    pub fn hidden_by(&self, earlier: &[Self]) -> Vec<usize> {
        let earlier: Vec<_> = earlier.iter().enumerate().map(|(place, route)| (place, &route.selector)).collect();
        self.selector.hidden_by(&earlier)
    }

    /// The key of the message, with places as in the target. Default: the key of the event.
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The format of the message. Default: [`Format::Raw`].
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// The `source` of CloudEvents: a URI reference that names the service, such as `/shop`. Default: `pillarbox`.
    pub fn source(mut self, source: impl Into<Box<str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Adds a header, with places in its value as in the target, in place of one of the event's of that name.
    pub fn with_header(mut self, name: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        self.with.push((name.into(), value.into()));
        self
    }

    /// Leaves out the event's own headers whose names match one of these, whatever their case. The headers that the format gives stay: a name
    /// of one of them is refused, and a pattern with `*` does not reach them.
    pub fn without_headers<P: Into<Pattern>>(mut self, names: impl IntoIterator<Item = P>) -> Self {
        self.without.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sends only those of its events of which this is true. The others are done; no other route takes them. Of several, all have to be true.
    pub fn only(mut self, filter: impl Fn(&Delivery) -> bool + Send + Sync + 'static) -> Self {
        self.only = Some(both(self.only.take(), filter));
        self
    }

    /// Changes each message before it is sent: its body, its headers, its key. An error makes the event DEAD and stands in its
    /// row. Of several, each changes what the one before has made.
    pub fn map(
        mut self,
        remake: impl Fn(&Delivery, Message) -> Result<Message, String> + Send + Sync + 'static,
    ) -> Self {
        self.remake = Some(match self.remake.take() {
            Some(earlier) => Arc::new(move |delivery, message| remake(delivery, earlier(delivery, message)?)),
            None => Arc::new(remake),
        });
        self
    }

    /// The conditions and the length of its pauses. Default: [`Breaker::default`].
    pub fn breaker(mut self, breaker: Breaker) -> Self {
        self.breaker = breaker;
        self
    }

    /// At most so many batches of it are on their way at once. Default: as many as there are workers.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = Some(calls);
        self
    }

    /// At most so many messages of it are sent in a second, on average: a batch of more is sent as a whole, and the next one when it is paid for.
    /// A batch that would wait for longer than a second is deferred, without an attempt. Default: no limit.
    pub fn rate(mut self, messages: u32) -> Self {
        self.rate = Some(messages);
        self
    }

    /// Checks the settings, and parses the templates among them.
    pub(crate) fn check(&self, name: &str) -> Result<(Template, Option<Template>, HeaderRules), RouteError> {
        if name.is_empty() || name.chars().any(char::is_control) {
            let problem = "is empty or holds a control character";
            return Err(RouteError::new(name, "name", problem, "give it a name people can read"));
        }
        self.check_lists(name)?;
        if self.publisher.is_some() && self.target.is_empty() {
            return Err(RouteError::new(name, "to", "is empty", "say where the events go"));
        }
        let target = template(name, "to", &self.target)?;
        let key = self.key.as_deref().map(|key| template(name, "key", key)).transpose()?;
        let headers = self.check_headers(name)?;
        self.check_values(name)?;
        match self.never_sent(name, &target, &headers.with) {
            Some(refused) => Err(refused),
            None => Ok((target, key, headers)),
        }
    }

    /// Refuses lists that were given and are empty.
    fn check_lists(&self, name: &str) -> Result<(), RouteError> {
        let lists = [&self.selector.types, &self.selector.aggregates, &self.selector.tenants];
        let mut empty = ["types", "aggregates", "tenants"].into_iter().zip(lists).filter(|(_, list)| list.is_empty());
        match empty.find(|(field, _)| self.listed.contains(field)) {
            Some((field, _)) => Err(RouteError::new(
                name,
                field,
                "is empty, which may be meant to take nothing or everything",
                "leave it out to take everything, or leave out the route",
            )),
            None => Ok(()),
        }
    }

    /// Checks the headers that are added or left out, and parses their templates.
    fn check_headers(&self, name: &str) -> Result<HeaderRules, RouteError> {
        let kind = self.publisher.as_ref().map_or("", |publisher| publisher.info().kind);
        let mut with = Vec::new();
        for (header, value) in &self.with {
            if header.is_empty() || header.chars().any(char::is_control) {
                return Err(RouteError::new(
                    name,
                    "with_headers",
                    "has an empty name, or one with a control character",
                    "give each header a name without control characters",
                ));
            }
            if self.format.gives(kind, header) {
                let problem = format!("names `{header}`, which every message has from its event");
                return Err(RouteError::new(name, "with_headers", problem, "choose another name"));
            }
            with.push((header.clone(), template(name, "with_headers", value)?));
        }
        let reserved =
            |pattern: &&Pattern| !pattern.as_str().contains('*') && self.format.gives(kind, pattern.as_str());
        if let Some(pattern) = self.without.iter().find(reserved) {
            let problem = format!(
                "names `{pattern}`, a header of the format: only headers that events bring along can be left out"
            );
            return Err(RouteError::new(name, "without_headers", problem, "remove it from the list"));
        }
        Ok(HeaderRules { without: self.without.iter().map(Pattern::in_small_letters).collect(), with })
    }

    /// Checks the values that have a range or a form.
    fn check_values(&self, name: &str) -> Result<(), RouteError> {
        let (number, a_day) = ("set 1 or more, or leave it out", "set a day, `1d`, at most");
        let Breaker { failures, pause, max_pause } = self.breaker;
        let below = format!("is {max_pause:?}, below `breaker.pause`, which is {pause:?}");
        let table = [
            (self.source.is_empty(), "source", "is empty".into(), "name your service, such as `/shop`"),
            (
                self.source.contains(|c: char| c.is_whitespace() || c.is_control()),
                "source",
                format!("is {:?}, which is no reference of a URI", self.source),
                "write it without white space, such as `/shop`",
            ),
            (self.concurrency == Some(0), "concurrency", "is 0".into(), number),
            (self.rate == Some(0), "rate", "is 0".into(), number),
            (failures == 0, "breaker.failures", "is 0".into(), "set 1 or more"),
            (pause.is_zero(), "breaker.pause", "is zero".into(), "set a duration, such as `500ms`"),
            (pause > MAX_BREAKER_PAUSE, "breaker.pause", format!("is {pause:?}"), a_day),
            (max_pause < pause, "breaker.max_pause", below, "set it to that or more"),
            (max_pause > MAX_BREAKER_PAUSE, "breaker.max_pause", format!("is {max_pause:?}"), a_day),
        ];
        match table.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            Some((_, field, problem, remedy)) => Err(RouteError::new(name, field, problem, remedy)),
            None => Ok(()),
        }
    }

    /// The setting for which no message of this route could ever be sent: all of its events would be given up.
    fn never_sent(&self, name: &str, target: &Template, with: &[(Box<str>, Template)]) -> Option<RouteError> {
        let publisher = self.publisher.as_ref().filter(|_| self.remake.is_none())?;
        let refusal = |field, message: &Message, remedy| {
            let refused = publisher.refusal(message, target.fixed().is_some())?;
            let never = refused.kind() == PublishErrorKind::Permanent;
            never
                .then(|| RouteError::new(name, field, format!("makes messages that cannot be sent: {refused}"), remedy))
        };
        let mut message = Message::new(target.sample(), EventId::from_stored("x"), "{}");
        let of_target = refusal("to", &message, "correct it");
        of_target.or_else(|| {
            message.headers = with.iter().map(|(name, value)| (name.to_string().into(), value.sample())).collect();
            refusal("with_headers", &message, "correct or leave out that header")
        })
    }
}

/// Parses the template of a setting of the route `name`.
fn template(name: &str, field: &'static str, text: &str) -> Result<Template, RouteError> {
    let error = |problem: String| RouteError::new(name, field, problem, "write places as in `orders.{event_type}`");
    text.parse::<Template>().map_err(error)
}

/// True of an event of which both conditions are, as far as there is an `earlier` one.
fn both(earlier: Option<Predicate>, later: impl Fn(&Delivery) -> bool + Send + Sync + 'static) -> Predicate {
    match earlier {
        Some(earlier) => Arc::new(move |delivery| earlier(delivery) && later(delivery)),
        None => Arc::new(later),
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("name", &self.name)
            .field("selector", &self.selector)
            .field("publisher", &self.publisher.as_ref().map(|publisher| publisher.info()))
            // Without the target, which may hold a secret.
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}
