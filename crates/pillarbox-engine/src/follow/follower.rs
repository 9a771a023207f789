use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::store::Store;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Followed;
use super::followed::MAX_PER_STATEMENT;
use crate::backoff::Backoff;

/// The shortest time between two statements, unless one alone does not take all events that are due: those that are due at many moments
/// are asked for together.
const MIN_STATEMENT_INTERVAL: Duration = Duration::from_millis(5);

/// Asks the table for the events that somebody in this process waits for. While nobody waits, it asks nothing and sleeps.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) followed: Arc<Followed>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) stop: CancellationToken,
}

impl Follower {
    /// Runs until the outbox stops.
    pub(crate) async fn run(self) {
        self.stop.run_until_cancelled(self.poll()).await;
        self.followed.close();
    }

    async fn poll(&self) {
        let mut backoff = Backoff::default();
        let mut changes = self.store.history().changes;
        loop {
            let due = self.followed.due().await;
            let began = Instant::now();
            match self.store.states(&due.ids).await {
                Ok(rows) => {
                    if backoff.end() {
                        tracing::info!("the states of the events that are waited for can be read again");
                    }
                    let before = std::mem::replace(&mut changes, self.store.history().changes);
                    if before != changes {
                        self.followed.forget();
                    }
                    self.followed.tell(&due, rows);
                    // At most half of the time is spent on asking, however slow the database and however many wait.
                    let rest = if due.ids.len() < MAX_PER_STATEMENT { MIN_STATEMENT_INTERVAL } else { Duration::ZERO };
                    sleep(began.elapsed().max(rest)).await;
                }
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "the states of the events that are waited for cannot be read; trying again");
                    }
                    sleep(backoff.next(&*self.random)).await;
                }
            }
        }
    }
}
