use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::event::{EventId, PARTITIONS};
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Status;
use pillarbox_core::store::{
    Admin, AuditEntry, AuditedAction, Backlog, Blocked, CANCELLED, Counts, DeadEvent, DeadFilter, EventFilter,
    EventPage, InboxConsumer, NewPause, NodeStatus, PartitionBacklog, Pause, PauseChange, PauseKind, PendingEvent,
    PendingFilter, Purge, Purgeable, Purged, Record, RowState,
};
use pillarbox_core::store::{operation, refusal};
use tokio::time::Instant;

use super::MemoryStore;
use super::recent::{self, dead_event, is_of, matches, pending_event};
use super::row::Stored;
use super::tables::State;

/// A row that was stamped further ahead than this says nothing about the age of those behind it.
const MAX_AHEAD: Duration = Duration::from_secs(3600);

#[async_trait]
impl Admin for MemoryStore {
    async fn counts(&self) -> Result<Counts, StoreError> {
        let state = self.open(operation::COUNTS)?;
        let is_cancelled = |row: &&Stored| row.status == Status::Done && row.last_error.as_deref() == Some(CANCELLED);
        let cancelled = state.rows().values().filter(is_cancelled).count() as u64;
        let counts = state.counts();
        Ok(Counts { done: counts.done - cancelled, cancelled, ..counts })
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let state = self.open(operation::BACKLOG)?;
        let now = self.tables.now();
        let mut backlog = Backlog { dead: state.counts().dead, ..Backlog::default() };
        for row in state.rows().values().filter(|row| row.status.is_pending()) {
            if row.due_at().is_some_and(|at| at > now) {
                backlog.delayed += 1;
                continue;
            }
            let waiting = now.since(row.due_at().unwrap_or(row.created_at));
            backlog.due += 1;
            backlog.oldest_due = backlog.oldest_due.max(Some(waiting));
        }
        Ok(backlog)
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        let now = self.tables.now();
        let nodes = self.open(operation::NODES)?.nodes.statuses(now);
        self.lease_clock.observe(&nodes, now, Instant::now());
        Ok(nodes)
    }

    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        let state = self.open(operation::PARTITIONS)?;
        let mut pending_in = [0_u64; PARTITIONS as usize];
        let mut pending = 0;
        for row in state.rows().values().filter(|row| row.status.is_pending()) {
            pending += 1;
            if let Some(partition) = row.partition {
                pending_in[usize::from(partition)] += 1;
            }
        }
        let unowned = state.nodes.owners.free().len().try_into().unwrap_or(PARTITIONS);
        Ok(PartitionBacklog { unowned, pending, most_pending: pending_in.into_iter().max().unwrap_or(0) })
    }

    async fn partition_owners(&self) -> Result<Vec<(u8, NodeId)>, StoreError> {
        Ok(self.open(operation::PARTITION_OWNERS)?.nodes.owners.all())
    }

    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        let state = self.open(operation::BLOCKED)?;
        let now = self.tables.now();
        let heads = state.rows().range(above.saturating_add(1)..);
        Ok(heads.filter_map(|(seq, row)| blocked(&state, *seq, row, now)).take(limit).collect())
    }

    async fn head_of(&self, seq: i64) -> Result<Option<i64>, StoreError> {
        let state = self.open(operation::HEAD_OF)?;
        let waits = state.rows().get(&seq).filter(|row| row.status.is_pending());
        let Some(key) = waits.and_then(Stored::order_key) else { return Ok(None) };
        let failed = |row: &Stored| matches!(row.status, Status::Retry | Status::Dead);
        let mut before = state.rows().range(..seq);
        Ok(before.find(|(_, row)| failed(row) && row.order_key().as_ref() == Some(&key)).map(|(seq, _)| *seq))
    }

    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        let state = self.open(operation::RECORDS)?;
        let Ok(id) = EventId::new(event_id) else { return Ok(Vec::new()) };
        Ok(state.rows_of(&id).map(|(seq, row)| record(seq, row)).collect())
    }

    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError> {
        let state = self.open(operation::RECORDS)?;
        Ok(state.rows().get(&seq).map(|row| record(seq, row)))
    }

    async fn states(&self, event_ids: &[EventId]) -> Result<Vec<RowState>, StoreError> {
        let state = self.open(operation::STATES)?;
        let rows = event_ids.iter().flat_map(|id| state.rows_of(id).map(move |(_, row)| (id, row)));
        let of = |(id, row): (&EventId, &Stored)| {
            let error = row.last_error.clone().filter(|_| !row.status.is_pending());
            let (handler, delivered_as) = (row.handler.clone(), row.delivered_as.clone());
            RowState { event_id: id.clone(), handler, status: row.status, error, delivered_as }
        };
        Ok(rows.map(of).collect())
    }

    async fn recent(&self, filter: &EventFilter, below: Option<i64>, limit: usize) -> Result<EventPage, StoreError> {
        let (state, now) = (self.open(operation::RECENT)?, self.tables.now());
        Ok(recent::page(state.rows(), filter, below, limit, now))
    }

    async fn pending(&self, filter: &PendingFilter, above: i64, limit: usize) -> Result<Vec<PendingEvent>, StoreError> {
        let (state, now) = (self.open(operation::PENDING)?, self.tables.now());
        let pending = state.rows().range(above.saturating_add(1)..);
        let pending = pending.filter_map(|(seq, row)| pending_event(*seq, row, filter, now));
        Ok(pending.take(limit).collect())
    }

    async fn count_pending(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        let (state, now) = (self.open(operation::COUNT_PENDING)?, self.tables.now());
        Ok(state.rows().iter().filter_map(|(seq, row)| pending_event(*seq, row, filter, now)).count() as u64)
    }

    async fn retry_now(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let (mut state, now) = (self.open(operation::RETRY_NOW)?, self.tables.now());
        let waits = |row: &Stored| match row.status {
            Status::Retry => true,
            Status::New => row.due_at().is_some_and(|due| due > now),
            Status::Done | Status::Dead => false,
        };
        Ok(state.intervene(seqs, waits, |state, seq| state.retry_now(seq, now)))
    }

    async fn cancel(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let (mut state, now) = (self.open(operation::CANCEL)?, self.tables.now());
        Ok(state.intervene(seqs, |row| row.status.is_pending(), |state, seq| state.cancel(seq, now)))
    }

    async fn pause(&self, pause: &NewPause) -> Result<PauseChange, StoreError> {
        Ok(self.open(operation::PAUSE)?.pauses.pause(pause, self.tables.now()))
    }

    async fn resume(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError> {
        Ok(self.open(operation::RESUME)?.pauses.resume(kind, name, self.tables.now()))
    }

    async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        Ok(self.open(operation::PAUSES)?.pauses.list(self.tables.now()))
    }

    async fn count_paused(&self) -> Result<u64, StoreError> {
        let (state, now) = (self.open(operation::COUNT_PAUSED)?, self.tables.now());
        let pauses = state.pauses.list(now);
        let is_held = |row: &&Stored| {
            let event_type = row.event.envelope().event_type();
            row.status.is_pending()
                && row.due_at().is_none_or(|at| at <= now)
                && pauses.iter().any(|pause| pause.applies_to(event_type, row.handler.as_deref()))
        };
        Ok(state.rows().values().filter(is_held).count() as u64)
    }

    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        let state = self.open(operation::DEAD)?;
        let dead = state.rows().range(above.saturating_add(1)..).filter(|(_, row)| matches(row, filter));
        Ok(dead.take(limit).map(|(seq, row)| dead_event(*seq, row)).collect())
    }

    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        Ok(self.open(operation::COUNT_DEAD)?.rows().values().filter(|row| matches(row, filter)).count() as u64)
    }

    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        Ok(self.open(operation::REPLAY)?.intervene(seqs, is_dead, State::revive))
    }

    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        Ok(self.open(operation::DISCARD)?.intervene(seqs, is_dead, State::remove))
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        let mut state = self.open(operation::PURGE)?;
        let now = self.tables.now();
        let alive = state.nodes.members.iter().find(|(_, member)| member.expires_at > now);
        if let (Purgeable::All, Some((node, _))) = (purge.what, alive) {
            let message = refusal::still_delivers(node.as_str());
            return Err(StoreError::new(StoreErrorKind::IncompatibleMode, operation::PURGE, message));
        }
        let old = |time: Timestamp| now.since(time) >= purge.older_than && time <= now;
        let window: Vec<(&i64, &Stored)> =
            state.rows().range(purge.above.saturating_add(1)..).take(purge.limit).collect();
        // Rows that a clock has stamped ahead say nothing about those behind them.
        let is_ahead = |row: &Stored| row.done_at.unwrap_or(row.created_at).min(row.created_at) > now.plus(MAX_AHEAD);
        let is_young = |row: &Stored| !old(row.created_at) && !row.done_at.is_some_and(old) && !is_ahead(row);
        let over = window.len() < purge.limit || window.iter().all(|(_, row)| is_young(row));
        let next = if over { None } else { window.last().map(|(seq, _)| **seq) };
        let ended = |row: &Stored, status| row.status == status && old(row.done_at.unwrap_or(row.created_at));
        let goes = |row: &Stored| match purge.what {
            Purgeable::Done => ended(row, Status::Done),
            Purgeable::Dead => ended(row, Status::Dead),
            Purgeable::All => old(row.created_at),
        };
        let doomed: Vec<i64> =
            window.iter().filter(|(_, row)| goes(row) && is_of(&purge.key, row)).map(|(seq, _)| **seq).collect();
        doomed.iter().for_each(|seq| state.remove(*seq));
        if purge.what != Purgeable::Done {
            state.intervened(&doomed);
        }
        Ok(Purged { removed: doomed.len() as u64, next })
    }

    async fn inbox_consumers(&self, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, StoreError> {
        Ok(self.open(operation::INBOX_CONSUMERS)?.inbox.consumers(after, limit, self.tables.now()))
    }

    async fn count_inbox(&self, consumer: &str) -> Result<u64, StoreError> {
        Ok(self.open(operation::COUNT_INBOX)?.inbox.count(consumer))
    }

    async fn purge_inbox(&self, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let now = self.tables.now();
        Ok(self.open(operation::PURGE_INBOX)?.inbox.purge(consumer, older_than, limit, now))
    }

    async fn record_action(&self, action: &AuditedAction) -> Result<i64, StoreError> {
        Ok(self.open(operation::RECORD_ACTION)?.audit.record(action, self.tables.now()))
    }

    async fn end_action(&self, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), StoreError> {
        self.open(operation::END_ACTION)?.audit.end(id, changed, outcome);
        Ok(())
    }

    async fn actions(&self, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.open(operation::ACTIONS)?.audit.list(below, limit))
    }

    async fn purge_actions(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        Ok(self.open(operation::PURGE_ACTIONS)?.audit.purge(older_than, limit, self.tables.now()))
    }
}

