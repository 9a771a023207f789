//! Queries and commands of operators.

mod blocked;
mod dead;
mod filter;
pub(crate) mod overview;
mod partitions;
mod pause;
mod pending;
mod purge;
pub(crate) mod recent;
mod record;

use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::event::EventId;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::operation;
use pillarbox_core::store::{
    Admin, AuditEntry, AuditedAction, Backlog, Blocked, Counts, DeadEvent, DeadFilter, EventFilter, EventPage,
    InboxConsumer, NewPause, NodeStatus, PartitionBacklog, Pause, PauseChange, PauseKind, PendingEvent, PendingFilter,
    Purge, Purged, Record, RowState,
};

use crate::{MysqlStore, audit, inbox};

pub(crate) use pause::{IgnoredPauses, interventions};

#[async_trait]
impl Admin for MysqlStore {
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.inner().sessions.call(operation::COUNTS, || overview::counts(self.inner())).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.inner().sessions.call(operation::BACKLOG, || overview::backlog(self.inner())).await
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.inner().sessions.call(operation::NODES, || overview::nodes(self.inner())).await
    }

    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        self.inner().sessions.call(operation::PARTITIONS, || partitions::partitions(self.inner())).await
    }

    async fn partition_owners(&self) -> Result<Vec<(u8, NodeId)>, StoreError> {
        self.inner().sessions.call(operation::PARTITION_OWNERS, || partitions::owners(self.inner())).await
    }

    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        self.inner().sessions.call(operation::BLOCKED, || blocked::list(self.inner(), above, limit)).await
    }

    async fn head_of(&self, seq: i64) -> Result<Option<i64>, StoreError> {
        self.inner().sessions.call(operation::HEAD_OF, || blocked::head_of(self.inner(), seq)).await
    }

    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.inner().sessions.call(operation::RECORDS, || record::records(self.inner(), event_id)).await
    }

    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError> {
        self.inner().sessions.call(operation::RECORDS, || record::by_seq(self.inner(), seq)).await
    }

    async fn states(&self, event_ids: &[EventId]) -> Result<Vec<RowState>, StoreError> {
        self.inner().sessions.call(operation::STATES, || record::states(self.inner(), event_ids)).await
    }

    async fn recent(&self, filter: &EventFilter, below: Option<i64>, limit: usize) -> Result<EventPage, StoreError> {
        self.inner().sessions.call(operation::RECENT, || recent::page(self.inner(), filter, below, limit)).await
    }

    async fn pending(&self, filter: &PendingFilter, above: i64, limit: usize) -> Result<Vec<PendingEvent>, StoreError> {
        self.inner().sessions.call(operation::PENDING, || pending::list(self.inner(), filter, above, limit)).await
    }

    async fn count_pending(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        self.inner().sessions.call(operation::COUNT_PENDING, || pending::count(self.inner(), filter)).await
    }

    async fn retry_now(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.inner().sessions.call(operation::RETRY_NOW, || pending::retry_now(self.inner(), seqs)).await
    }

    async fn cancel(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.inner().sessions.call(operation::CANCEL, || pending::cancel(self.inner(), seqs)).await
    }

    async fn pause(&self, pause: &NewPause) -> Result<PauseChange, StoreError> {
        self.inner().sessions.call(operation::PAUSE, || pause::pause(self.inner(), pause)).await
    }

    async fn resume(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError> {
        self.inner().sessions.call(operation::RESUME, || pause::resume(self.inner(), kind, name)).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        self.inner().sessions.call(operation::PAUSES, || pause::list(self.inner())).await
    }

    async fn count_paused(&self) -> Result<u64, StoreError> {
        self.inner().sessions.call(operation::COUNT_PAUSED, || pause::count(self.inner())).await
    }

    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        self.inner().sessions.call(operation::DEAD, || dead::list(self.inner(), filter, above, limit)).await
    }

    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.inner().sessions.call(operation::COUNT_DEAD, || dead::count(self.inner(), filter)).await
    }

    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.inner().sessions.call(operation::REPLAY, || dead::replay(self.inner(), seqs)).await
    }

    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.inner().sessions.call(operation::DISCARD, || dead::discard(self.inner(), seqs)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.inner().sessions.call(operation::PURGE, || purge::purge(self.inner(), purge)).await
    }

    async fn inbox_consumers(&self, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, StoreError> {
        self.inner().sessions.call(operation::INBOX_CONSUMERS, || inbox::consumers(self.inner(), after, limit)).await
    }

    async fn count_inbox(&self, consumer: &str) -> Result<u64, StoreError> {
        self.inner().sessions.call(operation::COUNT_INBOX, || inbox::count(self.inner(), consumer)).await
    }

    async fn purge_inbox(&self, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let purge = || inbox::purge(self.inner(), consumer, older_than, limit);
        self.inner().sessions.call(operation::PURGE_INBOX, purge).await
    }

    async fn record_action(&self, action: &AuditedAction) -> Result<i64, StoreError> {
        self.inner().sessions.call(operation::RECORD_ACTION, || audit::record(self.inner(), action)).await
    }

    async fn end_action(&self, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), StoreError> {
        self.inner().sessions.call(operation::END_ACTION, || audit::end(self.inner(), id, changed, outcome)).await
    }

    async fn actions(&self, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.inner().sessions.call(operation::ACTIONS, || audit::list(self.inner(), below, limit)).await
    }

    async fn purge_actions(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.inner().sessions.call(operation::PURGE_ACTIONS, || audit::purge(self.inner(), older_than, limit)).await
    }
}
