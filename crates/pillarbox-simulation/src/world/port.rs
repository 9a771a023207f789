use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::StoreError;
use pillarbox_core::event::EventId;
use pillarbox_core::ownership::{Acquired, Epochs, Fence, LeaseMark, NodeId, NodeMode, Rebalanced, Reclaimed, Renewal};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{
    Admin, AuditEntry, AuditedAction, Backlog, BegunAttempt, Blocked, Counts, DeadEvent, DeadFilter, EventFilter,
    EventPage, Fetch, Fetched, History, InboxConsumer, Interventions, NewPause, NodeFigures, NodeStatus, OrderKey,
    PartitionBacklog, Pause, PauseChange, PauseKind, PendingEvent, PendingFilter, Purge, Purged, Record, RowId,
    RowState, Store, StoreInfo, WakeUps, Writers, operation,
};
use pillarbox_core::write::{Command, Lookup, NewRow, Question, Statement};

use super::link::Link;
use crate::check::Op;

impl Link {
    /// Tells what a fetch asks for.
    fn ask(&self, fetch: &Fetch) {
        let Fetch { above, exclude, limit, scope, .. } = fetch;
        let keys = |keys: &[OrderKey]| keys.iter().map(|key| key.key.clone()).collect::<Vec<_>>();
        match scope {
            Some(scope) => self.tell_story(format_args!(
                "asks for {limit} above {above} in {:?}, without {exclude:?} and {:?}, only {:?}, heads {:?}",
                scope.partitions,
                keys(&scope.without),
                keys(&scope.only),
                scope.heads,
            )),
            None => self.tell_story(format_args!("asks for {limit} above {above} without {exclude:?}")),
        }
    }
}

