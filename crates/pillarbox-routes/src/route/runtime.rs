use std::fmt;
use std::sync::Arc;

use pillarbox_core::handle::Delivery;
use pillarbox_core::lock::Mutex;
use pillarbox_core::publisher::{Message, Publisher};

use super::pausable_types::PausableTypes;
use super::rule::Remake;
use crate::breaker::{Backoffs, CallSize, Circuit, Limits, Part, Parts, RetrySpacing, Targets, Tenants};
use crate::forward::{StuckEventLog, TargetLog};
use crate::observe::Meters;
use crate::select::{Predicate, Selector};
use crate::shape::{Format, HeaderRules, Outline, Template};

/// A route at work.
#[derive(Debug)]
pub(crate) struct RouteRuntime {
    pub(crate) name: Arc<str>,
    pub(crate) selector: Selector,
    /// `None`: what it takes goes nowhere.
    pub(crate) output: Option<RouteOutput>,
    pub(crate) meters: Meters,
}

impl RouteRuntime {
    /// Brings its gauges up to date. To be called without a lock of its output.
    pub(crate) fn report(&self) {
        let Some(output) = &self.output else { return };
        self.meters.report(|| {
            let is_paused = output.operator_pause.lock().is_some() || output.circuit.lock().paused().is_some();
            (is_paused, output.targets.lock().all_paused().count())
        });
    }
}

/// The place to which a route sends: the broker, and the form of the messages.
pub(crate) struct RouteOutput {
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) target: Template,
    pub(crate) key: Option<Template>,
    pub(crate) format: Format,
    pub(crate) source: Box<str>,
    pub(crate) headers: HeaderRules,
    pub(crate) only: Option<Predicate>,
    pub(crate) remake: Option<Remake>,
    pub(crate) limits: Limits,
    pub(crate) call_size: Mutex<CallSize>,
    pub(crate) circuit: Mutex<Circuit>,
    /// The targets and servers in trouble, where the target depends on the event.
    pub(crate) targets: Mutex<Targets>,
    /// The tenants whose targets are in trouble, where the target depends on the event.
    pub(crate) tenants: Mutex<Tenants>,
    /// The delays of events that were not taken while others were.
    pub(crate) backoffs: Mutex<Backoffs>,
    /// The delays of events that are refused for themselves.
    pub(crate) retry_spacing: Mutex<RetrySpacing>,
    pub(crate) pausable_types: Mutex<PausableTypes>,
    /// The reason, while an operator has it paused.
    pub(crate) operator_pause: Mutex<Option<Arc<str>>>,
    pub(crate) stuck_event_log: StuckEventLog,
    pub(crate) target_log: TargetLog,
}

impl RouteOutput {
    /// The message of an event; `None` if it is not to be sent. An error says what will never fit.
    pub(crate) fn message(&self, event: &Delivery) -> Result<Option<Message>, String> {
        if self.only.as_ref().is_some_and(|only| !only(event)) {
            return Ok(None);
        }
        let key = match &self.key {
            Some(key) => Some(key.fill(event)?),
            None => event.key().map(Arc::from),
        };
        let info = self.publisher.info();
        let target = self.target.fill_target(event, info.targets)?;
        self.refuse_reserved(&target)?;
        let outline = Outline { target, key, kind: info.kind, source: &self.source };
        let mut message = self.format.shape(event, outline, &self.headers)?;
        message.tenant = event.tenant_id().map(Into::into);
        match &self.remake {
            Some(remake) => remake(event, message).map(Some),
            None => Ok(Some(message)),
        }
    }

    /// Refuses a target that a value of the event has made one of the broker's own.
    fn refuse_reserved(&self, target: &str) -> Result<(), String> {
        let reserved = self.publisher.info().reserved.filter(|first| target.starts_with(*first));
        match reserved.zip(self.target.prefix()) {
            Some((reserved, prefix)) if !prefix.starts_with(reserved) => Err(format!(
                "the target {:?} would begin with `{reserved}`, as the broker's own do; begin `to` with text of its own, such as `events/`",
                self.publisher.shown(target)
            )),
            _ => Ok(()),
        }
    }

    /// The parts of the destination that a message needs; `None` if they are the same for every event.
    pub(crate) fn parts(&self, message: &Message) -> Option<Parts> {
        if self.target.fixed() == Some(&*message.target) {
            return None;
        }
        let server = self.publisher.server(&message.target).map(|server| Part::Server(server.into()));
        let target = Arc::clone(&message.target);
        let target = match message.tenant.clone().filter(|_| self.publisher.info().by_tenant) {
            Some(tenant) => Part::TargetOfTenant(target, tenant),
            None => Part::Target(target),
        };
        Some(Parts { server, target })
    }

    /// A part of the destination, as it may be shown.
    pub(crate) fn shown(&self, part: &Part) -> String {
        match part {
            Part::Server(server) => server.to_string(),
            Part::Target(target) => self.publisher.shown(target).into_owned(),
            Part::TargetOfTenant(target, tenant) => {
                format!("{} for tenant `{}`", self.publisher.shown(target), tenant.escape_debug())
            }
        }
    }
}

impl fmt::Debug for RouteOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The target may hold a secret, as some URLs do.
        f.debug_struct("RouteOutput").field("publisher", self.publisher.info()).finish_non_exhaustive()
    }
}
