//! The health of servers by their answers in earlier calls.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The number of silent endpoints from which on a server counts as silent: with one endpoint for each tenant, each of them would cost a call
/// its time.
const SILENT_ENDPOINTS: usize = 3;

/// The servers that are remembered at most. One that is forgotten is found out again.
const MAX_SERVERS: usize = 1_000;

/// The health of a server, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServerHealth {
    /// It has answered when it was last sent to.
    Answers,
    Unknown,
    /// An endpoint of it has been silent since it has last answered anything.
    Silent,
}

/// The servers that were asked last, with their endpoints that have not answered in time since the server has last answered anything.
#[derive(Default)]
pub(crate) struct Servers {
    silent_endpoints: Mutex<HashMap<String, HashSet<String>>>,
}

// Paths may be secret.
impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}

impl Servers {
    pub(crate) fn health(&self, server: &str) -> ServerHealth {
        match self.lock().get(server) {
            None => ServerHealth::Unknown,
            Some(silent) if silent.is_empty() => ServerHealth::Answers,
            Some(_) => ServerHealth::Silent,
        }
    }

    /// The server has answered.
    pub(crate) fn note_answer(&self, server: &str) {
        let mut servers = self.lock();
        match servers.get_mut(server) {
            Some(silent) => silent.clear(),
            None => entry(&mut servers, server).clear(),
        }
    }

    /// The server cannot be connected to, or has ended a connection: that it has answered before says nothing any more.
    pub(crate) fn forget_answers(&self, server: &str) {
        let mut servers = self.lock();
        if servers.get(server).is_some_and(HashSet::is_empty) {
            servers.remove(server);
        }
    }

    /// An endpoint of the server has not answered in time; nor has any other of the same call. True if so many have not that it is the
    /// server.
    pub(crate) fn note_silence(&self, server: &str, endpoint: &str) -> bool {
        let mut servers = self.lock();
        let silent = entry(&mut servers, server);
        if silent.len() < SILENT_ENDPOINTS {
            silent.insert(endpoint.to_owned());
        }
        silent.len() >= SILENT_ENDPOINTS
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, HashSet<String>>> {
        self.silent_endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The silent endpoints of a server, in the place of any other where there is none left.
fn entry<'a>(servers: &'a mut HashMap<String, HashSet<String>>, server: &str) -> &'a mut HashSet<String> {
    if servers.len() >= MAX_SERVERS
        && !servers.contains_key(server)
        && let Some(any) = servers.keys().next().cloned()
    {
        servers.remove(&any);
    }
    servers.entry(server.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_silent_if_three_endpoints_are_and_it_answers_nothing_in_between() {
        let servers = Servers::default();
        assert_eq!(["/1", "/1", "/2", "/2"].map(|endpoint| servers.note_silence("a", endpoint)), [false; 4]);
        assert!(!servers.note_silence("b", "/3"));
        assert!(servers.note_silence("a", "/3") && servers.note_silence("a", "/1"));
        servers.note_answer("a");
        assert!(!servers.note_silence("a", "/3"));
    }

    #[test]
    fn the_health_of_a_server_is_that_of_its_last_answer() {
        let servers = Servers::default();
        servers.note_answer("well");
        servers.note_silence("silent", "/");
        let all_health = || ["well", "other", "silent"].map(|server| servers.health(server));
        assert_eq!(all_health(), [ServerHealth::Answers, ServerHealth::Unknown, ServerHealth::Silent]);
        assert!(all_health().is_sorted());
        servers.note_answer("silent");
        servers.note_silence("well", "/");
        assert_eq!(all_health(), [ServerHealth::Silent, ServerHealth::Unknown, ServerHealth::Answers]);
        ["well", "silent"].iter().for_each(|server| servers.forget_answers(server));
        assert_eq!(all_health(), [ServerHealth::Silent, ServerHealth::Unknown, ServerHealth::Unknown]);
    }

    #[test]
    fn no_more_servers_are_remembered_than_the_bound() {
        let servers = Servers::default();
        for server in 0..2 * MAX_SERVERS {
            servers.note_silence(&server.to_string(), "/");
        }
        assert_eq!(servers.lock().len(), MAX_SERVERS);
        assert_eq!(servers.health(&(2 * MAX_SERVERS - 1).to_string()), ServerHealth::Silent);
    }
}