#[async_trait]
impl Store for Link {
    fn info(&self) -> &StoreInfo {
        &self.info
    }
    fn insert<'a>(&self, _rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        Vec::new()
    }
    fn insert_unique<'a>(&self, _row: &'a NewRow, _ended: Option<i64>) -> Vec<Statement<'a>> {
        Vec::new()
    }
    fn complete<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
        self.database.store.complete(node, fence, verdict)
    }
    fn receive<'a>(&self, consumer: &'a str, message_id: &'a str) -> Command<'a> {
        self.database.store.receive(consumer, message_id)
    }
    async fn migrate(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn migration_sql(&self) -> String {
        String::new()
    }
    async fn check(&self) -> Result<(), StoreError> {
        self.call(operation::CHECK, None, async { Ok(()) }).await
    }
    async fn join(&self, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), StoreError> {
        let (store, id) = (self.database.store.clone(), node.clone());
        let call = async move { store.join(&id, mode, lease).await };
        self.call(operation::JOIN, Some(Op::Join(node.clone())), call).await
    }
    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        let (store, id) = (self.database.store.clone(), node.clone());
        let call = async move { store.acquire(&id).await };
        self.call(operation::ACQUIRE, Some(Op::Acquire(node.clone())), call).await
    }
    async fn rebalance(&self, node: &NodeId, give: &Epochs) -> Result<Rebalanced, StoreError> {
        let (store, id, given) = (self.database.store.clone(), node.clone(), give.clone());
        let call = async move { store.rebalance(&id, &given).await };
        self.call(operation::REBALANCE, Some(Op::Rebalance(node.clone(), give.clone())), call).await
    }
    async fn renew(
        &self,
        node: &NodeId,
        lease: Duration,
        last: Option<LeaseMark>,
        figures: Option<&NodeFigures>,
    ) -> Result<Renewal, StoreError> {
        let (store, id, figures) = (self.database.store.clone(), node.clone(), figures.copied());
        let call = async move { store.renew(&id, lease, last, figures.as_ref()).await };
        self.call(operation::RENEW, Some(Op::Renew(node.clone())), call).await
    }
    fn history(&self) -> History {
        self.keeper.read()
    }
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let (store, id) = (self.database.store.clone(), node.clone());
        let call = async move { store.leave(&id).await };
        self.call(operation::LEAVE, Some(Op::Leave(node.clone())), call).await
    }
    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        let (store, status) = (self.database.store.clone(), seen.clone());
        let call = async move { store.evict(&status).await };
        self.call(operation::EVICT, Some(Op::Evict(seen.node.clone())), call).await
    }
    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.ask(fetch);
        let (store, fetch) = (self.database.store.clone(), fetch.clone());
        self.call(operation::FETCH, None, async move { store.fetch(&fetch).await }).await
    }
    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.ask(fetch);
        let (store, id, fetch) = (self.database.store.clone(), node.clone(), fetch.clone());
        let call = async move { store.claim(&id, &fetch).await };
        self.call(operation::CLAIM, Some(Op::Claim(node.clone())), call).await
    }
    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        let (store, id, given) = (self.database.store.clone(), node.clone(), rows.to_vec());
        let call = async move { store.release(&id, &given).await };
        self.call(operation::RELEASE, Some(Op::Release(node.clone(), rows.to_vec())), call).await
    }
    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        let (store, id) = (self.database.store.clone(), node.clone());
        let call = async move { store.reclaim(&id, thorough).await };
        self.call(operation::RECLAIM, Some(Op::Reclaim(node.clone())), call).await
    }
    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        let (store, stamped) = (self.database.store.clone(), rows.to_vec());
        let call = async move { store.assign_partitions(&stamped).await };
        self.call(operation::ASSIGN_PARTITIONS, Some(Op::AssignPartitions(rows.to_vec())), call).await
    }
    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        let (store, ripe) = (self.database.store.clone(), rows.to_vec());
        let call = async move { store.promote_due(&ripe).await };
        self.call(operation::PROMOTE_DUE, Some(Op::PromoteDue(rows.to_vec())), call).await
    }
    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        let (store, seqs) = (self.database.store.clone(), seqs.to_vec());
        self.call(operation::IDENTIFY, None, async move { store.identify(&seqs).await }).await
    }
    fn identify_sql(&self, _seqs: &[i64]) -> Option<String> {
        None
    }
    fn lookup<'a>(&self, question: Question<'a>) -> Lookup<'a> {
        self.database.store.lookup(question)
    }
    async fn writers(&self) -> Result<Writers, StoreError> {
        let database = std::sync::Arc::clone(&self.database);
        let call = async move {
            let mut writers = database.store.writers().await?;
            // A transaction goes by another name once it is prepared.
            let prepared = database.prepared();
            for name in writers.open.iter_mut().flatten() {
                if prepared.iter().any(|first| first.to_string() == *name) {
                    *name = format!("prepared {name}");
                    writers.prepared.push(name.clone());
                }
            }
            Ok(writers)
        };
        self.call(operation::WRITERS, None, call).await
    }
    async fn raise_read_point(&self) -> Result<bool, StoreError> {
        let store = self.database.store.clone();
        self.call(operation::RAISE_READ_POINT, None, async move { store.raise_read_point().await }).await
    }
    async fn interventions(&self) -> Result<Interventions, StoreError> {
        let store = self.database.store.clone();
        self.call(operation::INTERVENTIONS, None, async move { store.interventions().await }).await
    }
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let store = self.database.store.clone();
        self.call(operation::NOW, None, async move { store.now().await }).await
    }
    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        let (store, id, begun) = (self.database.store.clone(), node.clone(), attempt.clone());
        let call = async move { store.begin_attempt(&id, fence, &begun).await };
        self.call(operation::BEGIN_ATTEMPT, Some(Op::Begin(node.clone(), fence, attempt.clone())), call).await
    }
    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        let (store, id, recorded) = (self.database.store.clone(), node.clone(), verdicts.to_vec());
        let call = async move { store.settle(&id, fence, &recorded).await };
        self.call(operation::SETTLE, Some(Op::Settle(node.clone(), fence, verdicts.to_vec())), call).await
    }
    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        Some(self)
    }
    async fn close(&self) {}
}

