//! Queries and commands of operators. A query takes a connection that reads, a command the writer, like everything else.

mod blocked;
mod dead;
mod filter;
pub(crate) mod overview;
mod partitions;
mod pause;
mod pending;
mod purge;
mod recent;
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

use crate::store::Session;
use crate::{SqliteStore, audit, inbox};

pub(crate) use pause::interventions;

#[async_trait]
impl Admin for SqliteStore {
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.read(operation::COUNTS, overview::counts).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.read(operation::BACKLOG, overview::backlog).await
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.read(operation::NODES, overview::nodes).await
    }

    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        self.read(operation::PARTITIONS, partitions::partitions).await
    }

    async fn partition_owners(&self) -> Result<Vec<(u8, NodeId)>, StoreError> {
        self.read(operation::PARTITION_OWNERS, partitions::owners).await
    }

    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        self.read(operation::BLOCKED, async |session| blocked::list(session, above, limit).await).await
    }

    async fn head_of(&self, seq: i64) -> Result<Option<i64>, StoreError> {
        self.read(operation::HEAD_OF, async |session| blocked::head_of(session, seq).await).await
    }

    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.read(operation::RECORDS, async |session| record::records(session, event_id).await).await
    }

    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError> {
        self.read(operation::RECORDS, async |session| record::by_seq(session, seq).await).await
    }

    async fn states(&self, event_ids: &[EventId]) -> Result<Vec<RowState>, StoreError> {
        self.read(operation::STATES, async |session| record::states(session, event_ids).await).await
    }

    async fn recent(&self, filter: &EventFilter, below: Option<i64>, limit: usize) -> Result<EventPage, StoreError> {
        self.read(operation::RECENT, async |session| recent::page(session, filter, below, limit).await).await
    }

    async fn pending(&self, filter: &PendingFilter, above: i64, limit: usize) -> Result<Vec<PendingEvent>, StoreError> {
        self.read(operation::PENDING, async |session| pending::list(session, filter, above, limit).await).await
    }

    async fn count_pending(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        self.read(operation::COUNT_PENDING, async |session| pending::count(session, filter).await).await
    }

    async fn retry_now(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.write(operation::RETRY_NOW, async |session| pending::retry_now(session, seqs).await).await
    }

    async fn cancel(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.write(operation::CANCEL, async |session| pending::cancel(session, seqs).await).await
    }

    async fn pause(&self, pause: &NewPause) -> Result<PauseChange, StoreError> {
        self.write(operation::PAUSE, async |session| pause::pause(session, pause).await).await
    }

    async fn resume(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError> {
        self.write(operation::RESUME, async |session| pause::resume(session, kind, name).await).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        self.read(operation::PAUSES, pause::list).await
    }

    async fn count_paused(&self) -> Result<u64, StoreError> {
        self.read(operation::COUNT_PAUSED, pause::count).await
    }

    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        self.read(operation::DEAD, async |session| dead::list(session, filter, above, limit).await).await
    }

    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.read(operation::COUNT_DEAD, async |session| dead::count(session, filter).await).await
    }

    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.write(operation::REPLAY, async |session| dead::replay(session, seqs).await).await
    }

    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.write(operation::DISCARD, async |session| dead::discard(session, seqs).await).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.write(operation::PURGE, async |session| purge::purge(session, purge).await).await
    }

    async fn inbox_consumers(&self, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, StoreError> {
        self.read(operation::INBOX_CONSUMERS, async |session| inbox::consumers(session, after, limit).await).await
    }

    async fn count_inbox(&self, consumer: &str) -> Result<u64, StoreError> {
        self.read(operation::COUNT_INBOX, async |session| inbox::count(session, consumer).await).await
    }

    async fn purge_inbox(&self, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let purge = async |session: &mut Session<'_>| inbox::purge(session, consumer, older_than, limit).await;
        self.write(operation::PURGE_INBOX, purge).await
    }

    async fn record_action(&self, action: &AuditedAction) -> Result<i64, StoreError> {
        self.write(operation::RECORD_ACTION, async |session| audit::record(session, action).await).await
    }

    async fn end_action(&self, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), StoreError> {
        self.write(operation::END_ACTION, async |session| audit::end(session, id, changed, outcome).await).await
    }

    async fn actions(&self, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.read(operation::ACTIONS, async |session| audit::list(session, below, limit).await).await
    }

    async fn purge_actions(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.write(operation::PURGE_ACTIONS, async |session| audit::purge(session, older_than, limit).await).await
    }
}
