use std::time::Duration;

use async_trait::async_trait;
use auto_impl::auto_impl;

use super::lease_clock::USUAL_LEASE;
use super::{
    AuditEntry, AuditedAction, Counts, DeadEvent, DeadFilter, EventFilter, EventPage, FailedAttempt, InboxConsumer,
    NewPause, NodeFigures, Pause, PauseChange, PauseKind, PendingEvent, PendingFilter, RowState,
};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::event::{EventId, Payload};
use crate::ownership::NodeId;
use crate::row::{FetchedRow, RawRow, Status};

/// The error text of a row that was [cancelled](Admin::cancel).
pub const CANCELLED: &str = "cancelled by an operator";

/// True if a row with this status and error was [cancelled](Admin::cancel), and not delivered since.
pub(super) fn is_cancelled(status: i16, error: Option<&str>) -> bool {
    status == Status::Done.code() && error == Some(CANCELLED)
}

/// The `after` of the first page of a list: rows that other programs insert may have numbers of zero and less. The least number of all is
/// left out, since some databases do not read it as one of 64 bits.
pub const FIRST_PAGE: i64 = -i64::MAX;

/// The calls of operators on a store: to look at it, to cancel pending events or try them now, to replay or discard DEAD ones, to
/// purge old rows.
///
/// No method needs ownership. Pending rows are touched by [`retry_now`](Self::retry_now), [`cancel`](Self::cancel) and a purge of
/// [all rows](Purgeable::All) alone. The rules of [`Store`](super::Store) apply: calls may be
/// concurrent, and each may be dropped at any await.
#[async_trait]
#[auto_impl(Arc)]
pub trait Admin: Send + Sync {
    /// Counts rows by state. It reads the whole table, history included.
    ///
    /// # Behavior
    /// - `counts_match_the_rows`
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Counts the pending and the DEAD rows, from the indexes of these rows only: its cost does not depend on
    /// the history the table keeps.
    ///
    /// # Behavior
    /// - `backlog_counts_what_is_pending_and_dead`
    /// - `backlog_knows_the_age_of_the_oldest_due_row`
    async fn backlog(&self) -> Result<Backlog, StoreError>;

    /// The registered nodes, oldest first; those whose lease has ended included until a node evicts them.
    ///
    /// # Behavior
    /// - `nodes_lists_the_registered_and_says_who_owns_the_table`
    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError>;

    /// Counts the partitions that no node owns, and the pending rows: all, and those of the fullest partition.
    ///
    /// # Behavior
    /// - `partitions_counts_what_is_pending_and_who_owns_what`
    async fn partitions(&self) -> Result<PartitionBacklog, StoreError>;

    /// The partitions that registered nodes own, ascending, each with its owner.
    ///
    /// # Behavior
    /// - `partition_owners_names_the_owner_of_each`
    async fn partition_owners(&self) -> Result<Vec<(u8, NodeId)>, StoreError>;

    /// The keys of which an event waits for another attempt or is DEAD while later ones wait behind it, by the `seq` of that
    /// head: ascending, at most `limit`, above `above`. In modes without order, and for keys whose order is given up, they
    /// are not stopped.
    ///
    /// # Behavior
    /// - `blocked_lists_the_heads_that_others_wait_behind`
    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError>;

    /// The `seq` of the event that the pending one with this `seq` waits behind where its key is kept in order: the first before it, of
    /// the same key and handler, that waits for another attempt or is DEAD. `None` if there is none, and for rows that are not pending. It
    /// reads the heads of this key alone.
    ///
    /// # Behavior
    /// - `head_of_tells_what_an_event_waits_behind`
    async fn head_of(&self, seq: i64) -> Result<Option<i64>, StoreError>;

    /// Everything the table holds about one event, whatever its state: a record for each of its rows, ascending by `seq`.
    /// An event has one row, or one for each of its handlers if they have names; without any there is no such event.
    ///
    /// # Behavior
    /// - `records_show_every_column_as_stored`
    /// - `records_come_one_for_each_handler`
    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError>;

    /// Everything the table holds about the row with this `seq`, whatever its state.
    ///
    /// # Behavior
    /// - `record_finds_a_row_by_its_seq`
    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError>;

