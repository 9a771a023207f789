use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::ownership::{NodeId, Renewal};
use pillarbox_core::planted_bug;
use pillarbox_core::store::Store;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::{Backoff, jittered};
use crate::observe::{Loops, ReadFigures};
use crate::tenure::HistoryGuard;

/// A node's right to deliver, kept up by renewing it.
///
/// It counts from the moment *before* a renewal was sent, and stops a margin before the end: see "The safety inequality" in
/// `ownership/mod.rs`.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeId,
    pub(crate) length: Duration,
    pub(crate) random: Arc<dyn Random>,
    /// Counts the renewals that fail.
    pub(crate) failed: metrics::Counter,
    pub(crate) loops: Arc<Loops>,
    pub(crate) history_guard: Arc<HistoryGuard>,
    /// Cancelled when the lease can no longer be relied on.
    pub(crate) lost: CancellationToken,
    /// The node's figures, written with each renewal.
    pub(crate) figures: ReadFigures,
}

impl Lease {
    /// The time from which on a lease that was confirmed by a request sent at `sent` must no longer be relied on.
    fn deadline(&self, sent: Instant) -> Instant {
        let length = if planted_bug::is_active("lease_held_until_refused") { self.length * 9 } else { self.length };
        sent + length - length / 10
    }

    /// Renews every third of the lease, counted from `sent`, when the first one was asked for. Returns when the lease is
    /// lost; dropping it just stops renewing.
    pub(crate) async fn keep(&self, sent: Instant) {
        self.loops.lease.begin(sent);
        let mut deadline = self.deadline(sent);
        let mut next = sent + jittered(self.length / 3, &*self.random);
        let mut backoff = Backoff::default();
        loop {
            let wake = next.min(deadline);
            self.loops.lease.until(wake, tokio::time::sleep_until(wake)).await;
            let sent = Instant::now();
            // Asked here and not only by the timeout below: a renewal that fails at once never waits for it.
            if sent >= deadline {
                break;
            }
            let (mark, figures) = (self.history_guard.mark(), self.figures.read());
            let renewal = self.loops.lease.ask(self.store.renew(&self.node, self.length, mark, Some(&figures)));
            let renewal = tokio::time::timeout_at(deadline, renewal).await;
            // Asked whatever the answer is: the connection that it came by may have been the first to the other server.
            if !self.history_guard.check_history() {
                return;
            }
            match renewal {
                Ok(Ok(Renewal::Renewed { mark })) => {
                    self.history_guard.confirm(mark);
                    deadline = self.deadline(if planted_bug::is_active("lease_counted_from_the_answer") {
                        Instant::now() + self.length / 2
                    } else {
                        sent
                    });
                    next = sent + jittered(self.length / 3, &*self.random);
                    if backoff.end() {
                        tracing::info!(node = %self.node, "the lease is renewed again");
                    }
                }
                Ok(Ok(Renewal::Lost)) => break,
                Ok(Ok(Renewal::WentBack)) => return self.history_guard.went_back(),
                Ok(Err(error)) => {
                    self.failed.increment(1);
                    if backoff.is_first() {
                        tracing::warn!(%error, node = %self.node, "the lease could not be renewed; trying again");
                    }
                    next = Instant::now() + backoff.next(&*self.random).min(self.length / 10);
                }
                Err(_elapsed) => {
                    self.failed.increment(1);
                    break;
                }
            }
        }
        tracing::warn!(node = %self.node, "the lease is lost; this node stops delivering and joins anew");
        self.lost.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pillarbox_core::clock::SystemRandom;
    use pillarbox_core::event::Stamp;
    use pillarbox_core::ownership::{NodeMode, NodeName};
    use pillarbox_memory::MemoryStore;

    const LENGTH: Duration = Duration::from_secs(15);

    async fn lease() -> (MemoryStore, Lease) {
        let memory = MemoryStore::new();
        let node = NodeId::incarnate(&NodeName::of_host(), Stamp::system());
        memory.join(&node, NodeMode::SingleNode, LENGTH).await.expect("join");
        let (store, lost) = (Arc::new(memory.clone()), CancellationToken::new());
        let failed = metrics::Counter::noop();
        let joined = store.history();
        let history_guard = Arc::new(HistoryGuard::new(Arc::clone(&store) as _, node.clone(), joined, lost.clone()));
        let random = Arc::new(SystemRandom);
        let (loops, figures) = (Arc::default(), ReadFigures::default());
        (memory, Lease { store, node, length: LENGTH, random, failed, loops, history_guard, lost, figures })
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_whose_renewal_fails_at_once_is_given_up_before_it_ends() {
        let (store, lease) = lease().await;
        store.close().await;
        let sent = Instant::now();
        lease.keep(sent).await;
        assert!(lease.lost.is_cancelled());
        assert_eq!(sent.elapsed(), LENGTH - LENGTH / 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_another_node_evicted_is_lost_at_the_next_renewal() {
        let (store, lease) = lease().await;
        store.leave(&lease.node).await.expect("leave");
        let sent = Instant::now();
        lease.keep(sent).await;
        assert!(lease.lost.is_cancelled() && sent.elapsed() <= LENGTH / 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_lost_when_the_database_went_back() {
        for tells in [false, true] {
            let (store, lease) = lease().await;
            let earlier = store.inspect().snapshot();
            let went_back = async {
                let begun = lease.history_guard.mark();
                while lease.history_guard.mark() == begun {
                    tokio::time::sleep(LENGTH / 10).await;
                }
                if tells {
                    store.inspect().fail_over_to(&earlier);
                } else {
                    store.inspect().restore(&earlier);
                }
                Instant::now()
            };
            let ((), went_back) = tokio::join!(lease.keep(Instant::now()), went_back);
            assert!(lease.lost.is_cancelled() && went_back.elapsed() <= LENGTH / 2, "{tells}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_renewed_is_kept() {
        let (_store, lease) = lease().await;
        // The store's clock is the wall's, which does not move here: every renewal finds the lease alive.
        let kept = tokio::time::timeout(LENGTH * 10, lease.keep(Instant::now())).await;
        assert!(kept.is_err() && !lease.lost.is_cancelled());
    }
}
