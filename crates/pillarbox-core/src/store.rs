//! The port to a database: the calls of the engine on a store, and the contract of a store.
//!
//! Every bullet of a `# Behavior` list has a conformance test of the same name in `pillarbox-testkit`.

mod admin;
mod attributes;
mod audit;
mod command;
mod dead;
mod division;
mod event_state;
mod examine;
mod failed_attempt;
mod figures;
mod history;
mod inbox;
mod lease_clock;
mod lookup;
mod mode_check;
pub mod operation;
mod operator_action;
mod pause;
mod pending;
mod proof;
mod recent;
pub mod refusal;
mod row_state;
pub mod schema;
mod statement;
mod table;
mod wakeup;

pub use crate::row::{BrokenRow, FetchedRow, OrderKey, Row, RowId};
pub use admin::{
    Admin, Backlog, Blocked, CANCELLED, FIRST_PAGE, NodeStatus, PartitionBacklog, Purge, Purgeable, Purged, Record,
};
pub use attributes::Attributes;
pub use audit::{AuditEntry, AuditedAction};
pub use command::{Action, Command};
pub use dead::{DeadEvent, DeadFilter};
pub use division::Division;
pub use event_state::EventState;
pub use examine::Examine;
pub use failed_attempt::FailedAttempt;
pub use figures::NodeFigures;
pub use history::{History, HistoryKeeper};
pub use inbox::InboxConsumer;
pub use lease_clock::{LeaseClock, NodesByLease};
pub use lookup::{Lookup, Question};
pub use operator_action::OperatorAction;
pub use pause::{Interventions, NewPause, Pause, PauseChange, PauseKind};
#[doc(hidden)]
pub use pending::{NO_HANDLER, NO_ROUTE};
pub use pending::{PendingEvent, PendingFilter, PendingState};
pub use proof::Proof;
pub use recent::{EventFilter, EventPage, ListedEvent, RowSet};
pub use row_state::RowState;
pub use schema::SchemaVersion;
pub use statement::{Bind, Dialect, Statement};
pub use table::TableName;
pub use wakeup::{Listener, WakeUps};

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use auto_impl::auto_impl;

use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::ownership::{Acquired, Epochs, Fence, LeaseMark, NodeId, NodeMode, Rebalanced, Reclaimed, Renewal};
use crate::row::{Expected, NewRow, Verdict};