    /// The states of all rows of these events, in no order; none for an event that is not there. At most 1,000 events, each named
    /// once.
    ///
    /// Processes that wait for events ask it many times a second: it is one statement, which finds each event by the index of
    /// event ids, and reads no payload.
    ///
    /// # Behavior
    /// - `states_tell_how_each_row_of_an_event_stands`
    /// - `states_take_no_event_for_another`
    /// - `states_leave_out_what_is_not_committed`
    async fn states(&self, event_ids: &[EventId]) -> Result<Vec<RowState>, StoreError>;

    /// Events of any state that match, descending by `seq`, at most `limit` of them with a `seq` below `below`, and where the search
    /// has stopped. Their payloads are not read.
    ///
    /// It reads at most [`EventFilter::read_at_most`] rows, whether they match or not, so that a page takes as long on any table: the rows of
    /// an event by the index of ids, NEW, RETRY and DEAD ones by theirs, all others by the primary key. Pending rows that wait for a
    /// time are read as by [`pending`](Self::pending): all of them.
    ///
    /// # Behavior
    /// - `recent_lists_matching_events_newest_first_page_by_page`
    /// - `recent_reads_no_more_rows_than_asked_and_says_where_it_stopped`
    /// - `recent_tells_how_an_event_stands`
    async fn recent(&self, filter: &EventFilter, below: Option<i64>, limit: usize) -> Result<EventPage, StoreError>;

    /// Pending events that match, ascending by `seq`, at most `limit` of them with a `seq` above `above`. Their payloads are
    /// not read.
    ///
    /// It reads the pending rows from the indexes of these alone: those that wait for a time at each page, the others from
    /// `above` on.
    ///
    /// # Behavior
    /// - `pending_lists_matching_events_page_by_page`
    /// - `pending_tells_what_an_event_waits_for`
    async fn pending(&self, filter: &PendingFilter, above: i64, limit: usize) -> Result<Vec<PendingEvent>, StoreError>;

    /// The number of pending events that match. It reads all pending rows.
    ///
    /// # Behavior
    /// - `count_pending_counts_what_pending_lists`
    async fn count_pending(&self, filter: &PendingFilter) -> Result<u64, StoreError>;

