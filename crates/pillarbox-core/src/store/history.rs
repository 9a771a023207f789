use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::Mutex;

/// The history of a database as far as a store's connections have seen it: the answer of
/// [`Store::history`](super::Store::history).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Grows whenever a connection reaches a server of another history than the connection before.
    pub changes: u64,
    /// Grows whenever a connection is lost, or a pooler in between leads to a server that has restarted: it may have older data.
    pub losses: u64,
    /// The server that was reached last, for people.
    pub server: Option<Arc<str>>,
}

/// The most by which the time between two answers may exceed what a server in whole seconds says of it.
const ROUNDED: Duration = Duration::from_secs(2);

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
    run: Option<Box<str>>,
    /// The time at which the server last stated its uptime.
    up: Option<(Instant, Duration)>,
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

    /// A server has answered that is in this run: the text is another one after each restart. For stores whose connections outlive a
    /// restart, behind a pooler.
    pub fn answered(&self, run: &str) {
        let mut state = self.state.lock();
        let before = state.run.as_deref();
        if before == Some(run) {
            return;
        }
        state.history.losses += u64::from(before.is_some());
        state.run = Some(run.into());
    }

    /// A server has answered that has been up for so long, by its own account in whole seconds. For stores that replace idle connections
    /// without a look at the old ones, whose end would tell of a restart.
    pub fn up_for(&self, uptime: Duration) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let restarted = state.up.is_some_and(|(at, before)| uptime + ROUNDED < before + (now - at));
        state.history.losses += u64::from(restarted);
        state.up = Some((now, uptime));
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
            tokio::time::advance(Duration::from_millis(1)).await;
            keeper.reached(server);
            assert_eq!((keeper.read().changes, keeper.read().server.as_deref()), (changes, Some(server)));
            assert_eq!(keeper.is_outdated(first), changes > 0);
        }
        assert!(!keeper.is_outdated(Instant::now()));
        keeper.lost();
        assert_eq!(keeper.read().losses, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_up_for_less_than_before_is_a_loss() {
        let keeper = HistoryKeeper::default();
        for (passed, uptime, losses) in
            [(0, 100, 0), (5000, 105, 0), (1400, 105, 0), (600, 107, 0), (9000, 3, 1), (1000, 4, 1)]
        {
            tokio::time::advance(Duration::from_millis(passed)).await;
            keeper.up_for(Duration::from_secs(uptime));
            assert_eq!(keeper.read().losses, losses, "{uptime} s");
        }
    }

    #[test]
    fn a_server_that_answers_in_another_run_is_a_loss_and_the_first_one_is_none() {
        let keeper = HistoryKeeper::default();
        for (run, losses) in [("1", 0), ("1", 0), ("2", 1), ("2", 1), ("1", 2)] {
            keeper.answered(run);
            assert_eq!(keeper.read().losses, losses, "{run}");
        }
    }
}