fn is_dead(row: &Stored) -> bool {
    row.status == Status::Dead
}

/// The head at `seq` and the number of rows behind it, if it is a head and any row waits.
fn blocked(state: &State, seq: i64, head: &Stored, now: Timestamp) -> Option<Blocked> {
    let dead = head.status == Status::Dead;
    let key = head.order_key().filter(|_| dead || head.status == Status::Retry)?;
    let later = state.rows().range(seq.saturating_add(1)..).map(|(_, row)| row);
    let waits = |row: &&Stored| row.status.is_pending() && row.order_key().as_ref() == Some(&key);
    let most = usize::try_from(Blocked::COUNTED_UP_TO).unwrap_or(usize::MAX);
    let waiting = later.filter(waits).take(most).count() as u64;
    (waiting > 0).then(|| Blocked {
        seq,
        event_id: head.event.event_id().to_owned(),
        event_type: head.event.envelope().event_type().to_owned(),
        key: key.key.into(),
        handler: key.handler.map(String::from),
        dead,
        attempts: i32::try_from(head.attempts).unwrap_or(i32::MAX),
        due_in: head.available_at.filter(|at| !dead && *at > now).map(|at| at.since(now)),
        last_error: head.last_error.clone(),
        waiting,
    })
}

pub(super) fn record(seq: i64, row: &Stored) -> Record {
    let event = row.event.envelope();
    Record {
        seq,
        event_id: event.id().as_str().to_owned(),
        event_type: event.event_type().to_owned(),
        aggregate_type: Some(event.aggregate_type().to_owned()),
        aggregate_id: event.aggregate_id().map(str::to_owned),
        tenant_id: event.tenant_id().map(str::to_owned),
        ordering_key: event.key().map(str::to_owned),
        unique_key: row.unique_key().map(str::to_owned),
        handler: row.handler.as_deref().map(str::to_owned),
        payload: Some(event.payload().clone()),
        headers: row.event.headers().map(str::to_owned),
        status: row.status.code(),
        attempts: i32::try_from(row.attempts).unwrap_or(i32::MAX),
        replays: i32::try_from(row.replays).unwrap_or(i32::MAX),
        available_at: row.available_at,
        occurred_at: Some(event.occurred_at()),
        created_at: row.created_at,
        done_at: row.done_at,
        last_error: row.last_error.clone(),
        locked_by: row.locked_by.as_deref().map(str::to_owned),
        delivered_as: row.delivered_as.clone(),
        failures: row.failures.clone(),
    }
}