    /// Makes rows due now that wait for a time: NEW ones that are delayed, and RETRY ones. Their state, attempts and error stay. Returns the
    /// `seq` of all that were RETRY, or NEW and delayed, in no order; the others are left alone.
    ///
    /// A call that runs is not repeated: if it fails, the row waits for the time that follows from that failure, also if that is recorded
    /// only after the row was made due.
    ///
    /// # Behavior
    /// - `retry_now_makes_waiting_rows_due`
    /// - `retry_now_is_for_the_call_whose_failure_is_not_recorded_yet`
    /// - `retry_now_leaves_other_states_alone`
    async fn retry_now(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError>;

    /// Ends pending rows without a delivery: they are DONE, with [`CANCELLED`] as their error and the attempts that they have, and held by
    /// nobody. Returns the `seq` of those that were pending, in no order; the others are left alone.
    ///
    /// A call that runs is not stopped, and its verdict is refused as on any terminal row. A handler that runs in a transaction cannot
    /// commit it any more. Nodes notice by the number of [interventions](super::Store::interventions).
    ///
    /// # Behavior
    /// - `cancel_ends_pending_rows_without_delivery`
    /// - `cancel_leaves_other_states_alone`
    /// - `cancel_lets_later_events_of_its_key_go_on`
    /// - `cancel_and_settle_at_once_end_a_row_once`
    async fn cancel(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError>;

    /// Pauses an event type or a handler, unless the table holds [the maximum number](Pause::MAX_PAUSES). A type or handler that is paused already
    /// keeps its `since`. The pauses that have ended are deleted. Nodes notice by the [interventions](super::Store::interventions).
    ///
    /// # Behavior
    /// - `pause_twice_updates_the_reason`
    /// - `pause_ends_by_the_databases_clock`
    /// - `pause_is_refused_beyond_a_thousand`
    async fn pause(&self, pause: &NewPause) -> Result<PauseChange, StoreError>;

    /// Ends a pause; false if there is none.
    ///
    /// # Behavior
    /// - `resume_says_if_it_was_paused`
    async fn resume(&self, kind: PauseKind, name: &str) -> Result<bool, StoreError>;

    /// The pauses that have not ended, ascending by kind and name.
    async fn pauses(&self) -> Result<Vec<Pause>, StoreError>;

    /// The number of pending rows that are due and held by a pause. It reads all of those that are due.
    ///
    /// # Behavior
    /// - `count_paused_counts_the_due_rows_that_pauses_hold`
    async fn count_paused(&self) -> Result<u64, StoreError>;

    /// DEAD events that match, ascending by `seq`, at most `limit` of them with a `seq` above `above`.
    ///
    /// # Behavior
    /// - `dead_lists_matching_events_page_by_page`
    /// - `dead_is_narrowed_by_time_and_error_text`
    /// - `dead_takes_the_creation_where_no_end_is_recorded`
    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError>;

    /// The number of DEAD events that match.
    ///
    /// # Behavior
    /// - `count_dead_counts_what_dead_lists`
    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError>;

    /// Makes DEAD rows NEW again: no attempts, no error, no position, no end, due at once and owned by nobody. Their failed attempts are kept. Returns the `seq` of
    /// those that were DEAD, in no order; the others are left alone.
    ///
    /// # Behavior
    /// - `replay_makes_a_dead_event_new_and_due`
    /// - `replay_keeps_the_failed_attempts`
    /// - `replay_clears_the_position`
    /// - `replay_leaves_other_states_alone`
    /// - `replay_goes_on_where_a_row_was_replayed_too_often_to_count`
    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError>;

    /// Deletes DEAD rows. Returns the `seq` of those that were DEAD, in no order; the others are left alone.
    ///
    /// # Behavior
    /// - `discard_deletes_dead_events_only`
    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError>;

    /// Deletes old rows among the next [`Purge::limit`] rows above [`Purge::above`], in one transaction.
    ///
    /// It reads the table in the order of `seq`, in which rows were also created, and is over when all rows of a step were created, and have
    /// ended, within [`Purge::older_than`]. Some of them may be: writers stamp rows by clocks of their own.
    ///
    /// # Behavior
    /// - `purge_deletes_ended_rows_older_than_asked`
    /// - `purge_takes_the_creation_where_no_end_is_recorded`
    /// - `purge_of_a_key_keeps_the_rows_of_others`
    /// - `purge_keeps_pending_rows_and_other_states`
    /// - `purge_goes_on_where_it_stopped_and_says_when_it_is_over`
    /// - `purge_goes_on_behind_rows_that_were_stamped_ahead`
    /// - `purge_of_everything_stops_while_a_node_lives`
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError>;

    /// The consumers that have messages in the inbox, ascending by the bytes of their names, at most `limit` of those behind `after`. It reads
    /// two entries of an index for each, however many messages there are.
    ///
    /// # Behavior
    /// - `inbox_consumers_lists_each_with_the_age_of_its_oldest_message`
    async fn inbox_consumers(&self, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, StoreError>;

    /// The number of messages of a consumer in the inbox, counted up to [`InboxConsumer::COUNTED_UP_TO`].
    ///
    /// # Behavior
    /// - `count_inbox_counts_the_messages_of_a_consumer`
    async fn count_inbox(&self, consumer: &str) -> Result<u64, StoreError>;

    /// Deletes the oldest messages of a consumer that were received longer ago than `older_than`, `limit` of them at most, in one
    /// transaction, and returns their number. If fewer than `limit` are deleted, no older ones are left, but for those that another
    /// transaction holds at this moment.
    ///
    /// # Behavior
    /// - `purge_inbox_deletes_old_messages_of_a_consumer_batch_by_batch`
    /// - `purge_inbox_keeps_what_is_young_or_of_others`
    async fn purge_inbox(&self, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, StoreError>;

    /// Records that somebody is about to change events, and returns the number of the entry. It is committed when the call returns, so that no
    /// change that follows is without a trace; [`end_action`](Self::end_action) adds the number of rows.
    ///
    /// # Behavior
    /// - `record_action_tells_who_did_what_and_what_became_of_it`
    async fn record_action(&self, action: &AuditedAction) -> Result<i64, StoreError>;

    /// Adds to an entry the number of rows that were changed, `None` if it is not known, and the [outcome](AuditedAction::outcome). An entry that is not there is left out.
    ///
    /// # Behavior
    /// - `end_action_leaves_other_entries_alone`
    async fn end_action(&self, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), StoreError>;

    /// Entries of the audit table, newest first, at most `limit` of those whose number is below `below`.
    ///
    /// # Behavior
    /// - `actions_lists_entries_newest_first_page_by_page`
    async fn actions(&self, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError>;

    /// Deletes the oldest entries of the audit table that are older than `older_than`, `limit` of them at most, in one transaction, and returns
    /// their number. If fewer than `limit` are deleted, no older ones are left.
    ///
    /// # Behavior
    /// - `purge_actions_deletes_old_entries_batch_by_batch`
    async fn purge_actions(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError>;
}

/// The number of rows that still have to be delivered, and of those that were given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Rows that are due: waiting for a node, or in the memory of one, or behind an earlier one that holds them up.
    pub due: u64,
    /// Rows whose time has not come: delayed, deferred, or waiting for another attempt.
    pub delayed: u64,
    /// DEAD rows.
    pub dead: u64,
    /// For how long the oldest due row has been waiting since it became due; `None` if none is.
    pub oldest_due: Option<Duration>,
}

/// A registered node, by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// Its mode's name; text, since a later release may have written it.
    pub mode: String,
    /// The time at which it registered.
    pub started_at: Timestamp,
    /// The time left of its lease if it is not renewed; `None` once it has ended.
    pub lease_left: Option<Duration>,
    /// The time at which its lease ends if it is not renewed. Each renewal changes it.
    pub expires_at: Timestamp,
    /// The length of its lease; `None` if the release that wrote the row did not record it.
    pub lease: Option<Duration>,
    /// The number of the 256 partitions that it owns. In mode `multi_node` nobody owns any.
    pub partitions: u16,
    /// Its figures as of its last renewal; `None` before the first one, and where its release records none.
    pub figures: Option<NodeFigures>,
}

impl NodeStatus {
    /// True if it lives and is of a release that records no figures: it has had the time to renew its lease, and tells nothing of itself. Such
    /// a release knows no pauses of operators either.
    #[must_use]
    pub fn is_of_an_earlier_release(&self) -> bool {
        let Some(left) = self.lease_left else { return false };
        let now = self.expires_at.minus(left);
        self.figures.is_none() && now.since(self.started_at) > self.lease.unwrap_or(USUAL_LEASE)
    }
}

/// The backlog of the partitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartitionBacklog {
    /// Partitions that no node owns.
    pub unowned: u16,
    /// Rows that are pending, whatever their due time.
    pub pending: u64,
    /// The pending rows of the fullest partition.
    pub most_pending: u64,
}

/// An event that the later ones of its key wait behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The head's place in the order of the table.
    pub seq: i64,
    /// The head's id, as stored.
    pub event_id: String,
    /// The event type.
    pub event_type: String,
    /// The key that waits.
    pub key: String,
    /// The handler that the head is for, if it is for one of several.
    pub handler: Option<String>,
    /// True if it is DEAD; otherwise it waits for another attempt.
    pub dead: bool,
    /// Failed handler calls.
    pub attempts: i32,
    /// The time until its next attempt; `None` if it is DEAD or due.
    pub due_in: Option<Duration>,
    /// The error of its last failed call.
    pub last_error: Option<String>,
    /// The number of pending rows that wait behind it, counted up to [`COUNTED_UP_TO`](Self::COUNTED_UP_TO).
    pub waiting: u64,
}

impl Blocked {
    /// The highest number of rows that are counted behind one head.
    pub const COUNTED_UP_TO: u64 = 1_000;
}

/// A row as the table holds it, nothing interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the columns")]
pub struct Record {
    pub seq: i64,
    pub event_id: String,
    pub event_type: String,
    pub aggregate_type: Option<String>,
    pub aggregate_id: Option<String>,
    pub tenant_id: Option<String>,
    pub ordering_key: Option<String>,
    pub unique_key: Option<String>,
    pub handler: Option<String>,
    /// From `payload`, or `payload_bytes` and `content_type`; `None` when neither is set.
    pub payload: Option<Payload>,
    /// The JSON text.
    pub headers: Option<String>,
    pub status: i16,
    pub attempts: i32,
    /// The number of times that it was replayed, from DEAD to NEW.
    pub replays: i32,
    pub available_at: Option<Timestamp>,
    pub occurred_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub done_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub locked_by: Option<String>,
    /// The position at which the receiver has the event, if its handler has reported one.
    pub delivered_as: Option<String>,
    /// The last failed attempts, oldest first: at most [`FailedAttempt::KEPT`].
    pub failures: Vec<FailedAttempt>,
}

impl Record {
    /// The row as a node reads it; a broken one if its columns make no event. It belongs to no partition.
    #[must_use]
    pub fn to_fetched(&self) -> FetchedRow {
        let (payload, payload_bytes, content_type) = match &self.payload {
            None => (None, None, None),
            Some(Payload::Json(json)) => (Some(&**json), None, None),
            Some(Payload::Binary { content_type, bytes }) => (None, Some(&**bytes), Some(&**content_type)),
        };
        RawRow {
            seq: self.seq,
            timed: self.available_at.is_some(),
            attempts: self.attempts.into(),
            replays: Ok(self.replays.cast_unsigned()),
            event_id: Ok(Some(&self.event_id)),
            event_type: Ok(Some(&self.event_type)),
            aggregate_type: Ok(self.aggregate_type.as_deref()),
            aggregate_id: Ok(self.aggregate_id.as_deref()),
            tenant_id: Ok(self.tenant_id.as_deref()),
            ordering_key: Ok(self.ordering_key.as_deref()),
            handler: Ok(self.handler.as_deref()),
            headers: Ok(self.headers.as_deref()),
            payload: Ok(payload),
            payload_bytes: Ok(payload_bytes),
            content_type: Ok(content_type.filter(|kind| !kind.is_empty())),
            status: Ok(Some(self.status.into())),
            partition: Ok(None),
            locked_by: Ok(self.locked_by.as_deref()),
            occurred_at: Ok(self.occurred_at.map(Timestamp::as_micros)),
            created_at: Ok(Some(self.created_at.as_micros())),
        }
        .into_fetched()
    }

    /// True if an operator has [cancelled](Admin::cancel) it: it is DONE, and was not delivered since.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        is_cancelled(self.status, self.last_error.as_deref())
    }
}

/// One step of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// The rows to delete.
    pub what: Purgeable,
    /// The minimum time since their end, or since their creation for [`Purgeable::All`] and where no end is recorded.
    pub older_than: Duration,
    /// Only rows of this key: the ordering key, or the aggregate id where a row has none. `None` for any.
    pub key: Option<String>,
    /// The `seq` at which the step begins, exclusive. [`FIRST_PAGE`] begins with the oldest row.
    pub above: i64,
    /// The maximum number of rows to look at, and so to delete.
    pub limit: usize,
}

impl Purge {
    /// The first step, which looks at up to `limit` rows of any key from the bottom of the table.
    #[must_use]
    pub const fn new(what: Purgeable, older_than: Duration, limit: usize) -> Self {
        Self { what, older_than, key: None, above: FIRST_PAGE, limit }
    }
}

/// The rows that a purge deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purgeable {
    /// DONE rows.
    Done,
    /// DEAD rows.
    Dead,
    /// Rows of any state, by the time of their creation: for tables that are read from outside, where no row ever ends.
    /// Refused with [`StoreErrorKind::IncompatibleMode`](crate::error::StoreErrorKind) while a node that delivers is alive.
    All,
}

/// The result of one step of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purged {
    /// Rows deleted.
    pub removed: u64,
    /// The `seq` at which the next step begins, exclusive; `None` when there is nothing older left.
    pub next: Option<i64>,
}
