use std::sync::Arc;

use pillarbox_core::clock::Random;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::hash::guarded::{HashMap, HashSet};
use pillarbox_core::lock;
use pillarbox_core::store::{BegunAttempt, RowId, Store};
use pillarbox_core::throttle::Throttle;

use crate::backoff::Backoff;
use crate::observe::{Counters, Telemetry};
use crate::queue::InFlight;
use crate::tenure::Tenure;

/// Announced rows to remember before those that are settled are forgotten.
const MAX_REMEMBERED: usize = 10_000;

/// Finds the event that kills its process.
///
/// Such an event never fails: its attempt begins and does not end, and the next node takes it up again. So after a node
/// died, each event it can have been delivering is announced in the table before it runs, and the next owner counts what
/// was announced and never ended. It costs one statement per event, for the first events after a crash only.
#[derive(Debug)]
pub(crate) struct CrashTracker {
    store: Arc<dyn Store>,
    in_flight: Arc<InFlight>,
    telemetry: Arc<Telemetry>,
    /// Rows announced in this term, settled ones among them until somebody asks.
    announced: lock::Mutex<HashMap<i64, RowId>>,
    complaints: Throttle,
}

impl CrashTracker {
    pub(crate) fn new(store: Arc<dyn Store>, in_flight: Arc<InFlight>, telemetry: Arc<Telemetry>) -> Self {
        Self { store, in_flight, telemetry, announced: lock::Mutex::default(), complaints: Throttle::default() }
    }

    /// The rows that say this node has begun them and that are not settled yet.
    pub(crate) fn under_way(&self) -> Vec<RowId> {
        let in_memory: HashSet<i64> = self.in_flight.rows().into_iter().map(|row| row.seq).collect();
        let mut announced = self.announced.lock();
        announced.retain(|seq, _| in_memory.contains(seq));
        announced.values().cloned().collect()
    }

    /// Takes announcements back: the attempts have ended, or are known not to have crashed, since this process lives.
    pub(crate) async fn withdraw(&self, tenure: &Tenure, rows: &[RowId]) {
        if rows.is_empty() {
            return;
        }
        if let Err(error) = self.store.release(&tenure.node, rows).await {
            tracing::warn!(%error, events = rows.len(), "attempts that were announced cannot be cleared; if this process dies they count as failed");
        }
    }

    /// Takes the announcement of an attempt back, if there was one.
    pub(super) async fn withdraw_if_announced(&self, tenure: &Tenure, seq: i64) {
        let announced = self.announced.lock().remove(&seq);
        if let Some(row) = announced {
            self.withdraw(tenure, &[row]).await;
        }
    }

    fn remember(&self, row: &RowId) {
        let full = {
            let mut announced = self.announced.lock();
            announced.insert(row.seq, row.clone());
            announced.len() > MAX_REMEMBERED
        };
        if full {
            self.under_way();
        }
    }

    /// Announces an attempt; false if the row is not this node's any more, or in another state.
    pub(super) async fn announce(&self, tenure: &Tenure, attempt: &BegunAttempt, random: &dyn Random) -> bool {
        self.remember(&attempt.row);
        let mut backoff = Backoff::default();
        // Ends with the term at the latest: abandoning the delivery abandons this.
        loop {
            match self.store.begin_attempt(&tenure.node, tenure.fence(), attempt).await {
                Ok(true) => return true,
                // A lost answer to an earlier try leaves the row with the attempts it was to get; if these are others than before, this one
                // is refused for that.
                Ok(false) if !backoff.is_first() && attempt.attempts != attempt.expected.attempts => return true,
                Ok(false) => {
                    Counters::add(&self.telemetry.counters.refused, 1);
                    return false;
                }
                Err(error) if error.kind() == StoreErrorKind::Unexpected => {
                    // Delivered without: to stop here would hold the event up for the sake of a rare diagnosis.
                    if let Some(events) = self.complaints.report(1) {
                        tracing::warn!(%error, events, "attempts cannot be announced; the events are delivered all the same");
                    }
                    return true;
                }
                Err(_unavailable) => tokio::time::sleep(backoff.next(random)).await,
            }
        }
    }
}
