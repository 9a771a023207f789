use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pillarbox_core::ownership::{LeaseMark, NodeId};
use pillarbox_core::planted_bug;
use pillarbox_core::store::{History, Store};
use tokio_util::sync::CancellationToken;

/// No renewal has been confirmed yet.
const NONE: i64 = i64::MIN;

/// Watches that the database is still the one that a node has joined.
///
/// A database goes back when it fails over to a replica that lags, or is restored from a backup: rows are lost, and their numbers
/// are given again. Nothing that the node remembers of it holds then: neither the rows in memory, nor what was read already. So
/// the node's lease is lost, and it joins anew, with nothing.
#[derive(Debug)]
pub(crate) struct HistoryGuard {
    store: Arc<dyn Store>,
    node: NodeId,
    joined: History,
    /// The mark that the last confirmed renewal left in the node's row.
    mark: AtomicI64,
    lost: CancellationToken,
}

impl HistoryGuard {
    /// The node has joined a database of this history. `lost` is cancelled when the database turns out to be another.
    pub(crate) fn new(store: Arc<dyn Store>, node: NodeId, joined: History, lost: CancellationToken) -> Self {
        Self { store, node, joined, mark: AtomicI64::new(NONE), lost }
    }

    /// The mark that the node's row holds, or a later one.
    pub(crate) fn mark(&self) -> Option<LeaseMark> {
        Some(self.mark.load(Ordering::Acquire)).filter(|mark| *mark != NONE).map(LeaseMark)
    }

    /// A renewal has left this mark.
    pub(crate) fn confirm(&self, mark: LeaseMark) {
        self.mark.store(mark.0, Ordering::Release);
    }

    /// Checks that all connections have seen one history since the node joined; true if so. Otherwise it says so in the log and ends the
    /// lease.
    pub(crate) fn check_history(&self) -> bool {
        let now = self.store.history();
        if now.changes == self.joined.changes || planted_bug::is_active("failover_goes_unnoticed") {
            return true;
        }
        if !self.lost.is_cancelled() {
            let name = |history: &History| history.server.as_deref().unwrap_or("unknown").to_owned();
            tracing::warn!(
                node = %self.node,
                before = name(&self.joined),
                after = name(&now),
                "the database's history changed: it failed over or was restored; this node forgets what it holds and joins anew"
            );
        }
        self.lost.cancel();
        false
    }

    /// True if the right to deliver is known to have ended.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Checks the mark that was `found` in the node's row, read after `before` was confirmed: it has to be that mark or a later one. Otherwise
    /// the lease is lost. True if it is not lost.
    pub(crate) fn check_mark(&self, before: Option<LeaseMark>, found: Option<LeaseMark>) -> bool {
        match (before, found) {
            (Some(before), Some(found)) if found < before => self.went_back(),
            (Some(_), None) => {
                // Evicted, or from before it joined: the lease is lost either way.
                self.lost.cancel();
                return false;
            }
            // The first mark of this row that is known.
            (None, Some(found)) => {
                let _ = self.mark.compare_exchange(NONE, found.0, Ordering::AcqRel, Ordering::Acquire);
            }
            (Some(_) | None, _) => {}
        }
        !self.lost.is_cancelled()
    }

    /// The database holds an older state than the node has seen: of the node's row, or other events in the places of those that it
    /// delivered.
    pub(crate) fn went_back(&self) {
        if !self.lost.is_cancelled() {
            tracing::warn!(
                node = %self.node,
                server = self.joined.server.as_deref().unwrap_or("unknown"),
                "the database's history changed: it holds an older state than this node has seen, so it was restored or failed over; this node forgets what it holds and joins anew"
            );
        }
        self.lost.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pillarbox_memory::MemoryStore;

    fn history_guard(store: &MemoryStore) -> HistoryGuard {
        let node = NodeId::from_stored("node-1");
        HistoryGuard::new(Arc::new(store.clone()), node, store.history(), CancellationToken::new())
    }

    #[test]
    fn a_row_in_an_older_state_loses_the_lease() {
        let mark = |n: i64| Some(LeaseMark(n));
        let table = [
            (None, None, true),
            (None, mark(7), true),
            (mark(7), mark(7), true),
            (mark(7), mark(8), true),
            (mark(7), mark(6), false),
            (mark(7), None, false),
        ];
        for (before, found, follows) in table {
            let history_guard = history_guard(&MemoryStore::new());
            assert_eq!(history_guard.check_mark(before, found), follows, "{before:?}, {found:?}");
            assert_eq!(history_guard.lost.is_cancelled(), !follows, "{before:?}, {found:?}");
        }
    }

    #[test]
    fn lease_mark_found_first_holds_until_a_renewal_is_confirmed() {
        let history_guard = history_guard(&MemoryStore::new());
        assert!(history_guard.check_mark(None, Some(LeaseMark(5))));
        assert_eq!(history_guard.mark(), Some(LeaseMark(5)));
        history_guard.confirm(LeaseMark(3));
        assert_eq!(history_guard.mark(), Some(LeaseMark(3)), "a clock was set back");
    }

    #[test]
    fn another_history_loses_the_lease() {
        let store = MemoryStore::new();
        let history_guard = history_guard(&store);
        assert!(history_guard.check_history());
        let earlier = store.inspect().snapshot();
        store.inspect().fail_over_to(&earlier);
        assert!(!history_guard.check_history() && history_guard.lost.is_cancelled());
    }
}
