//! Servers that do not answer, whatever they are asked.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

/// The endpoints of a server that have to be silent until the server is believed to be: with one endpoint for each tenant, each of them
/// would cost a call its time.
const SILENT_ENDPOINTS: usize = 3;

/// The servers that are remembered at most. One that is forgotten is found out again.
const MAX_SERVERS: usize = 1_000;

/// The endpoints, by server, that have not answered in time since their server has last answered anything.
#[derive(Debug, Default)]
pub(crate) struct Silences {
    endpoints: Mutex<HashMap<String, HashSet<String>>>,
}

impl Silences {
    /// The server has answered.
    pub(crate) fn end(&self, server: &str) {
        self.lock().remove(server);
    }

    /// An endpoint of the server has not answered in time; nor has any other of the same call. True if so many have not that it is the
    /// server.
    pub(crate) fn note(&self, server: &str, endpoint: &str) -> bool {
        let mut servers = self.lock();
        if servers.len() >= MAX_SERVERS
            && !servers.contains_key(server)
            && let Some(any) = servers.keys().next().cloned()
        {
            servers.remove(&any);
        }
        let endpoints = servers.entry(server.to_owned()).or_default();
        if endpoints.len() < SILENT_ENDPOINTS {
            endpoints.insert(endpoint.to_owned());
        }
        endpoints.len() >= SILENT_ENDPOINTS
    }

    /// True if an endpoint of the server was silent when it was last asked.
    pub(crate) fn contain(&self, server: &str) -> bool {
        self.lock().contains_key(server)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, HashSet<String>>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_silent_if_three_endpoints_are_and_it_answers_nothing_in_between() {
        let silences = Silences::default();
        assert_eq!(["/1", "/1", "/2", "/2"].map(|endpoint| silences.note("a", endpoint)), [false; 4]);
        assert!(!silences.note("b", "/3"));
        assert!(silences.note("a", "/3") && silences.note("a", "/1"));
        silences.end("a");
        assert!(!silences.note("a", "/3") && silences.contain("b"));
    }

    #[test]
    fn no_more_servers_are_remembered_than_the_bound() {
        let silences = Silences::default();
        for server in 0..2 * MAX_SERVERS {
            silences.note(&server.to_string(), "/");
        }
        assert_eq!(silences.lock().len(), MAX_SERVERS);
        assert!(silences.contain(&(2 * MAX_SERVERS - 1).to_string()));
    }
}
