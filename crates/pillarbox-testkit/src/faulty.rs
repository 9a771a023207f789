use pillarbox_core::store::operation::{self, CALL_LIMIT};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::event::EventId;
use pillarbox_core::ownership::{Acquired, Epochs, Fence, LeaseMark, NodeId, NodeMode, Rebalanced, Reclaimed, Renewal};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{
    Admin, AuditEntry, AuditedAction, Backlog, BegunAttempt, Blocked, Counts, DeadEvent, DeadFilter, Division,
    EventFilter, EventPage, Fetch, Fetched, FetchedRow, History, InboxConsumer, Interventions, NewPause, NodeFigures,
    NodeStatus, PartitionBacklog, Pause, PauseChange, PauseKind, PendingEvent, PendingFilter, Purge, Purged, Record,
    RowId, RowState, Store, StoreInfo, WakeUps, Writers,
};
use pillarbox_core::write::{Command, Lookup, NewRow, Question, Statement};
use tokio::sync::watch;

/// A store whose database fails when told to. Clones fail together.
#[derive(Debug, Clone)]
pub struct FaultyStore<S> {
    inner: S,
    faults: Arc<Faults>,
}

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// The database cannot be reached: nothing happens, and after a moment a temporary error comes back.
    Unreachable,
    /// The same without the moment, as from a pool that knows that it has no connection: the call never waits.
    Refused,
    /// Another transaction holds what the call has to lock, for longer than the database waits.
    Locked,
    /// The call does all it should, and the connection breaks before its answer arrives.
    LostAnswer,
    /// The call does all it should, and its answer takes 800 ms.
    LateAnswer,
    /// The database does not answer any more.
    Silence,
    /// The same, and the store gives the call up when its time is over.
    TimedOut,
}

/// The calls that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the store's methods")]
pub enum Operation {
    Join,
    Acquire,
    Renew,
    Leave,
    Fetch,
    Settle,
    /// The announcement of an attempt.
    BeginAttempt,
    /// Questions of operators about the table, which do not change it.
    Inspect,
    /// Changes by operators: retry now, cancel, replay, discard, purge.
    Change,
    /// The question if operators have intervened.
    Watch,
    /// The question how the events stand that somebody waits for.
    Follow,
}

const OPERATIONS: usize = 11;

/// The time that a late answer takes.
const LATE: Duration = Duration::from_millis(800);

#[derive(Debug, Default)]
struct Faults {
    current: Mutex<[Fault; OPERATIONS]>,
    refused_rows: Mutex<HashSet<i64>>,
    /// The row that is made due by hand during the next fetch.
    due_within_fetch: Mutex<Option<i64>>,
    /// Bytes in a second that the way to the database takes, if it is slow.
    bytes_per_second: Mutex<Option<usize>>,
    /// The number of calls of each operation.
    calls: Mutex<[usize; OPERATIONS]>,
    /// The number of calls of each operation that have met a fault.
    met: watch::Sender<[usize; OPERATIONS]>,
}

impl<S: Store> FaultyStore<S> {
    /// A store without faults so far.
    pub fn new(inner: S) -> Self {
        Self { inner, faults: Arc::default() }
    }

    /// From now on calls of `operation` meet `fault`; the ones under way are left alone.
    pub fn set(&self, operation: Operation, fault: Fault) {
        self.faults.current.lock().unwrap_or_else(PoisonError::into_inner)[operation as usize] = fault;
    }

    /// From now on all calls meet `fault`.
    pub fn set_all(&self, fault: Fault) {
        *self.faults.current.lock().unwrap_or_else(PoisonError::into_inner) = [fault; OPERATIONS];
    }

    /// From now on the database refuses a settle that holds a verdict for one of the rows `seqs`, as one with a trigger might; none
    /// ends it.
    pub fn refuse_verdicts_of(&self, seqs: impl IntoIterator<Item = i64>) {
        *self.faults.refused_rows.lock().unwrap_or_else(PoisonError::into_inner) = seqs.into_iter().collect();
    }

    /// An operator makes the row `seq` due during the next fetch, after the rows with a due time were read and before those without one. So
    /// neither read sees it.
    pub(crate) fn retry_within_fetch(&self, seq: i64) {
        *self.faults.due_within_fetch.lock().unwrap_or_else(PoisonError::into_inner) = Some(seq);
    }

