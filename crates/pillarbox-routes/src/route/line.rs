use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::{Message, Publisher};

use super::rule::{Filter, Remake};
use crate::guard::{Circuit, Limits};
use crate::observe::Meters;
use crate::select::Selector;
use crate::shape::{Format, HeaderRules, Outline, Template};

/// A route at work.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: Arc<str>,
    pub(crate) selector: Selector,
    /// `None`: what it takes goes nowhere.
    pub(crate) sending: Option<Sending>,
    pub(crate) meters: Meters,
}

/// How a route sends.
pub(crate) struct Sending {
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) target: Template,
    pub(crate) key: Option<Template>,
    pub(crate) format: Format,
    pub(crate) source: Box<str>,
    pub(crate) headers: HeaderRules,
    pub(crate) only: Option<Filter>,
    pub(crate) remake: Option<Remake>,
    pub(crate) limits: Limits,
    pub(crate) circuit: Mutex<Circuit>,
    /// The types of the events that have come this way and of which none goes another: what can be held back.
    pub(crate) types: Mutex<BTreeSet<Box<str>>>,
}

impl Sending {
    /// The message of an event; `None` if it is not to be sent. An error says what will never fit.
    pub(crate) fn message(&self, event: &Delivery) -> Result<Option<Message>, String> {
        if self.only.as_ref().is_some_and(|only| !only(event)) {
            return Ok(None);
        }
        let key = match &self.key {
            Some(key) => Some(key.fill(event)?),
            None => event.key().map(Arc::from),
        };
        let outline =
            Outline { target: self.target.fill(event)?, key, kind: self.publisher.info().kind, source: &self.source };
        let message = self.format.shape(event, outline, &self.headers)?;
        match &self.remake {
            Some(remake) => remake(event, message).map(Some),
            None => Ok(Some(message)),
        }
    }

    pub(crate) fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn types(&self) -> MutexGuard<'_, BTreeSet<Box<str>>> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending")
            .field("publisher", self.publisher.info())
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}
