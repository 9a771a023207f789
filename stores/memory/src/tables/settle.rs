//! The right of a node to change a row, and the changes that verdicts make.

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::{CRASHED, DIED, Fence, NodeId, Partitions, Reclaimed, begun_by};
use pillarbox_core::planted_bug;
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{BegunAttempt, LeaseClock, RowId};

use super::{State, is_held_by};

impl State {
    /// Records the verdicts that apply and returns the others.
    pub(crate) fn settle(&mut self, node: &NodeId, fence: Fence, verdicts: &[Verdict], now: Timestamp) -> Vec<i64> {
        let refused = verdicts
            .iter()
            .filter(|verdict| !(self.may_settle(node, fence, verdict) && self.record(node, verdict, now)));
        refused.map(|verdict| verdict.row.seq).collect()
    }

    /// True if a verdict of `node` would be recorded.
    pub(crate) fn would_settle(&self, node: &NodeId, fence: Fence, verdict: &Verdict) -> bool {
        self.may_settle(node, fence, verdict) && self.applies(verdict)
    }

    fn may_settle(&self, node: &NodeId, fence: Fence, verdict: &Verdict) -> bool {
        self.is_mine(node, self.nodes.owners.of(node), fence, verdict.row.seq)
            || planted_bug::is_active("settle_without_fence")
    }

    /// True if a row is that of `node`, which owns the partitions `owned`.
    fn is_mine(&self, node: &NodeId, owned: Partitions, fence: Fence, seq: i64) -> bool {
        match fence {
            Fence::Table => owned == Partitions::ALL,
            Fence::Partition => {
                let partition = self.rows.get(&seq).and_then(|row| row.partition);
                partition.is_some_and(|partition| owned.contains(partition))
            }
            Fence::Row => {
                let holder = self.rows.get(&seq).and_then(|row| row.locked_by.as_deref());
                self.nodes.members.contains_key(node) && holder.is_some_and(|holder| is_held_by(holder, node))
            }
        }
    }

    pub(crate) fn begin_attempt(
        &mut self,
        node: &NodeId,
        fence: Fence,
        attempt: &BegunAttempt,
        now: Timestamp,
    ) -> bool {
        let mine = self.is_mine(node, self.nodes.owners.of(node), fence, attempt.row.seq);
        let Some(row) = self.rows.get_mut(&attempt.row.seq).filter(|row| {
            mine && row.is(&attempt.row) && row.status.is_pending() && row.expected() == attempt.expected
        }) else {
            return false;
        };
        row.locked_by = Some(begun_by(node).into());
        row.attempts = attempt.attempts;
        if let Some(error) = &attempt.error {
            row.last_error = Some(error.clone());
            row.failed(attempt.attempts, error, node, now);
        }
        true
    }

    /// Frees rows that `node` holds.
    pub(crate) fn release_held(&mut self, node: &NodeId, rows: &[RowId]) {
        for id in rows {
            if let Some(row) = self.rows.get_mut(&id.seq).filter(|row| row.is(id) && row.status.is_pending()) {
                row.locked_by.take_if(|holder| is_held_by(holder, node));
            }
        }
    }

    pub(crate) fn reclaim(&mut self, node: &NodeId, thorough: bool, now: Timestamp, clock: &LeaseClock) -> Reclaimed {
        let judged = self.nodes.evict_expired(now, clock);
        let members = &self.nodes.members;
        let mut freed = 0;
        if thorough || !judged.ended.is_empty() {
            for row in self.rows.values_mut().filter(|row| row.status.is_pending()) {
                let Some(holder) = row.locked_by.as_deref().filter(|holder| ![DIED, CRASHED].contains(holder)) else {
                    continue;
                };
                let (name, mark) = holder.strip_suffix(CRASHED).map_or((holder, DIED), |name| (name, CRASHED));
                if !members.contains_key(&NodeId::from_stored(name)) {
                    row.locked_by = Some(mark.into());
                    freed += 1;
                }
            }
        }
        let next_expiry = self.nodes.next_expiry(node, now, &judged);
        Reclaimed { registered: members.contains_key(node), freed, next_expiry }
    }

    fn record(&mut self, node: &NodeId, verdict: &Verdict, now: Timestamp) -> bool {
        if !self.applies(verdict) {
            return false;
        }
        let (seq, next) = (verdict.row.seq, verdict.change.status());
        if verdict.change == Change::Remove {
            self.remove(seq);
            return true;
        }
        self.change(seq, |row| {
            row.status = next;
            if !matches!(verdict.change, Change::RetryInPlace { .. }) {
                row.locked_by = None;
            }
            if let Some((attempts, error)) = verdict.failure() {
                row.failed(attempts, error, node, now);
            }
            match &verdict.change {
                Change::Done | Change::Remove => {
                    row.last_error = None;
                    row.done_at = Some(now);
                }
                Change::DeliveredAs(position) => {
                    row.last_error = None;
                    row.done_at = Some(now);
                    row.delivered_as = Some(position.to_string());
                }
                Change::Retry { attempts, delay, error } => {
                    row.attempts =
                        if planted_bug::is_active("retry_keeps_the_attempts") { row.attempts } else { *attempts };
                    row.available_at = Some(now.plus(*delay));
                    if error.is_some() {
                        row.last_error.clone_from(error);
                    }
                }
                Change::RetryInPlace { attempts, error } => {
                    row.attempts = *attempts;
                    row.last_error = Some(error.clone());
                    // It keeps its place, which is that of its number.
                    row.available_at = None;
                }
                Change::Rescued { attempts, error } | Change::Dead { attempts, error } => {
                    row.attempts = *attempts;
                    row.last_error = Some(error.clone());
                    row.done_at = Some(now);
                }
            }
        });
        true
    }

    /// True if the row of a verdict is in the state that it was decided on.
    fn applies(&self, verdict: &Verdict) -> bool {
        let Some(row) = self.rows.get(&verdict.row.seq) else { return false };
        let same = row.is(&verdict.row) || planted_bug::is_active("settle_by_number_only");
        let expected = if planted_bug::is_active("settle_forgets_replays") {
            Expected { replays: row.replays, ..verdict.expected }
        } else {
            verdict.expected
        };
        let next = verdict.change.status();
        same && row.status.is_pending() && row.status.can_become(next) && row.expected() == expected
    }
}