    async fn fetch_rows(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        let missed = self.faults.due_within_fetch.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(seq) = missed else { return self.inner.fetch(fetch).await };
        let mut fetch = fetch.clone();
        fetch.exclude.push(seq);
        fetch.exclude.sort_unstable();
        let fetched = self.inner.fetch(&fetch).await?;
        self.inner.retry_now(&[seq]).await?;
        // How often operators have intervened is read last.
        Ok(Fetched { interventions: self.inner.interventions().await?.count, ..fetched })
    }

    /// From now on the payloads of a fetch and the errors of verdicts take as long as a line of so many bytes a second makes them take; a
    /// call that takes 30 s is given up.
    pub fn slow_line(&self, bytes_per_second: Option<usize>) {
        *self.faults.bytes_per_second.lock().unwrap_or_else(PoisonError::into_inner) = bytes_per_second;
    }

    /// Brings so many bytes over the line.
    async fn bring(&self, bytes: usize, operation: &'static str) -> Result<(), StoreError> {
        let rate = *self.faults.bytes_per_second.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rate) = rate else { return Ok(()) };
        let takes = Duration::from_secs_f64(bytes as f64 / rate as f64);
        tokio::time::sleep(takes.min(CALL_LIMIT)).await;
        if takes > CALL_LIMIT {
            let message = "there was no answer within 30 s";
            return Err(StoreError::new(StoreErrorKind::Unavailable, operation, message));
        }
        Ok(())
    }

    async fn bring_rows(&self, fetched: Fetched, operation: &'static str) -> Result<Fetched, StoreError> {
        self.bring(fetched.rows.iter().map(FetchedRow::content_bytes).sum(), operation).await?;
        Ok(fetched)
    }

    /// The number of calls of `operation` since the store was made, with a fault or without.
    #[must_use]
    pub fn calls(&self, operation: Operation) -> usize {
        self.faults.calls.lock().unwrap_or_else(PoisonError::into_inner)[operation as usize]
    }

    /// The number of calls of `operation` that have met a fault since the store was made.
    #[must_use]
    pub fn faults(&self, operation: Operation) -> usize {
        self.faults.met.borrow()[operation as usize]
    }

    /// Waits until so many calls of `operation` have met a fault since the store was made.
    pub async fn wait_for_faults(&self, operation: Operation, count: usize) {
        let mut met = self.faults.met.subscribe();
        // The sender lives in `self`, so waiting ends only when the number is reached.
        drop(met.wait_for(|met| met[operation as usize] >= count).await);
    }

    async fn call<T>(
        &self,
        operation: Operation,
        name: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.faults.calls.lock().unwrap_or_else(PoisonError::into_inner)[operation as usize] += 1;
        let fault = self.faults.current.lock().unwrap_or_else(PoisonError::into_inner)[operation as usize];
        if fault == Fault::None {
            return call.await;
        }
        let met = || self.faults.met.send_modify(|met| met[operation as usize] += 1);
        if fault == Fault::LateAnswer {
            let answer = call.await;
            met();
            tokio::time::sleep(LATE).await;
            return answer;
        }
        if fault == Fault::LostAnswer {
            call.await?;
        }
        met();
        match fault {
            Fault::Silence => std::future::pending().await,
            Fault::TimedOut => tokio::time::sleep(CALL_LIMIT).await,
            Fault::Unreachable => tokio::time::sleep(Duration::from_millis(1)).await,
            Fault::Locked => {
                return Err(StoreError::new(StoreErrorKind::Contention, name, "the test holds the lock"));
            }
            Fault::Refused | Fault::LostAnswer | Fault::LateAnswer | Fault::None => {}
        }
        Err(StoreError::new(StoreErrorKind::Unavailable, name, "the test cut the connection"))
    }
}