#[async_trait]
impl Admin for Link {
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.database.store.counts().await
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let store = self.database.store.clone();
        self.call(operation::BACKLOG, None, async move { store.backlog().await }).await
    }
    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        let store = self.database.store.clone();
        self.call(operation::NODES, None, async move { store.nodes().await }).await
    }
    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        let store = self.database.store.clone();
        self.call(operation::PARTITIONS, None, async move { store.partitions().await }).await
    }
    async fn partition_owners(&self) -> Result<Vec<(u8, NodeId)>, StoreError> {
        self.database.store.partition_owners().await
    }
    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        self.database.store.blocked(above, limit).await
    }

    async fn head_of(&self, seq: i64) -> Result<Option<i64>, StoreError> {
        self.database.store.head_of(seq).await
    }
    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.database.store.records(event_id).await
    }
    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError> {
        self.database.store.record(seq).await
    }
    async fn states(&self, event_ids: &[EventId]) -> Result<Vec<RowState>, StoreError> {
        let (store, ids) = (self.database.store.clone(), event_ids.to_vec());
        self.call(operation::STATES, None, async move { store.states(&ids).await }).await
    }
    async fn recent(&self, filter: &EventFilter, below: Option<i64>, limit: usize) -> Result<EventPage, StoreError> {
        self.database.store.recent(filter, below, limit).await
    }
    async fn pending(&self, filter: &PendingFilter, above: i64, limit: usize) -> Result<Vec<PendingEvent>, StoreError> {
        self.database.store.pending(filter, above, limit).await
    }
    async fn count_pending(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        self.database.store.count_pending(filter).await
    }
    async fn retry_now(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let (store, waiting) = (self.database.store.clone(), seqs.to_vec());
        let call = async move { store.retry_now(&waiting).await };
        self.call(operation::RETRY_NOW, Some(Op::RetryNow(seqs.to_vec())), call).await
    }
    async fn cancel(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let (store, pending) = (self.database.store.clone(), seqs.to_vec());
        let call = async move { store.cancel(&pending).await };
        self.call(operation::CANCEL, Some(Op::Cancel(seqs.to_vec())), call).await
    }
    async fn pause(&self, pause: &NewPause) -> Result<PauseChange, StoreError> {
        self.database.store.pause(pause).await
    }
    async fn resume(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError> {
        self.database.store.resume(kind, name).await
    }
    async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        let store = self.database.store.clone();
        self.call(operation::PAUSES, None, async move { store.pauses().await }).await
    }
    async fn count_paused(&self) -> Result<u64, StoreError> {
        self.database.store.count_paused().await
    }
    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        self.database.store.dead(filter, above, limit).await
    }
    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.database.store.count_dead(filter).await
    }
    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let (store, dead) = (self.database.store.clone(), seqs.to_vec());
        let call = async move { store.replay(&dead).await };
        self.call(operation::REPLAY, Some(Op::Replay(seqs.to_vec())), call).await
    }
    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let (store, dead) = (self.database.store.clone(), seqs.to_vec());
        let call = async move { store.discard(&dead).await };
        self.call(operation::DISCARD, Some(Op::Discard(seqs.to_vec())), call).await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        let (store, old) = (self.database.store.clone(), purge.clone());
        let call = async move { store.purge(&old).await };
        self.call(operation::PURGE, Some(Op::Purge(purge.what)), call).await
    }
    async fn inbox_consumers(&self, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, StoreError> {
        let (store, after) = (self.database.store.clone(), after.map(str::to_owned));
        let call = async move { store.inbox_consumers(after.as_deref(), limit).await };
        self.call(operation::INBOX_CONSUMERS, None, call).await
    }
    async fn count_inbox(&self, consumer: &str) -> Result<u64, StoreError> {
        self.database.store.count_inbox(consumer).await
    }
    async fn purge_inbox(&self, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let (store, consumer) = (self.database.store.clone(), consumer.to_owned());
        let call = async move { store.purge_inbox(&consumer, older_than, limit).await };
        self.call(operation::PURGE_INBOX, None, call).await
    }
    async fn record_action(&self, action: &AuditedAction) -> Result<i64, StoreError> {
        self.database.store.record_action(action).await
    }
    async fn end_action(&self, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), StoreError> {
        self.database.store.end_action(id, changed, outcome).await
    }
    async fn actions(&self, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.database.store.actions(below, limit).await
    }
    async fn purge_actions(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let store = self.database.store.clone();
        let call = async move { store.purge_actions(older_than, limit).await };
        self.call(operation::PURGE_ACTIONS, None, call).await
    }
}
