use std::sync::Arc;

use tokio::time::Instant;

use crate::lock::Mutex;

/// The history of a database as far as a store's connections have seen it: the answer of
/// [`Store::history`](super::Store::history).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Grows whenever a connection reaches a server of another history than the connection before.
    pub changes: u64,
    /// Grows whenever a connection is lost: its server may have restarted, with older data.
    pub losses: u64,
    /// The server that was reached last, for people.
    pub server: Option<Arc<str>>,
}

/// Keeps the history that the connections of a store see.
///
/// A store says which server each new connection has reached before the connection is used. So an answer of a server of another
/// history comes only after the change is known.
#[derive(Debug, Default)]
pub struct HistoryKeeper {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    history: History,
    changed: Option<Instant>,
}

impl HistoryKeeper {
    /// A new connection has reached this server. The text is the same for the same history and no other.
    pub fn reached(&self, server: &str) {
        let mut state = self.state.lock();
        match &state.history.server {
            Some(before) if **before == *server => return,
            Some(_) => {
                state.history.changes += 1;
                state.changed = Some(Instant::now());
            }
            None => {}
        }
        state.history.server = Some(server.into());
    }

    /// A connection was lost, or given up in the middle of a call.
    pub fn lost(&self) {
        self.state.lock().history.losses += 1;
    }

    /// True if a connection that was made at `created` may have reached a server that was left since.
    #[must_use]
    pub fn is_outdated(&self, created: Instant) -> bool {
        self.state.lock().changed.is_some_and(|changed| created < changed)
    }

    /// The history until now.
    #[must_use]
    pub fn read(&self) -> History {
        self.state.lock().history.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_to_another_server_is_a_change_and_the_first_one_is_none() {
        let keeper = HistoryKeeper::default();
        let first = Instant::now();
        for (server, changes) in [("a", 0), ("a", 0), ("b", 1), ("b", 1), ("a", 2)] {
            tokio::time::advance(std::time::Duration::from_millis(1)).await;
            keeper.reached(server);
            assert_eq!((keeper.read().changes, keeper.read().server.as_deref()), (changes, Some(server)));
            assert_eq!(keeper.is_outdated(first), changes > 0);
        }
        assert!(!keeper.is_outdated(Instant::now()));
        keeper.lost();
        assert_eq!(keeper.read().losses, 1);
    }
}