#[async_trait]
impl<S: Store> Store for FaultyStore<S> {
    fn info(&self) -> &StoreInfo {
        self.inner.info()
    }
    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        self.inner.insert(rows)
    }
    fn insert_unique<'a>(&self, row: &'a NewRow, ended: Option<i64>) -> Vec<Statement<'a>> {
        self.inner.insert_unique(row, ended)
    }
    fn find_unique<'a>(&self, row: &'a NewRow) -> Option<Statement<'a>> {
        self.inner.find_unique(row)
    }
    fn has_one_writer(&self) -> bool {
        self.inner.has_one_writer()
    }
    fn complete<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
        self.inner.complete(node, fence, verdict)
    }
    fn mark_transaction(&self) -> Option<Statement<'static>> {
        self.inner.mark_transaction()
    }
    fn receive<'a>(&self, consumer: &'a str, message_id: &'a str) -> Command<'a> {
        self.inner.receive(consumer, message_id)
    }
    async fn migrate(&self) -> Result<(), StoreError> {
        self.inner.migrate().await
    }
    fn migration_sql(&self) -> String {
        self.inner.migration_sql()
    }
    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
    async fn join(&self, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), StoreError> {
        self.call(Operation::Join, operation::JOIN, self.inner.join(node, mode, lease)).await
    }
    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        self.call(Operation::Acquire, operation::ACQUIRE, self.inner.acquire(node)).await
    }
    async fn rebalance(&self, node: &NodeId, give: &Epochs) -> Result<Rebalanced, StoreError> {
        self.call(Operation::Acquire, operation::REBALANCE, self.inner.rebalance(node, give)).await
    }
    async fn renew(
        &self,
        node: &NodeId,
        lease: Duration,
        last: Option<LeaseMark>,
        figures: Option<&NodeFigures>,
    ) -> Result<Renewal, StoreError> {
        self.call(Operation::Renew, operation::RENEW, self.inner.renew(node, lease, last, figures)).await
    }
    fn history(&self) -> History {
        self.inner.history()
    }
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.call(Operation::Leave, operation::LEAVE, self.inner.leave(node)).await
    }
    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        self.call(Operation::Acquire, operation::EVICT, self.inner.evict(seen)).await
    }
    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        let fetching = async { self.bring_rows(self.fetch_rows(fetch).await?, operation::FETCH).await };
        self.call(Operation::Fetch, operation::FETCH, fetching).await
    }
    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        let settle = async {
            let is_refused = {
                let refused = self.faults.refused_rows.lock().unwrap_or_else(PoisonError::into_inner);
                verdicts.iter().any(|verdict| refused.contains(&verdict.row.seq))
            };
            if is_refused {
                return Err(StoreError::new(
                    StoreErrorKind::Unexpected,
                    operation::SETTLE,
                    "the test's trigger says no",
                ));
            }
            let errors = verdicts.iter().filter_map(Verdict::failure).map(|(_, error)| error.len());
            self.bring(errors.sum(), operation::SETTLE).await?;
            self.inner.settle(node, fence, verdicts).await
        };
        self.call(Operation::Settle, operation::SETTLE, settle).await
    }
    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        let claiming = async { self.bring_rows(self.inner.claim(node, fetch).await?, operation::CLAIM).await };
        self.call(Operation::Fetch, operation::CLAIM, claiming).await
    }
    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        self.call(Operation::Leave, operation::RELEASE, self.inner.release(node, rows)).await
    }
    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        self.call(Operation::Acquire, operation::RECLAIM, self.inner.reclaim(node, thorough)).await
    }
    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        self.call(Operation::Settle, operation::ASSIGN_PARTITIONS, self.inner.assign_partitions(rows)).await
    }
    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        self.call(Operation::Settle, operation::PROMOTE_DUE, self.inner.promote_due(rows)).await
    }
    fn identify_sql(&self, seqs: &[i64]) -> Option<String> {
        self.inner.identify_sql(seqs)
    }
    fn lookup<'a>(&self, question: Question<'a>) -> Lookup<'a> {
        self.inner.lookup(question)
    }
    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        self.call(Operation::Fetch, operation::IDENTIFY, self.inner.identify(seqs)).await
    }
    async fn writers(&self) -> Result<Writers, StoreError> {
        self.call(Operation::Fetch, operation::WRITERS, self.inner.writers()).await
    }
    async fn raise_read_point(&self) -> Result<bool, StoreError> {
        self.call(Operation::Inspect, operation::RAISE_READ_POINT, self.inner.raise_read_point()).await
    }
    async fn interventions(&self) -> Result<Interventions, StoreError> {
        self.call(Operation::Watch, operation::INTERVENTIONS, self.inner.interventions()).await
    }
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.call(Operation::Fetch, operation::NOW, self.inner.now()).await
    }
    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        self.call(Operation::BeginAttempt, operation::BEGIN_ATTEMPT, self.inner.begin_attempt(node, fence, attempt))
            .await
    }
    fn settles_in_parallel(&self, verdicts: &[Verdict], division: Division) -> bool {
        self.inner.settles_in_parallel(verdicts, division)
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        self.inner.wake_ups()
    }
    async fn close(&self) {
        self.inner.close().await;
    }
}