/// A database that holds an outbox table, as the engine uses it. The calls of operators are in [`Admin`].
///
/// All methods may be called concurrently, and each may be dropped at any await: no lock, no open transaction and no
/// half-done change may outlive the call. All times that decide anything are the database's own.
///
/// A call ends by itself within [`operation::CALL_LIMIT`], with an error if the database has not answered: a liveness probe takes what lasts
/// longer for a fault of the process. [`migrate`](Self::migrate) may take an hour.
#[async_trait]
#[auto_impl(Arc)]
pub trait Store: Admin + fmt::Debug + Send + Sync + 'static {
    /// The description of this store: its SQL, its address and its table.
    fn info(&self) -> &StoreInfo;

    /// The statements that insert `rows`, for an adapter to bind on the user's transaction.
    ///
    /// # Behavior
    /// - `insert_gives_ascending_seqs_in_row_order`
    /// - `insert_leaves_unset_columns_to_their_defaults`
    /// - `insert_keeps_payload_bytes_as_written`
    /// - `insert_is_one_statement_for_a_batch_of_a_hundred`
    /// - `insert_names_the_owner_it_is_given`
    /// - `insert_gives_numbers_above_those_that_a_program_made_up`
    /// - `insert_takes_an_event_once_for_each_handler`
    /// - `insert_computes_delays_by_the_databases_clock`
    /// - `rolled_back_inserts_leave_nothing`
    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>>;

    /// The statements that insert a row with a [unique key](NewRow::unique_key), unless a row with this key is pending for the same handler.
    /// They return one number or none:
    ///
    /// | Number | Meaning |
    /// |---|---|
    /// | `seq` | The row was inserted. |
    /// | `-seq` | The row `seq` with this key is pending. |
    /// | `0` | The id of the event is taken, and the database does not refuse that by itself. |
    /// | `seq` - [`ENDED`](crate::write::ENDED) | The row `seq`, which has ended, holds the key: the statements are run again with it as `ended`. |
    /// | none | A row with this key is pending that the database cannot name. |
    ///
    /// A row that is DONE or DEAD gives up its key for the new one: these statements take it away. So a program that ends a row need not
    /// know of keys. `ended` is the `seq` of such a row, if [`find_unique`](Self::find_unique) found one.
    ///
    /// # Behavior
    /// - `insert_unique_writes_nothing_while_one_is_pending`
    /// - `insert_unique_writes_again_once_the_one_before_has_ended`
    /// - `insert_unique_leaves_a_replayed_event_its_key`
    /// - `insert_unique_knows_keys_to_the_byte_and_by_handler`
    /// - `insert_unique_writes_a_batch_in_order`
    /// - `insert_unique_writes_after_a_rollback`
    /// - `insert_unique_waits_for_an_open_transaction`
    /// - `insert_unique_concurrently_writes_one`
    /// - `insert_unique_writes_again_though_the_transaction_has_seen_less`
    /// - `insert_unique_keeps_nobody_from_settling_the_pending_row`
    /// - `insert_unique_refuses_an_id_that_is_taken`
    /// - `insert_unique_leaves_an_ended_event_its_key_if_it_fails`
    fn insert_unique<'a>(&self, row: &'a NewRow, ended: Option<i64>) -> Vec<Statement<'a>>;

    /// The statement that looks for a row with the same unique key and handler before the insert, without a lock at all levels of isolation below
    /// `SERIALIZABLE`: where
    /// [`insert_unique`](Self::insert_unique) alone would lock it for as long as the transaction lasts. It returns the `seq` of the row, negated
    /// if it is pending, or zero. `None` where nothing has to be looked for.
    fn find_unique<'a>(&self, _row: &'a NewRow) -> Option<Statement<'a>> {
        None
    }

    /// Creates or upgrades the tables. Tables that are newer and [compatible](SchemaVersion) are left as they are.
    ///
    /// # Behavior
    /// - `migrate_twice_changes_nothing`
    /// - `migrate_concurrently_succeeds_everywhere`
    /// - `migrate_refuses_a_newer_schema`
    /// - `migrate_leaves_a_newer_schema_that_is_compatible`
    async fn migrate(&self) -> Result<(), StoreError>;

    /// The SQL that [`migrate`](Self::migrate) runs on an empty database, for other migration tools.
    ///
    /// # Behavior
    /// - `migration_sql_names_the_configured_table`
    fn migration_sql(&self) -> String;

    /// Verifies that the tables are there, and of a version on which this release [can run](SchemaVersion).
    ///
    /// # Behavior
    /// - `check_accepts_a_newer_schema_that_is_compatible`
    /// - `check_names_the_missing_schema`
    async fn check(&self) -> Result<(), StoreError>;

    /// Registers a node with a lease that ends `lease` from now. First evicts the nodes whose mode cannot run
    /// beside it and whose lease has ended.
    ///
    /// # Behavior
    /// - `join_refuses_a_mode_that_cannot_coexist`
    /// - `join_ignores_expired_nodes_of_another_mode`
    async fn join(&self, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), StoreError>;

    /// Tries to become the one owner of all partitions. First evicts every node whose lease has ended, which frees
    /// what it owned, in one transaction. Here and in the other methods a [`LeaseClock`] of the store's judges which leases have ended.
    ///
    /// # Behavior
    /// - `acquire_makes_the_first_node_owner`
    /// - `acquire_by_a_second_node_is_standby_and_names_the_owner`
    /// - `acquire_again_by_the_owner_is_owner`
    /// - `acquire_takes_over_from_an_expired_node`
    /// - `acquire_by_a_node_that_was_evicted_is_lost`
    /// - `acquire_concurrently_makes_exactly_one_owner`
    /// - `acquire_says_whether_the_owner_before_had_left`
    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError>;

    /// Rebalances the partitions among the nodes, in one transaction in which no node can join, leave or rebalance.
    ///
    /// First it evicts every node whose lease has ended, which frees what it owned. Of the partitions that `node` owns,
    /// those in `give` become free, if `node` still owns them under the epoch that `give` names. Then `node` takes those that
    /// are free of its
    /// [target](crate::ownership::spread::target), which follows from the living nodes of its table in the order in which
    /// they joined. If nothing is to be given, taken or evicted, it only reads.
    ///
    /// # Behavior
    /// - `rebalance_spreads_the_partitions_evenly`
    /// - `rebalance_takes_what_is_free_and_leaves_the_rest`
    /// - `rebalance_gives_only_what_the_node_owns`
    /// - `rebalance_gives_nothing_under_an_old_epoch`
    /// - `rebalance_concurrently_gives_each_partition_one_owner`
    /// - `rebalance_tells_of_an_owner_that_died`
    /// - `rebalance_by_a_node_that_was_evicted_is_lost`
    async fn rebalance(&self, node: &NodeId, give: &Epochs) -> Result<Rebalanced, StoreError>;

    /// Moves the end of a node's lease to `lease` from now, as long as the node is registered: a lease that has ended goes on if nobody
    /// has evicted its node. `last` is the mark that the last confirmed renewal
    /// left in the node's row, if there was one: an older state is refused, since the database has gone back then.
    ///
    /// `figures` are written into the node's row with the same statement; `None` leaves those that are there.
    ///
    /// It never waits for another call of this store: a wait for a lock must not cost the node its lease.
    ///
    /// # Behavior
    /// - `renew_extends_a_living_lease`
    /// - `renew_waits_for_no_other_call`
    /// - `renew_revives_a_node_that_nobody_evicted`
    /// - `renew_refuses_an_evicted_node`
    /// - `renew_tells_of_a_database_that_went_back`
    /// - `renew_writes_the_figures_of_the_node`
    async fn renew(
        &self,
        node: &NodeId,
        lease: Duration,
        last: Option<LeaseMark>,
        figures: Option<&NodeFigures>,
    ) -> Result<Renewal, StoreError>;

    /// The history of the database as the store's connections have seen it until now. The default is a database that has only one.
    fn history(&self) -> History {
        History::default()
    }

    /// Unregisters a node and frees the partitions it owned, at once. Leaving twice is not an error. Rows that name it in
    /// `locked_by` are given back before, by [`release`](Self::release); the others wait for a thorough
    /// [`reclaim`](Self::reclaim).
    ///
    /// # Behavior
    /// - `leave_frees_ownership_at_once`
    /// - `leave_twice_is_fine`
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Evicts a node whose lease was not renewed since it was `seen`, in one transaction in which no node can join, leave or
    /// rebalance; whether the lease has ended by the database's clock does not matter. Its partitions become free, as those of a node that
    /// died. True if it was evicted.
    ///
    /// # Behavior
    /// - `evict_removes_a_node_that_did_not_renew`
    /// - `evict_spares_a_node_that_renewed`
    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError>;

    /// Reads pending rows that are due.
    ///
    /// A row has a due time if `available_at` is set, except a NEW one whose `available_at` is not after its `created_at`: writers
    /// that stamp both by a clock of their own mean no delay. Two kinds of rows are due: those without a due time, oldest `seq` first and only above [`Fetch::above`]; and those
    /// whose due time has passed, oldest due time first. When both abound, rows with a due time get a third of
    /// [`Fetch::limit`], rounded up, and the others the rest: a storm of retries leaves most of the room to new events. Of
    /// each kind, reading stops with the row that brings its payloads and headers to [`Fetch::max_bytes`].
    ///
    /// # Behavior
    /// - `fetch_returns_committed_rows_only`
    /// - `fetch_returns_rows_in_seq_order`
    /// - `fetch_starts_above_the_given_seq`
    /// - `fetch_leaves_out_excluded_rows`
    /// - `fetch_never_exceeds_the_limit`
    /// - `fetch_finds_a_late_commit_below_later_rows`
    /// - `fetch_waits_for_the_due_time`
    /// - `fetch_serves_both_kinds_under_load`
    /// - `fetch_reports_the_next_due_time`
    /// - `fetch_delays_no_row_that_is_due_when_it_is_created`
    /// - `fetch_leaves_out_done_and_dead_rows`
    /// - `fetch_reads_a_row_of_three_columns`
    /// - `fetch_hands_over_an_undecodable_row_beside_the_others`
    /// - `fetch_takes_no_event_from_a_row_without_one_payload`
    /// - `fetch_takes_no_event_from_a_row_that_is_too_large`
    /// - `fetch_leaves_out_event_types`
    /// - `fetch_leaves_out_handlers`
    /// - `fetch_stops_at_the_limit_of_bytes`
    /// - `fetch_leaves_no_gap_at_the_limit_of_bytes`
    ///
    /// With a [`Fetch::scope`]:
    /// - `fetch_in_a_scope_returns_its_partitions_and_rows_without_one`
    /// - `fetch_in_a_scope_leaves_out_what_waits_behind_a_failing_head`
    /// - `fetch_in_a_scope_waits_behind_dead_heads_if_asked`
    /// - `fetch_in_a_scope_leaves_out_keys_or_reads_some_alone`
    /// - `fetch_in_a_scope_counts_interventions`
    /// - `fetch_in_a_scope_says_whether_there_are_heads`
    /// - `fetch_in_a_scope_tells_the_state_of_the_nodes_row`
    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError>;

    /// Takes pending rows that are due for `node`, which from now on holds them, and returns them: those that nobody
    /// holds, whose holder died, or that `node` itself holds and does not exclude (it has forgotten them). Rows that
    /// another node is taking at this moment are passed over, not waited for. Which rows are due and how many are
    /// returned is as in [`fetch`](Self::fetch).
    ///
    /// A row that says `!`, or `node!`, says `node!` from now on: the mark of an attempt that never ended is kept until
    /// it is counted. [`Row::locked_by`] is the value before. A node that is not registered takes nothing.
    ///
    /// # Behavior
    /// - `claim_takes_each_row_for_one_node`
    /// - `claim_concurrently_takes_each_row_once`
    /// - `claim_returns_rows_in_seq_order_and_within_the_limit`
    /// - `claim_waits_for_the_due_time_and_reports_the_next`
    /// - `claim_serves_both_kinds_under_load`
    /// - `claim_takes_back_what_the_node_forgot`
    /// - `claim_tells_of_a_holder_that_died`
    /// - `claim_by_an_unregistered_node_takes_nothing`
    /// - `claim_hands_over_an_undecodable_row_beside_the_others`
    /// - `claim_leaves_out_event_types`
    /// - `claim_leaves_out_handlers`
    /// - `claim_stops_at_the_limit_of_bytes`
    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError>;

    /// Gives up rows that `node` holds, so that any node may deliver them: `locked_by` is NULL again, whether an attempt
    /// was announced (`node!`) or not, since the node lives and has ended it. Other rows are left alone.
    ///
    /// # Behavior
    /// - `release_frees_what_the_node_holds_and_nothing_else`
    /// - `release_leaves_another_event_with_the_same_seq_alone`
    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError>;

    /// Evicts the nodes whose lease has ended, and frees the rows whose holder is not
    /// registered, all in one transaction in which no node can join. A freed row says `?` in `locked_by`, or `!` if an
    /// attempt had begun; see [`PriorAttempt`](crate::ownership::PriorAttempt).
    ///
    /// Looking at rows costs as much as there are pending ones without a due time, so unless `thorough` it is done only
    /// if a node was evicted.
    ///
    /// # Behavior
    /// - `reclaim_frees_the_rows_of_a_dead_node_at_once`
    /// - `reclaim_leaves_the_rows_of_living_nodes_alone`
    /// - `reclaim_leaves_a_row_that_was_claimed_meanwhile`
    /// - `reclaim_finds_rows_of_nodes_long_gone_when_thorough`
    /// - `reclaim_says_whether_the_node_is_registered_and_when_to_look_again`
    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError>;

    /// Writes partitions into rows that have none, or one that does not exist, as rows inserted by other programs may;
    /// rows that have one are left alone. The partition follows from the row's key, so that every node writes the same.
    ///
    /// # Behavior
    /// - `assign_partitions_sets_missing_partitions_only`
    /// - `assign_partitions_leaves_another_event_with_the_same_seq_alone`
    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError>;

    /// Takes the due time from pending rows among `rows` whose time has come: from now on they stand where their `seq` puts
    /// them. Their state stays.
    ///
    /// # Behavior
    /// - `promote_due_puts_due_rows_in_their_place`
    /// - `promote_due_leaves_another_event_with_the_same_seq_alone`
    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError>;

    /// The rows that stand at these places, whatever their state; none for a place without a row. In no order.
    ///
    /// # Behavior
    /// - `identify_names_the_rows_that_are_there`
    /// - `identify_leaves_out_what_is_not_committed`
    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError>;

    /// The query of [`identify`](Self::identify), for an adapter to run in the transaction that wrote the rows. It has no values
    /// to bind, so that it can share a round trip with a `COMMIT`. `None` without SQL.
    ///
    /// # Behavior
    /// - `identify_sql_finds_what_the_transaction_has_written`
    fn identify_sql(&self, seqs: &[i64]) -> Option<String>;

    /// The statement that answers a question about the table, for an adapter to run in the user's transaction.
    ///
    /// # Behavior
    /// - `lookup_names_the_newest_rows_that_the_transaction_sees`
    /// - `lookup_reads_rows_as_they_are_recorded`
    fn lookup<'a>(&self, question: Question<'a>) -> Lookup<'a>;

    /// The highest `seq` that is visible, and the transactions that may still commit rows at or below it.
    ///
    /// # Behavior
    /// - `writers_knows_who_may_still_commit`
    async fn writers(&self) -> Result<Writers, StoreError>;

    /// Raises the table's read point: the `seq` at or below which no event waits for its first attempt, and none can be committed
    /// any more. A store that keeps one begins there where a fetch or a claim reads from the lowest pending row, instead of
    /// passing over all that was ever delivered. The default keeps none.
    ///
    /// The point and its [`Proof`] are kept beside the rows, and change in transactions: so they go back with them when the
    /// database fails over or is restored, and every node goes on with the proof that another one has begun. Rows that are made
    /// pending by hand are found again, if the program that does it counts an [intervention](Fetched::interventions).
    ///
    /// False if somebody else has raised it a moment ago, or does so now: then nothing was done.
    ///
    /// # Behavior
    /// - `raise_read_point_passes_no_pending_row`
    /// - `raise_read_point_waits_for_open_transactions`
    /// - `raise_read_point_goes_back_after_an_intervention`
    async fn raise_read_point(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// The database's time: the clock that `created_at` and due times are read by.
    ///
    /// # Behavior
    /// - `now_is_the_clock_of_created_at`
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// The number of times that operators have intervened, as [`Fetched::interventions`] counts them, and what they have paused: a small
    /// read of one statement, by which a node notices that it has to look at the table anew.
    ///
    /// # Behavior
    /// - `interventions_are_those_that_a_fetch_counts`
    /// - `interventions_tell_what_is_paused`
    async fn interventions(&self) -> Result<Interventions, StoreError>;

    /// Announces that an attempt begins: sets `locked_by` to [`begun_by`](crate::ownership::begun_by), so that should
    /// the process die the attempt is known to have never ended. If `attempts` is above the expected ones, an earlier attempt
    /// is found to have ended that way, and `attempts` and `error` are recorded, also as a [`FailedAttempt`]. False if that changed nothing, for the
    /// reasons for which a settle is refused.
    ///
    /// # Behavior
    /// - `begin_attempt_marks_the_row_and_counts_the_crashed_one`
    /// - `begin_attempt_adds_the_crashed_one_to_the_failures`
    /// - `begin_attempt_is_refused_as_a_settle_is`
    /// - `begin_attempt_refuses_another_event_with_the_same_seq`
    /// - `begin_attempt_refuses_what_was_decided_before_a_replay`
    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError>;

    /// Records verdicts, in one transaction, and returns the `seq` of those that changed nothing: the row is gone or
    /// terminal, is of another event or handler, has other attempts or replays than expected, or is not `node`'s as `fence` sees it; a
    /// node that is not registered owns nothing, whatever rows say. The answer is in no order.
    ///
    /// A row whose verdict is recorded is held by nobody any more, except after [`Change::RetryInPlace`](crate::row::Change).
    ///
    /// With a failure, the row keeps it as a [`FailedAttempt`]: with each verdict that has an error and counts an attempt, gives the event
    /// up or says that a fallback rescued it.
    ///
    /// # Behavior
    /// - `settle_done_is_terminal_and_clears_the_error`
    /// - `settle_retry_sets_attempts_error_and_due_time`
    /// - `settle_dead_keeps_the_error_and_the_attempts`
    /// - `settle_rescued_is_done_and_keeps_the_error`
    /// - `settle_retry_in_place_leaves_the_row_where_it_is`
    /// - `settle_refuses_a_node_that_is_not_the_owner`
    /// - `settle_refuses_a_row_that_another_node_holds`
    /// - `settle_refuses_a_row_of_a_partition_that_is_not_owned`
    /// - `settle_refuses_terminal_rows`
    /// - `settle_refuses_unexpected_attempts`
    /// - `settle_refuses_what_was_decided_before_a_replay`
    /// - `settle_refuses_another_event_with_the_same_seq`
    /// - `settle_refuses_another_handler_of_the_same_event`
    /// - `settle_twice_counts_once`
    /// - `settle_never_inserts`
    /// - `settle_stores_any_error_text`
    /// - `settle_keeps_payload_bytes`
    /// - `settle_remove_deletes_the_row`
    /// - `settle_leaves_the_rows_in_between_alone`
    /// - `settle_keeps_each_failed_attempt`
    /// - `settle_keeps_no_more_failed_attempts_than_ten`
    /// - `settle_goes_on_where_another_program_wrote_the_failures`
    /// - `settle_keeps_the_position_of_a_delivered_row`
    /// - `settle_keeps_positions_beside_other_verdicts`
    /// - `settle_keeps_no_position_of_a_refused_verdict`
    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError>;

    /// The change that makes a row DONE, or removes it, as [`settle`](Self::settle) does, for an adapter to make in the transaction in which
    /// its handler works. `verdict` is [`Change::Done`](crate::row::Change::Done), [`Change::DeliveredAs`](crate::row::Change::DeliveredAs) or
    /// [`Change::Remove`](crate::row::Change::Remove).
    ///
    /// It changes one row, or none for the reasons for which a settle is refused. Until the transaction ends, any other settle of the
    /// row waits for it, as does the removal of the node.
    ///
    /// # Behavior
    /// - `complete_commits_with_the_transaction`
    /// - `complete_clears_the_error_of_earlier_attempts`
    /// - `complete_removes_the_row_if_asked`
    /// - `complete_keeps_the_position`
    /// - `complete_rolled_back_leaves_the_row_pending`
    /// - `complete_is_refused_as_a_settle_is`
    /// - `complete_is_refused_for_rows_of_others`
    /// - `complete_concurrently_changes_the_row_once`
    /// - `complete_outside_of_a_transaction_changes_nothing`
    fn complete<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a>;

    /// The statement that a handler's transaction begins with, where [`complete`](Self::complete) could not tell otherwise that it has
    /// ended meanwhile, by the handler or by the database itself; `None` where it can.
    fn mark_transaction(&self) -> Option<Statement<'static>> {
        None
    }

    /// The change that records a message of a consumer in the inbox, unless it is there, for an adapter to make in the user's transaction.
    /// Both texts have been checked: not empty, without NUL, 64 and 255 bytes long at most.
    ///
    /// It changes one row if the message was not there, and another number of rows if this transaction, or one that has committed,
    /// recorded it before. While another one that has recorded it is open, it waits for that one's end, or fails.
    ///
    /// # Behavior
    /// - `receive_tells_the_first_time_from_all_others`
    /// - `receive_rolled_back_leaves_nothing`
    /// - `receive_tells_ids_and_consumers_apart_byte_by_byte`
    /// - `receive_concurrently_records_a_message_once`
    /// - `receive_waits_for_the_end_of_another_transaction`
    fn receive<'a>(&self, consumer: &'a str, message_id: &'a str) -> Command<'a>;

    /// True if one transaction at a time can write: then handlers with a transaction take turns, so that never more than one of them is
    /// ahead of the engine's own writes.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// True if two calls of [`settle`](Self::settle) at once, between which these verdicts are divided, take less time than one call with
    /// all of them: a database of one writer says no.
    fn settles_in_parallel(&self, verdicts: &[Verdict], division: Division) -> bool {
        let _ = (verdicts, division);
        false
    }

    /// The means by which processes wake each other through this database, if it has any.
    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        None
    }

    /// A view of this store through which a doctor examines it, each statement of which ends within `limit`. It connects when it is first
    /// asked. The default is a store that has no conditions of its own to look for.
    fn examiner(&self, limit: Duration) -> Option<Arc<dyn Examine>> {
        let _ = limit;
        None
    }

    /// Closes the store's connections. Calls after it fail; calling it twice is fine.
    ///
    /// # Behavior
    /// - `close_makes_every_call_fail_with_the_name_of_its_operation`
    async fn close(&self);
}

