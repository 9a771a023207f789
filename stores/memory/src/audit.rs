//! The actions of operators.

use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::{AuditEntry, AuditedAction};

/// The audit table.
#[derive(Debug, Clone, Default)]
pub(super) struct Audit {
    entries: BTreeMap<i64, AuditEntry>,
    last_id: i64,
}

impl Audit {
    pub(super) fn record(&mut self, action: &AuditedAction, began_at: Timestamp) -> i64 {
        self.last_id += 1;
        let [who, action, subject] = [action.who(), action.action(), action.subject()].map(str::to_owned);
        let entry = AuditEntry { id: self.last_id, began_at, who, action, subject, changed: None, outcome: None };
        self.entries.insert(self.last_id, entry);
        self.last_id
    }

    pub(super) fn end(&mut self, id: i64, changed: Option<u64>, outcome: &str) {
        if let Some(entry) = self.entries.get_mut(&id) {
            (entry.changed, entry.outcome) = (changed, Some(AuditedAction::outcome(outcome)));
        }
    }

    /// Entries below one, the newest first.
    pub(super) fn list(&self, below: Option<i64>, limit: usize) -> Vec<AuditEntry> {
        self.entries.range(..below.unwrap_or(i64::MAX)).rev().take(limit).map(|(_, entry)| entry.clone()).collect()
    }

    /// Deletes the oldest entries.
    pub(super) fn purge(&mut self, older_than: Duration, limit: usize, now: Timestamp) -> u64 {
        let oldest = self.entries.values().take(limit);
        let old: Vec<i64> =
            oldest.filter(|entry| now.since(entry.began_at) >= older_than).map(|entry| entry.id).collect();
        old.iter().for_each(|id| drop(self.entries.remove(id)));
        old.len() as u64
    }
}
