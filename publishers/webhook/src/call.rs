//! The state that the requests of one call share.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pillarbox_core::event::EventId;
use pillarbox_core::publisher::PublishError;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The requests of a call that make room for others at most.
const MAX_SLOW: usize = 64;

pub(crate) struct Call {
    pub(crate) deadline: Instant,
    /// For requests that make room for others.
    pub(crate) slow: Semaphore,
    known: Mutex<Known>,
}

/// The knowledge of a call about the places that it sends to.
#[derive(Default)]
pub(crate) struct Known {
    /// Hosts that cannot be connected to, and endpoints that asked for a pause: to try them again for each message of the call
    /// would be a storm.
    closed: HashMap<String, PublishError>,
    /// Hosts that have answered.
    pub(crate) answered: HashSet<String>,
    /// Targets that have taken messages.
    pub(crate) taken: HashSet<Arc<str>>,
    /// The messages that had no answer in time, by host, with their endpoints.
    pub(crate) silent: HashMap<String, Vec<(usize, String)>>,
    /// The messages over which every connection has ended, with their places in the call and their targets.
    pub(crate) cut_off: Vec<(usize, Arc<str>, EventId)>,
    /// Hosts that have ended every connection over a message, and have taken none since.
    ending: HashSet<String>,
    /// By host, held while a message is sent again: the number of messages so far.
    sent_again: HashMap<String, Arc<tokio::sync::Mutex<usize>>>,
}

impl Call {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, slow: Semaphore::new(MAX_SLOW), known: Mutex::default() }
    }

    /// The error of all that is sent to a place, if that is known.
    pub(crate) fn closed(&self, place: &str) -> Option<PublishError> {
        self.lock().closed.get(place).cloned()
    }

    pub(crate) fn close(&self, place: String, error: &PublishError) {
        self.lock().closed.insert(place, error.clone());
    }

    pub(crate) fn answered(&self, host: &str) {
        let mut known = self.lock();
        if !known.answered.contains(host) {
            known.answered.insert(host.to_owned());
        }
    }

    pub(crate) fn taken(&self, host: &str, target: &Arc<str>) {
        let mut known = self.lock();
        known.ending.remove(host);
        if !known.taken.contains(target) {
            known.taken.insert(Arc::clone(target));
        }
    }

    pub(crate) fn silent(&self, host: String, index: usize, endpoint: String) {
        self.lock().silent.entry(host).or_default().push((index, endpoint));
    }

    pub(crate) fn cut_off(&self, host: &str, index: usize, target: Arc<str>, message: EventId) {
        let mut known = self.lock();
        known.ending.insert(host.to_owned());
        known.cut_off.push((index, target, message));
    }

    /// True if the host has ended every connection over a message, and has taken none since.
    pub(crate) fn is_ending(&self, host: &str) -> bool {
        self.lock().ending.contains(host)
    }

    /// One message to a host is sent again at a time; the number of those before.
    pub(crate) fn sent_again(&self, host: &str) -> Arc<tokio::sync::Mutex<usize>> {
        Arc::clone(self.lock().sent_again.entry(host.to_owned()).or_default())
    }

    pub(crate) fn into_known(self) -> Known {
        self.known.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