/// An attempt that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunAttempt {
    /// The row.
    pub row: RowId,
    /// The state that the row must be in.
    pub expected: Expected,
    /// The attempts it is to hold: one more if an earlier one was found to have crashed.
    pub attempts: u32,
    /// The error of the crashed attempt; `None` leaves what the row holds.
    pub error: Option<String>,
}

/// The description of a store: for logs, errors and the check that a connection fits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreInfo {
    /// Its SQL.
    pub dialect: Dialect,
    /// The address of the database, without credentials: `localhost:5432/shop`, a file path.
    pub address: String,
    /// The event table's name as configured: `outbox_event`, `billing.outbox_event`.
    pub table: String,
}

impl StoreInfo {
    /// Describes a store.
    #[must_use]
    pub fn new(dialect: Dialect, address: impl Into<String>, table: impl Into<String>) -> Self {
        Self { dialect, address: address.into(), table: table.into() }
    }
}

/// Selects the pending rows to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Rows without a due time are read only above this `seq`. Zero reads from the lowest pending one.
    pub above: i64,
    /// Rows to leave out: the ones already in this node's memory.
    pub exclude: Vec<i64>,
    /// The maximum number of rows to return; above zero.
    pub limit: usize,
    /// Payload bytes; above zero. Of the rows without a due time, and of those with one, the row that reaches it is the last: so the
    /// first row always comes, however large it is.
    pub max_bytes: usize,
    /// Only rows that a node that owns groups of keys may deliver now; `None` for any row. [`Store::claim`] knows no scope.
    pub scope: Option<FetchScope>,
    /// Event types to leave out, due or not: their route is paused, an operator has paused them, or their handler is at its limit.
    /// A short list.
    pub without_types: Vec<Box<str>>,
    /// Handlers whose rows are left out likewise; rows for no handler in particular are not. A short list.
    pub without_handlers: Vec<Box<str>>,
}

