use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::StoreError;
use pillarbox_core::event::EventId;
use pillarbox_core::ownership::{Epochs, Fence, NodeMode};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{
    AuditedAction, BegunAttempt, DeadFilter, EventFilter, NewPause, NodeStatus, PauseKind, PendingFilter, Purge,
    Purgeable, operation,
};

use crate::Harness;
use crate::events::{HOUR, all, event, row_at};
use crate::nodes::stranger;
use crate::run::{Db, Outcome};

/// The operation that was called, and its error.
type Failed = (&'static str, Option<StoreError>);

/// Every call on a closed store fails, and its error names the operation, in the same words on every store.
pub(super) async fn close_makes_every_call_fail_with_the_name_of_its_operation<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, node) = (db.connect().await?, stranger()?);
    let seq = db.write(vec![event()?]).await?[0];
    let row = row_at(&*store, seq).await?;
    let rows = std::slice::from_ref(&row);
    store.close().await;
    store.close().await;
    let id = EventId::new("e")?;
    let attempt = BegunAttempt { row: row.clone(), expected: Expected::FIRST, attempts: 0, error: None };
    let purge = Purge { what: Purgeable::Done, older_than: Duration::ZERO, above: 0, limit: 1, key: None };
    let done = Verdict { row: row.clone(), expected: Expected::FIRST, change: Change::Done };
    let (pending, action) = (PendingFilter::default(), AuditedAction::new("ada", "replay", "all"));
    let (filter, fence) = (DeadFilter::default(), Fence::Table);
    let seen = NodeStatus {
        node: node.clone(),
        mode: NodeMode::SingleNode.name().to_owned(),
        started_at: Timestamp::from_micros(0),
        lease_left: None,
        expires_at: Timestamp::from_micros(0),
        lease: None,
        partitions: 0,
        figures: None,
    };
    let failed: [Failed; 50] = [
        (operation::MIGRATE, store.migrate().await.err()),
        (operation::CHECK, store.check().await.err()),
        (operation::JOIN, store.join(&node, NodeMode::SingleNode, HOUR).await.err()),
        (operation::ACQUIRE, store.acquire(&node).await.err()),
        (operation::REBALANCE, store.rebalance(&node, &Epochs::none()).await.err()),
        (operation::RENEW, store.renew(&node, HOUR, None, None).await.err()),
        (operation::LEAVE, store.leave(&node).await.err()),
        (operation::EVICT, store.evict(&seen).await.err()),
        (operation::FETCH, store.fetch(&all()).await.err()),
        (operation::CLAIM, store.claim(&node, &all()).await.err()),
        (operation::RELEASE, store.release(&node, rows).await.err()),
        (operation::RECLAIM, store.reclaim(&node, true).await.err()),
        (operation::ASSIGN_PARTITIONS, store.assign_partitions(&[(row.clone(), 1)]).await.err()),
        (operation::PROMOTE_DUE, store.promote_due(rows).await.err()),
        (operation::IDENTIFY, store.identify(&[seq]).await.err()),
        (operation::WRITERS, store.writers().await.err()),
        (operation::INTERVENTIONS, store.interventions().await.err()),
        (operation::RETRY_NOW, store.retry_now(&[seq]).await.err()),
        (operation::CANCEL, store.cancel(&[seq]).await.err()),
        (operation::PAUSE, store.pause(&NewPause::new(PauseKind::Type, "a")).await.err()),
        (operation::RESUME, store.resume(PauseKind::Type, "a").await.err()),
        (operation::PAUSES, store.pauses().await.err()),
        (operation::COUNT_PAUSED, store.count_paused().await.err()),
        (operation::NOW, store.now().await.err()),
        (operation::BEGIN_ATTEMPT, store.begin_attempt(&node, fence, &attempt).await.err()),
        (operation::SETTLE, store.settle(&node, fence, &[done]).await.err()),
        (operation::COUNTS, store.counts().await.err()),
        (operation::BACKLOG, store.backlog().await.err()),
        (operation::NODES, store.nodes().await.err()),
        (operation::PARTITIONS, store.partitions().await.err()),
        (operation::PARTITION_OWNERS, store.partition_owners().await.err()),
        (operation::BLOCKED, store.blocked(0, 1).await.err()),
        (operation::RECORDS, store.records(id.as_str()).await.err()),
        (operation::RECORDS, store.record(seq).await.err()),
        (operation::STATES, store.states(std::slice::from_ref(&id)).await.err()),
        (operation::PENDING, store.pending(&pending, 0, 1).await.err()),
        (operation::COUNT_PENDING, store.count_pending(&pending).await.err()),
        (operation::DEAD, store.dead(&filter, 0, 1).await.err()),
        (operation::COUNT_DEAD, store.count_dead(&filter).await.err()),
        (operation::REPLAY, store.replay(&[seq]).await.err()),
        (operation::DISCARD, store.discard(&[seq]).await.err()),
        (operation::PURGE, store.purge(&purge).await.err()),
        (operation::INBOX_CONSUMERS, store.inbox_consumers(None, 1).await.err()),
        (operation::COUNT_INBOX, store.count_inbox("c").await.err()),
        (operation::PURGE_INBOX, store.purge_inbox("c", HOUR, 1).await.err()),
        (operation::RECENT, store.recent(&EventFilter::new(), None, 1).await.err()),
        (operation::RECORD_ACTION, store.record_action(&action).await.err()),
        (operation::END_ACTION, store.end_action(1, None, "done").await.err()),
        (operation::ACTIONS, store.actions(None, 1).await.err()),
        (operation::PURGE_ACTIONS, store.purge_actions(HOUR, 1).await.err()),
    ];
    for (operation, error) in failed {
        let error = error.ok_or_else(|| format!("could {operation} on a closed store"))?;
        assert_eq!(error.operation(), operation, "{error}");
        assert!(error.to_string().contains("closed"), "{error}");
    }
    Ok(())
}
