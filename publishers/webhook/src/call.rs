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
    /// Servers that cannot be connected to, and endpoints that asked for a pause: to try them again for each message of the call
    /// would be a storm.
    closed: HashMap<String, PublishError>,
    /// Servers that have answered.
    pub(crate) answered: HashSet<String>,
    /// Targets that have taken messages.
    pub(crate) taken: HashSet<Arc<str>>,
    /// The messages that had no answer in time, by server, with their endpoints.
    pub(crate) silent: HashMap<String, Vec<(usize, String)>>,
    /// The messages over which every connection has ended, with their places in the call and their targets.
    pub(crate) cut_off: Vec<(usize, Arc<str>, EventId)>,
    /// Servers that have ended every connection over a message, and have taken none since.
    ending: HashSet<String>,
    /// By server, held while a message is sent again: the number of messages so far.
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

    pub(crate) fn answered(&self, server: &str) {
        let mut known = self.lock();
        if !known.answered.contains(server) {
            known.answered.insert(server.to_owned());
        }
    }

    pub(crate) fn taken(&self, server: &str, target: &Arc<str>) {
        let mut known = self.lock();
        known.ending.remove(server);
        if !known.taken.contains(target) {
            known.taken.insert(Arc::clone(target));
        }
    }

    pub(crate) fn silent(&self, server: String, index: usize, endpoint: String) {
        self.lock().silent.entry(server).or_default().push((index, endpoint));
    }

    pub(crate) fn cut_off(&self, server: &str, index: usize, target: Arc<str>, message: EventId) {
        let mut known = self.lock();
        known.ending.insert(server.to_owned());
        known.cut_off.push((index, target, message));
    }

    /// True if the server has ended every connection over a message, and has taken none since.
    pub(crate) fn is_ending(&self, server: &str) -> bool {
        self.lock().ending.contains(server)
    }

    /// One message to a server is sent again at a time; the number of those before.
    pub(crate) fn sent_again(&self, server: &str) -> Arc<tokio::sync::Mutex<usize>> {
        Arc::clone(self.lock().sent_again.entry(server.to_owned()).or_default())
    }

    pub(crate) fn into_known(self) -> Known {
        self.known.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
