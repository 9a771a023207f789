use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::hash::guarded::HashSet;
use pillarbox_core::ownership::{NodeId, Reclaimed};
use pillarbox_core::store::Store;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::work::Work;
use crate::backoff::{Backoff, jittered};
use crate::observe::Telemetry;
use crate::poll_schedule::PollSchedule;

/// The time between two searches for rows of nodes long gone: a transaction may commit rows for a node that has left meanwhile.
const THOROUGH_INTERVAL: Duration = Duration::from_secs(10);
/// A thorough search takes at most this share of the time, however many rows are pending.
const THOROUGH_SHARE: u32 = 50;
/// Shortest interval between two searches, should a node die that nobody can evict.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The time between two polls for nodes that have left, while there is work: the rows that they released are to be had at once.
const NODES_POLL_INTERVAL: Duration = Duration::from_millis(900);

/// Evicts the nodes that die beside this one, as soon as their lease has ended, and frees what they held.
#[derive(Debug)]
pub(crate) struct Reaper {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeId,
    pub(crate) lease: Duration,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) poll_schedule: Arc<PollSchedule>,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Cancelled when this node turns out to have been evicted itself.
    pub(crate) lost: CancellationToken,
}

impl Reaper {
    /// Runs until this node turns out to have been evicted itself.
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::default();
        let mut neighbours = Neighbours::default();
        // A term begins with a thorough search: rows may be left of nodes that died while no other was running.
        let mut thorough_at = Instant::now();
        loop {
            let began = Instant::now();
            let thorough = began >= thorough_at;
            let until = match self.store.reclaim(&self.node, thorough).await {
                Ok(found) => {
                    backoff.end();
                    if !found.registered {
                        self.lost.cancel();
                        return;
                    }
                    if thorough {
                        let busy = began.elapsed() * THOROUGH_SHARE;
                        thorough_at = Instant::now() + jittered(THOROUGH_INTERVAL.max(busy), &*self.random);
                    }
                    self.tell(&found);
                    let expiry = found.next_expiry.unwrap_or(self.lease).min(self.lease).max(MIN_INTERVAL);
                    (Instant::now() + expiry).min(thorough_at)
                }
                Err(error) => {
                    if backoff.is_first() {
                        tracing::warn!(%error, "rows of dead nodes cannot be reclaimed; trying again");
                    }
                    Instant::now() + backoff.next(&*self.random)
                }
            };
            if neighbours.one_left(&self, until).await {
                // Rows may still name it: a claim or a commit that ended after it released the rest.
                thorough_at = Instant::now();
            }
        }
    }

    fn tell(&self, found: &Reclaimed) {
        if found.freed > 0 {
            tracing::info!(events = found.freed, node = %self.node, "reclaimed the rows of a dead node");
            self.poll_schedule.wake_for_any();
        }
    }
}

/// The other nodes, as far as it matters that one of them leaves.
#[derive(Debug, Default)]
struct Neighbours {
    known: HashSet<NodeId>,
    work: Work,
}

impl Neighbours {
    /// Waits `until` then, or while there is work until a neighbour is gone. What that one held and did not deliver is
    /// free, maybe below where the next poll would begin, so the cold path is woken.
    async fn one_left(&mut self, reaper: &Reaper, until: Instant) -> bool {
        loop {
            let tick = Instant::now() + jittered(NODES_POLL_INTERVAL, &*reaper.random);
            tokio::time::sleep_until(tick.min(until)).await;
            if tick >= until {
                return false;
            }
            let counters = reaper.telemetry.counters.snapshot();
            // A failure shows elsewhere; this only notices sooner than the interval would.
            if self.work.note_events(counters.hot + counters.cold)
                && let Ok(nodes) = reaper.store.nodes().await
            {
                let now: HashSet<NodeId> = nodes.into_iter().map(|status| status.node).collect();
                let left = !self.known.is_subset(&now);
                self.known = now;
                if left {
                    reaper.poll_schedule.wake_for_any();
                    return true;
                }
            }
        }
    }
}