#[async_trait]
impl<S: Store> Admin for FaultyStore<S> {
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.call(Operation::Inspect, operation::COUNTS, self.inner.counts()).await
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.call(Operation::Inspect, operation::BACKLOG, self.inner.backlog()).await
    }
    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.call(Operation::Inspect, operation::NODES, self.inner.nodes()).await
    }
    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        self.call(Operation::Inspect, operation::PARTITIONS, self.inner.partitions()).await
    }
    async fn partition_owners(&self) -> Result<Vec<(u8, NodeId)>, StoreError> {
        self.call(Operation::Inspect, operation::PARTITION_OWNERS, self.inner.partition_owners()).await
    }
    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        self.call(Operation::Inspect, operation::BLOCKED, self.inner.blocked(above, limit)).await
    }

    async fn head_of(&self, seq: i64) -> Result<Option<i64>, StoreError> {
        self.call(Operation::Inspect, operation::HEAD_OF, self.inner.head_of(seq)).await
    }
    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.call(Operation::Inspect, operation::RECORDS, self.inner.records(event_id)).await
    }
    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError> {
        self.call(Operation::Inspect, operation::RECORDS, self.inner.record(seq)).await
    }
    async fn states(&self, event_ids: &[EventId]) -> Result<Vec<RowState>, StoreError> {
        self.call(Operation::Follow, operation::STATES, self.inner.states(event_ids)).await
    }
    async fn recent(&self, filter: &EventFilter, below: Option<i64>, limit: usize) -> Result<EventPage, StoreError> {
        self.call(Operation::Inspect, operation::RECENT, self.inner.recent(filter, below, limit)).await
    }
    async fn pending(&self, filter: &PendingFilter, above: i64, limit: usize) -> Result<Vec<PendingEvent>, StoreError> {
        self.call(Operation::Inspect, operation::PENDING, self.inner.pending(filter, above, limit)).await
    }
    async fn count_pending(&self, filter: &PendingFilter) -> Result<u64, StoreError> {
        self.call(Operation::Inspect, operation::COUNT_PENDING, self.inner.count_pending(filter)).await
    }
    async fn retry_now(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.call(Operation::Change, operation::RETRY_NOW, self.inner.retry_now(seqs)).await
    }
    async fn cancel(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.call(Operation::Change, operation::CANCEL, self.inner.cancel(seqs)).await
    }
    async fn pause(&self, pause: &NewPause) -> Result<PauseChange, StoreError> {
        self.call(Operation::Change, operation::PAUSE, self.inner.pause(pause)).await
    }
    async fn resume(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError> {
        self.call(Operation::Change, operation::RESUME, self.inner.resume(kind, name)).await
    }
    async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        self.call(Operation::Inspect, operation::PAUSES, self.inner.pauses()).await
    }
    async fn count_paused(&self) -> Result<u64, StoreError> {
        self.call(Operation::Inspect, operation::COUNT_PAUSED, self.inner.count_paused()).await
    }
    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        self.call(Operation::Inspect, operation::DEAD, self.inner.dead(filter, above, limit)).await
    }
    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.call(Operation::Inspect, operation::COUNT_DEAD, self.inner.count_dead(filter)).await
    }
    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.call(Operation::Change, operation::REPLAY, self.inner.replay(seqs)).await
    }
    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.call(Operation::Change, operation::DISCARD, self.inner.discard(seqs)).await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.call(Operation::Change, operation::PURGE, self.inner.purge(purge)).await
    }
    async fn inbox_consumers(&self, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, StoreError> {
        self.call(Operation::Inspect, operation::INBOX_CONSUMERS, self.inner.inbox_consumers(after, limit)).await
    }
    async fn count_inbox(&self, consumer: &str) -> Result<u64, StoreError> {
        self.call(Operation::Inspect, operation::COUNT_INBOX, self.inner.count_inbox(consumer)).await
    }
    async fn purge_inbox(&self, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        let purge = self.inner.purge_inbox(consumer, older_than, limit);
        self.call(Operation::Change, operation::PURGE_INBOX, purge).await
    }
    async fn record_action(&self, action: &AuditedAction) -> Result<i64, StoreError> {
        self.call(Operation::Change, operation::RECORD_ACTION, self.inner.record_action(action)).await
    }
    async fn end_action(&self, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), StoreError> {
        self.call(Operation::Change, operation::END_ACTION, self.inner.end_action(id, changed, outcome)).await
    }
    async fn actions(&self, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.call(Operation::Inspect, operation::ACTIONS, self.inner.actions(below, limit)).await
    }
    async fn purge_actions(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.call(Operation::Change, operation::PURGE_ACTIONS, self.inner.purge_actions(older_than, limit)).await
    }
}
