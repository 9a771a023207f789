//! Messages over which a connection has ended without an answer: by chance, or because of the message.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pillarbox_core::event::EventId;
use pillarbox_core::publisher::{FailureScope, PublishError};
use reqwest::{Error, Request, Response};
use tokio::time::{Instant, sleep, timeout_at};

use crate::WebhookPublisher;
use crate::error::Failure;

/// The pauses before the times that such a message is sent alone. On a network that ends connections at random, an innocent one is
/// answered at one of them.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(250)];

/// The endpoints of which suspects are remembered at most, and the suspects of each. One that is forgotten becomes one again.
const MAX_ENDPOINTS: usize = 1_000;
const MAX_SUSPECTS: usize = 16;

/// Messages over which each connection has ended in an earlier call, by endpoint; true once the endpoint has answered others since.
#[derive(Default)]
pub(crate) struct Suspects {
    by_endpoint: Mutex<HashMap<String, HashMap<EventId, bool>>>,
}

// Paths may be secret.
impl fmt::Debug for Suspects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suspects").finish_non_exhaustive()
    }
}

impl Suspects {
    /// Each connection has ended over a message. True if it is to blame: so it was before, and the endpoint has answered others since.
    pub(crate) fn note(&self, endpoint: &str, message: &EventId) -> bool {
        let mut endpoints = self.lock();
        let has_room = endpoints.len() < MAX_ENDPOINTS || endpoints.contains_key(endpoint);
        if !has_room {
            endpoints.clear();
        }
        let suspects = endpoints.entry(endpoint.to_owned()).or_default();
        if suspects.len() >= MAX_SUSPECTS && !suspects.contains_key(message) {
            suspects.clear();
        }
        suspects.insert(message.clone(), false).unwrap_or_default()
    }

    /// These endpoints have answered messages.
    pub(crate) fn answered(&self, endpoints: &HashSet<String>) {
        let mut suspects = self.lock();
        let answered = suspects.iter_mut().filter(|(endpoint, _)| endpoints.contains(*endpoint));
        answered.flat_map(|(_, suspects)| suspects.values_mut()).for_each(|has_answered| *has_answered = true);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<EventId, bool>>> {
        self.by_endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebhookPublisher {
    /// Sends a message again, each time on a connection of its own, until one ends otherwise; `None` if the time is up before.
    pub(crate) async fn send_alone(
        &self,
        deadline: Instant,
        request: impl Fn() -> Result<Request, PublishError>,
    ) -> Option<Result<Response, Error>> {
        let mut last = None;
        for pause in PAUSES {
            let sent = async {
                sleep(pause).await;
                Some(self.alone.execute(request().ok()?).await)
            };
            let result = timeout_at(deadline, sent).await.ok()??;
            if !result.as_ref().is_err_and(|error| Failure::of(error) == Failure::CutOff) {
                return Some(result);
            }
            last = Some(result);
        }
        last
    }
}

/// The error of a message to blame. The attempt counts.
pub(crate) fn blamed(cut_off: &PublishError) -> PublishError {
    PublishError::temporary(format!(
        "{cut_off}; so it did at each of {} more times, and answers other messages: see why it, or what stands before it, does not bear \
         this one",
        PAUSES.len()
    ))
    .limited_to(FailureScope::Target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> EventId {
        EventId::new(number.to_string()).expect("an id")
    }

    #[test]
    fn a_message_is_to_blame_the_second_time_if_its_endpoint_has_answered_in_between() {
        let (suspects, answered) = (Suspects::default(), HashSet::from(["a".to_owned()]));
        assert_eq!([(); 2].map(|()| suspects.note("a", &id(1))), [false; 2]);
        suspects.answered(&answered);
        assert_eq!(["a", "b", "a"].map(|endpoint| suspects.note(endpoint, &id(1))), [true, false, false]);
        assert!(!suspects.note("a", &id(2)));
        suspects.answered(&answered);
        assert!(suspects.note("a", &id(1)) && suspects.note("a", &id(2)), "each by itself");
        assert!(!suspects.note("b", &id(1)), "it has not answered");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let suspects = Suspects::default();
        for number in 0..2 * MAX_SUSPECTS {
            suspects.note("a", &id(number));
        }
        assert!(suspects.lock()["a"].len() <= MAX_SUSPECTS);
        for number in 0..2 * MAX_ENDPOINTS {
            suspects.note(&number.to_string(), &id(1));
        }
        assert!(suspects.lock().len() <= MAX_ENDPOINTS);
    }
}