impl Fetch {
    /// Reads up to `limit` rows of any kind, from the lowest pending one, whatever their size.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            above: 0,
            exclude: Vec::new(),
            limit,
            max_bytes: usize::MAX,
            scope: None,
            without_types: Vec::new(),
            without_handlers: Vec::new(),
        }
    }
}

/// Selects the pending rows that a node that owns groups of keys may deliver now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchScope {
    /// Rows of these partitions, and rows that have none yet, or one that does not exist.
    pub partitions: RangeInclusive<u8>,
    /// The rows that make the later rows of a key wait.
    pub heads: Heads,
    /// Keys to leave out: memory holds enough of them.
    pub without: Vec<OrderKey>,
    /// Rows of these keys only; if there are none, of any.
    pub only: Vec<OrderKey>,
    /// The node that reads.
    pub node: Option<NodeId>,
}

/// The rows that make the later rows of a key wait. A row's key is its ordering key, or where that is missing its aggregate id;
/// rows without either wait for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Heads {
    /// None: a row is delivered while an earlier one of its key waits for another attempt.
    None,
    /// An earlier row of the key, and of the same handler, in state RETRY.
    Retry,
    /// As before, or in state DEAD.
    RetryAndDead,
}

/// The highest visible `seq`, and the transactions that may still commit rows at or below it: the answer of [`Store::writers`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writers {
    /// The highest `seq` that is visible; zero for an empty table. The last number that was given, where that is lower, as in a table that was
    /// copied: later rows stand above it.
    pub highest: i64,
    /// The transactions that may still commit rows at or below it, or at or below one that was the highest before rows were deleted, each by
    /// one name or several, none of which is another's while it is remembered; `None` where the database does not tell, and where numbers do
    /// not ascend.
    pub open: Option<Vec<String>>,
    /// The names in `open` of prepared transactions, which may have gone by another name before they were prepared.
    pub prepared: Vec<String>,
}

