//! Requests whose connection ended without an answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pillarbox_core::event::EventId;

/// The hosts, and the messages of each, that are remembered at most. What is forgotten is found out again.
const MAX_REMEMBERED: usize = 1_000;

/// The messages, by host, whose connection has ended without an answer. A proxy or a filter may do that over one message: it would be tried
/// for ever, and hold up its route each time, if no attempt counted.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    hosts: Mutex<HashMap<String, Host>>,
}

#[derive(Debug, Default)]
struct Host {
    /// The number of its answers.
    answers: u64,
    /// That number when the message's connection ended.
    cut: HashMap<EventId, u64>,
}

impl Cuts {
    /// The host has answered a message.
    pub(crate) fn answered(&self, host: &str) {
        if let Some(host) = self.lock().get_mut(host) {
            host.answers += 1;
        }
    }

    /// The connection of a message has ended. True for the second time, if the host has answered others in between: then it is not the host.
    pub(crate) fn again(&self, host: &str, id: &EventId) -> bool {
        let mut hosts = self.lock();
        if hosts.len() >= MAX_REMEMBERED && !hosts.contains_key(host) {
            hosts.clear();
        }
        let Host { answers, cut } = hosts.entry(host.to_owned()).or_default();
        if cut.get(id).is_some_and(|then| *answers > *then) {
            cut.remove(id);
            return true;
        }
        if cut.len() >= MAX_REMEMBERED && !cut.contains_key(id) {
            cut.clear();
        }
        cut.entry(id.clone()).or_insert(*answers);
        false
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> EventId {
        EventId::new(number.to_string()).expect("an id")
    }

    #[test]
    fn a_message_is_to_blame_if_the_host_has_answered_others_in_between() {
        let cuts = Cuts::default();
        cuts.answered("h");
        assert_eq!([1, 1, 2].map(|number| cuts.again("h", &id(number))), [false; 3], "the host answers nobody");
        cuts.answered("other");
        assert!(!cuts.again("h", &id(1)));
        cuts.answered("h");
        assert_eq!([1, 2, 3, 1].map(|number| cuts.again("h", &id(number))), [true, true, false, false]);
    }

    #[test]
    fn no_more_is_remembered_than_the_bound() {
        let cuts = Cuts::default();
        for number in 0..2 * MAX_REMEMBERED {
            cuts.again("h", &id(number));
            cuts.again(&number.to_string(), &id(0));
        }
        let hosts = cuts.lock();
        assert!(hosts.len() <= MAX_REMEMBERED && hosts.values().all(|host| host.cut.len() <= MAX_REMEMBERED));
    }
}
