//! Messages over which connections end without an answer: by chance, or because of the message.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pillarbox_core::event::EventId;
use pillarbox_core::publisher::{FailureScope, PublishError};
use reqwest::{Error, Request, Response};
use tokio::time::{Instant, sleep, timeout_at};

use crate::WebhookPublisher;
use crate::error::Failure;

/// The pauses before the times that such a message is sent again. On a network that ends connections at random, a message that is not the
/// reason is answered at one of them.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(250)];

/// The targets that are remembered at most, and the messages of each. One that is forgotten has to be cut off twice more.
const MAX_TARGETS: usize = 1_000;
const MAX_MESSAGES: usize = 16;

/// The messages over which every connection of an earlier call has ended, by target; true once the target has taken another message since.
#[derive(Default)]
pub(crate) struct CutOffHistory {
    by_target: Mutex<HashMap<Arc<str>, HashMap<EventId, bool>>>,
}

// Targets may be secret.
impl fmt::Debug for CutOffHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CutOffHistory").finish_non_exhaustive()
    }
}

impl CutOffHistory {
    /// These targets have taken messages.
    pub(crate) fn note_taken(&self, targets: &HashSet<Arc<str>>) {
        let mut history = self.lock();
        let taken = history.iter_mut().filter(|(target, _)| targets.contains(*target));
        taken.flat_map(|(_, messages)| messages.values_mut()).for_each(|has_taken| *has_taken = true);
    }

    /// Every connection has ended over a message. True if that was so in an earlier call, and the target has taken others since: then the
    /// message is the reason.
    pub(crate) fn note_cut_off(&self, target: &Arc<str>, message: &EventId) -> bool {
        let mut history = self.lock();
        if history.len() >= MAX_TARGETS && !history.contains_key(target) {
            remove_one(&mut history, |_| true);
        }
        let messages = history.entry(Arc::clone(target)).or_default();
        if messages.len() >= MAX_MESSAGES && !messages.contains_key(message) {
            // Messages about which nothing was learnt yet go first.
            let all = messages.values().all(|has_taken| *has_taken);
            remove_one(messages, |has_taken| all || !has_taken);
        }
        messages.insert(message.clone(), false).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, HashMap<EventId, bool>>> {
        self.by_target.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove_one<K: Clone + Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>, may_go: impl Fn(&V) -> bool) {
    let one = map.iter().find(|(_, value)| may_go(value)).map(|(key, _)| key.clone());
    one.and_then(|key| map.remove(&key));
}

impl WebhookPublisher {
    /// Sends a message again whose connection has ended so, each time on a new connection, until one ends otherwise; `None` if one is not
    /// answered in time. True if each connection has ended so.
    pub(crate) async fn send_again(
        &self,
        deadline: Instant,
        mut last: Result<Response, Error>,
        request: impl Fn() -> Result<Request, PublishError>,
    ) -> Option<(Result<Response, Error>, bool)> {
        for pause in PAUSES {
            let (Ok(()), Ok(request)) = (timeout_at(deadline, sleep(pause)).await, request()) else {
                return Some((last, false));
            };
            last = timeout_at(deadline, self.on_new_connections.execute(request)).await.ok()?;
            if !is_cut_off(&last) {
                return Some((last, false));
            }
        }
        Some((last, true))
    }
}

pub(crate) fn is_cut_off(result: &Result<Response, Error>) -> bool {
    result.as_ref().is_err_and(|error| Failure::of(error) == Failure::CutOff)
}

/// The error of a message that is the reason why its connections end. The attempt counts.
pub(crate) fn over_message(cut_off: &PublishError) -> PublishError {
    PublishError::temporary(format!(
        "{cut_off}; so it did before, each of {} times, and it has taken other messages since: see why it, or what stands before it, \
         does not bear this one",
        PAUSES.len() + 1
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
    fn a_message_is_the_reason_the_second_time_if_its_target_has_taken_others_in_between() {
        let history = CutOffHistory::default();
        let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
        let taken = HashSet::from([Arc::clone(&a)]);
        assert_eq!([(); 2].map(|()| history.note_cut_off(&a, &id(1))), [false; 2]);
        history.note_taken(&taken);
        assert_eq!([&a, &b, &a].map(|target| history.note_cut_off(target, &id(1))), [true, false, false]);
        assert!(!history.note_cut_off(&a, &id(2)));
        history.note_taken(&taken);
        assert!(history.note_cut_off(&a, &id(1)) && history.note_cut_off(&a, &id(2)), "each by itself");
        assert!(!history.note_cut_off(&b, &id(1)), "it has taken none");
    }

    #[test]
    fn history_is_bounded_and_forgets_one_entry_at_a_time() {
        let history = CutOffHistory::default();
        let target = |number: usize| Arc::from(number.to_string());
        history.note_cut_off(&target(0), &id(0));
        history.note_taken(&HashSet::from([target(0)]));
        for number in 1..2 * MAX_MESSAGES {
            history.note_cut_off(&target(0), &id(number));
        }
        assert_eq!(history.lock()[&target(0)].len(), MAX_MESSAGES);
        assert!(history.note_cut_off(&target(0), &id(0)), "others went before it");
        for number in 0..2 * MAX_TARGETS {
            history.note_cut_off(&target(number), &id(1));
        }
        assert_eq!(history.lock().len(), MAX_TARGETS);
    }
}