/// The highest `seq` that is visible; the highest there can be if the database does not tell.
pub async fn highest_seq(store: &dyn Store) -> i64 {
    store.writers().await.map_or(i64::MAX, |writers| writers.highest)
}

/// The result of a fetch.
#[derive(Debug, Default)]
pub struct Fetched {
    /// The rows: those without a due time ascending by `seq`, and those with one ascending by due time.
    pub rows: Vec<FetchedRow>,
    /// True if reading stopped at [`Fetch::max_bytes`]: there may be more rows, though fewer than the limit were returned.
    pub truncated: bool,
    /// The time until the next row with a due time is due, by the database's clock. Known when fewer rows than the limit
    /// were returned and the result is not truncated; `None` otherwise, and when no row waits for a time.
    pub next_due: Option<Duration>,
    /// The number of times that operators have replayed or discarded DEAD rows, have cancelled pending ones or made them due, or have purged
    /// others than DONE ones, which may have made rows due: at least the number that was true when the rows were read. With a [`Fetch::scope`]; otherwise zero.
    pub interventions: i64,
    /// True if any row of the table was RETRY or DEAD when the rows were read, or after. False if the scope does not ask about
    /// [`Heads`].
    pub has_heads: bool,
    /// The state of the reading node's row when the rows were read, or after. `None` unless the scope names the node and it is
    /// registered.
    pub lease: Option<LeaseMark>,
}

/// The number of rows in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting for their first attempt.
    pub new: u64,
    /// Delivered.
    pub done: u64,
    /// Waiting for another attempt.
    pub retry: u64,
    /// Given up; they wait for a replay or a discard.
    pub dead: u64,
    /// Cancelled by an operator before they were delivered. Their rows are DONE, and are kept as long as those.
    pub cancelled: u64,
    /// Rows with an unknown status, written by another program. They are neither delivered nor listed as pending, and only a purge of
    /// [all rows](Purgeable::All) deletes them.
    pub unknown: u64,
}

impl Counts {
    /// Rows that still have to be delivered.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.new + self.retry
    }
}
