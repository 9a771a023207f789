use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::{Random, SystemRandom};
use pillarbox_core::lock::Mutex;
use pillarbox_engine::run::TypePause;

use super::{Route, RouteError, RouteOutput, RouteRuntime};
use crate::breaker::{Backoffs, CallSize, Circuit, Limits, Targets};
use crate::forward::{Forwarder, StuckEventLog, TargetLog};
use crate::observe::{self, Meters, PREFIX};
use crate::shape::{HeaderRules, Template};

/// The fate of an event that no route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrouted {
    /// It goes DEAD at once, with an error that names its type.
    Dead,
    /// It stays pending and is looked at again after this long, without counting an attempt, since newer routes may take it. It
    /// goes DEAD once it is [too old](pillarbox_engine::run::DispatchConfig::unroutable_dead_after). The default, every 30 seconds.
    Park(Duration),
    /// It is done.
    Drop,
}

impl Default for Unrouted {
    fn default() -> Self {
        Self::Park(Duration::from_secs(30))
    }
}

/// All routes: an event goes where the first route that takes it says.
///
/// ```
/// use std::sync::Arc;
/// use pillarbox_engine::handlers::{Events, on_batch};
/// use pillarbox_core::publisher::Publisher;
/// use pillarbox_engine::run::Outbox;
/// use pillarbox_memory::MemoryStore;
/// use pillarbox_routes::{Route, RouteError, Routes};
///
/// # fn start(broker: Arc<dyn Publisher>) -> Result<(), RouteError> {
/// let forwarder = Routes::new()
///     .route(Route::to(Arc::clone(&broker), "orders.{event_type}").types(["order.*"]))
///     .route(Route::drop().types(["debug.*"]))
///     .otherwise(Route::to(broker, "events"))
///     .build()?;
/// let outbox = Outbox::partitioned(MemoryStore::new()).type_pause(forwarder.type_pause()).handler(on_batch(Events::Others, 256, forwarder).for_any_name());
/// # drop(outbox);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "nothing is passed on before an outbox is given what build() returns"]
pub struct Routes {
    routes: Vec<Route>,
    otherwise: Option<Route>,
    unrouted: Unrouted,
    random: Option<Arc<dyn Random>>,
    prefix: Option<String>,
}

impl Routes {
    /// No routes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route. Of several that take an event, the first has it.
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// The route of events that no other route takes.
    pub fn otherwise(mut self, route: Route) -> Self {
        self.otherwise = Some(route);
        self
    }

    /// The fate of events that no route takes. Default: [`Unrouted::Park`], every 30 seconds.
    pub fn unrouted(mut self, unrouted: Unrouted) -> Self {
        self.unrouted = unrouted;
        self
    }

    /// The source of randomness for the spread of pauses. Default: the operating system.
    pub fn random(mut self, random: impl Random) -> Self {
        self.random = Some(Arc::new(random));
        self
    }

    /// The prefix of the names of metrics. Default: `pillarbox`.
    pub fn metrics_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Checks all of it, and makes what an outbox hands its events to.
    ///
    /// # Errors
    /// When there is no route, a setting cannot be, two routes have one name, or a route stands behind others that take all that
    /// it would.
    pub fn build(self) -> Result<Forwarder, RouteError> {
        let (random, prefix) = (self.random.clone(), self.prefix.clone());
        let built = self.built(&BTreeMap::new())?;
        let prefix = prefix.as_deref().unwrap_or(PREFIX);
        let random = random.unwrap_or_else(|| Arc::new(SystemRandom));
        Ok(Forwarder::new(built, observe::unrouted(prefix), random, TypePause::new()))
    }

    /// As [`build`](Self::build), and makes nothing.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn check(self) -> Result<(), RouteError> {
        self.checked().map(drop)
    }

    /// The routes at work, those of `kept` among them as they are, by their names.
    pub(crate) fn built(self, kept: &BTreeMap<Arc<str>, Arc<RouteRuntime>>) -> Result<Built, RouteError> {
        let (unrouted, prefix) = (self.unrouted, self.prefix.clone());
        let prefix = prefix.as_deref().unwrap_or(PREFIX);
        let runtimes = self.checked()?.into_iter().map(|checked| match kept.get(&checked.name) {
            Some(runtime) => Arc::clone(runtime),
            None => Arc::new(checked.runtime(prefix)),
        });
        Ok(Built { runtimes: runtimes.collect(), unrouted })
    }

    fn checked(self) -> Result<Vec<Checked>, RouteError> {
        let Self { mut routes, otherwise, unrouted: _, random: _, prefix: _ } = self;
        if let Some(otherwise) = otherwise {
            if !otherwise.selector.takes_all() {
                let name = otherwise.name.as_deref().unwrap_or("default");
                let problem = "asks for certain events, and it is for all that no other route takes";
                return Err(RouteError::new(name, "otherwise", problem, "add it with route(), or ask for nothing"));
            }
            let name = otherwise.name.clone().unwrap_or_else(|| "default".into());
            routes.push(otherwise.named(name));
        }
        if routes.is_empty() {
            return Err(RouteError::new("", "route", "there is no route at all", "add one, or a default"));
        }
        let mut all: Vec<Checked> = Vec::with_capacity(routes.len());
        let mut names = BTreeSet::new();
        for (index, route) in routes.into_iter().enumerate() {
            let name: Arc<str> = route.name.as_deref().map_or_else(|| format!("route-{}", index + 1).into(), Arc::from);
            if !names.insert(Arc::clone(&name)) {
                return Err(RouteError::new(&name, "name", "is the name of two routes", "give each one of its own"));
            }
            let (target, key, headers) = route.check(&name)?;
            let earlier: Vec<_> = all.iter().map(|checked| (&*checked.name, &checked.route.selector)).collect();
            let hiding = route.selector.hidden_by(&earlier);
            if !hiding.is_empty() {
                let problem = format!("it gets no event: {} before it takes all that it asks for", list(&hiding));
                return Err(RouteError::new(&name, "order", problem, "move it up, or narrow that one"));
            }
            all.push(Checked { name, target, key, headers, route });
        }
        Ok(all)
    }
}

/// The routes of a forwarder, at work.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) runtimes: Vec<Arc<RouteRuntime>>,
    pub(crate) unrouted: Unrouted,
}

/// A route that can be, with a name.
struct Checked {
    name: Arc<str>,
    target: Template,
    key: Option<Template>,
    headers: HeaderRules,
    route: Route,
}

/// Routes, by their names.
fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("route `{name}`")).collect();
    names.join(" or ")
}

impl Checked {
    fn runtime(self, prefix: &str) -> RouteRuntime {
        let Self { name, target, key, headers, route } = self;
        let kind = route.publisher.as_ref().map_or("none", |publisher| publisher.info().kind);
        let meters = Meters::new(prefix, &name, kind);
        let output = route.publisher.map(|publisher| RouteOutput {
            publisher,
            target,
            key,
            format: route.format,
            source: route.source,
            headers,
            only: route.only,
            remake: route.remake,
            limits: Limits::new(route.concurrency, route.rate),
            call_size: Mutex::new(CallSize::unlimited()),
            circuit: Mutex::new(Circuit::new(route.breaker)),
            targets: Mutex::new(Targets::new(route.breaker)),
            tenants: Mutex::default(),
            backoffs: Mutex::new(Backoffs::new(route.breaker)),
            retry_spacing: Mutex::default(),
            pausable_types: Mutex::default(),
            operator_pause: Mutex::default(),
            stuck_event_log: StuckEventLog::default(),
            target_log: TargetLog::default(),
        });
        RouteRuntime { name, selector: route.selector, output, meters }
    }
}
