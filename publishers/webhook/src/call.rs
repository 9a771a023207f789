//! The state that the requests of one call share.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::event::EventId;
use pillarbox_core::publisher::PublishError;
use tokio::time::Instant;

pub(crate) struct Call {
    pub(crate) deadline: Instant,
    known: Mutex<Known>,
}

/// The knowledge of a call about the places that it sends to.
#[derive(Default)]
pub(crate) struct Known {
    /// Hosts that cannot be connected to, and endpoints that asked for a pause: to try them again for each message of the call
    /// would be a storm.
    closed: HashMap<String, PublishError>,
    /// Hosts and endpoints that have answered.
    pub(crate) answered: HashSet<String>,
    /// The messages that had no answer in time, by host, with their endpoints.
    pub(crate) silent: HashMap<String, Vec<(usize, String)>>,
    /// The messages over which each connection has ended, by endpoint, with their places in the call.
    pub(crate) suspects: HashMap<String, Vec<(usize, EventId)>>,
    /// By endpoint, held while a message is sent alone.
    trials: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

impl Call {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, known: Mutex::default() }
    }

    /// The error of all that is sent to a place, if that is known.
    pub(crate) fn closed(&self, place: &str) -> Option<PublishError> {
        self.lock().closed.get(place).cloned()
    }

    pub(crate) fn close(&self, place: String, error: &PublishError) {
        self.lock().closed.insert(place, error.clone());
    }

    pub(crate) fn answered(&self, host: &str, endpoint: &str) {
        let mut known = self.lock();
        for place in [host, endpoint] {
            if !known.answered.contains(place) {
                known.answered.insert(place.to_owned());
            }
        }
    }

    pub(crate) fn silent(&self, host: String, index: usize, endpoint: String) {
        self.lock().silent.entry(host).or_default().push((index, endpoint));
    }

    pub(crate) fn suspect(&self, endpoint: &str, index: usize, message: EventId) {
        self.lock().suspects.entry(endpoint.to_owned()).or_default().push((index, message));
    }

    /// True if the endpoint has ended each connection over a message, and answered no other yet.
    pub(crate) fn ends_all(&self, endpoint: &str) -> bool {
        let known = self.lock();
        known.suspects.contains_key(endpoint) && !known.answered.contains(endpoint)
    }

    /// One message of an endpoint is tried alone at a time.
    pub(crate) fn trial(&self, endpoint: &str) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.lock().trials.entry(endpoint.to_owned()).or_default())
    }

    pub(crate) fn into_known(self) -> Known {
        self.known.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
