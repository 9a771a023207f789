//! The conformance suite of every store: one test for each behaviour that [`Store`](pillarbox_core::store::Store) and the ports
//! beside it list, and the promises of the engine, tried on that store.
//!
//! A backend calls it from a test target with `harness = false`:
//!
//! ```no_run
//! # use pillarbox_testkit::MemoryHarness as MyHarness;
//! fn main() -> std::process::ExitCode {
//!     pillarbox_testkit::conformance::run::<MyHarness>()
//! }
//! ```
//!
//! The usual arguments of a test binary work: a part of a name, `--list`, `--ignored`, `--test-threads`.

mod acquire;
mod admin;
mod begin_attempt;
mod claim;
mod claim_together;
mod close;
mod complete;
mod evict;
mod failures;
mod fetch;
mod fetch_due;
mod fetch_in_a_scope;
mod identify;
mod insert;
mod insert_numbers;
mod insert_owned;
mod insert_unique;
mod join;
mod leave;
mod lookup;
mod migrate;
mod order;
mod positions;
mod read_point;
mod rebalance;
mod rebalance_together;
mod receive;
mod reclaim;
mod release;
mod renew;
mod settle;
mod settle_refuses;
mod settle_shared;
mod wake_ups;
mod writers;

use std::process::ExitCode;

use crate::Harness;
use crate::run::{Case, arguments};
use crate::scenarios;

use admin::{
    audit, backlog, blocked, control, counts, dead, inbox, nodes, partitions, pauses, pending, purge, recent, record,
    replay, states,
};

/// Runs the suite on a backend, as the `main` of a test target.
#[must_use]
pub fn run<H: Harness>() -> ExitCode {
    let cases = cases::<H>().into_iter().chain(scenarios::cases::<H>());
    let trials = cases.map(Case::into_trial).collect();
    libtest_mimic::run(&arguments(), trials).exit_code()
}

/// The registry: every behaviour, by the module of its test, with the state the tables start in.
macro_rules! behaviors {
    (@ migrated) => { true };
    (@ no) => { false };
    ($($module:ident on $tables:tt tables { $($name:ident $(needs $capability:ident)?),* $(,)? })*) => {
        /// The names of all behaviours that are tested.
        pub const BEHAVIORS: &[&str] = &[$($(stringify!($name)),*),*];

        fn cases<H: Harness>() -> Vec<Case<H>> {
            vec![$($(Case {
                name: stringify!($name),
                kind: "store",
                one_thread: false,
                migrated: behaviors!(@ $tables),
                lacking: if true $(&& H::CAPABILITIES.$capability)? { &[] } else { &[$(stringify!($capability))?] },
                test: |harness| Box::pin($module::$name(harness)),
            }),*),*]
        }
    };
}

behaviors! {
    insert on migrated tables {
        insert_gives_ascending_seqs_in_row_order,
        insert_leaves_unset_columns_to_their_defaults,
        insert_keeps_payload_bytes_as_written,
        insert_is_one_statement_for_a_batch_of_a_hundred needs sql,
        insert_takes_an_event_once_for_each_handler,
        insert_computes_delays_by_the_databases_clock,
        rolled_back_inserts_leave_nothing,
    }
    insert_numbers on migrated tables {
        insert_gives_numbers_above_those_that_a_program_made_up needs sql,
    }
    insert_owned on migrated tables {
        insert_names_the_owner_it_is_given,
    }
    insert_unique on migrated tables {
        insert_unique_writes_nothing_while_one_is_pending,
        insert_unique_writes_again_once_the_one_before_has_ended,
        insert_unique_leaves_a_replayed_event_its_key,
        insert_unique_knows_keys_to_the_byte_and_by_handler,
        insert_unique_writes_a_batch_in_order,
        insert_unique_writes_after_a_rollback,
        insert_unique_waits_for_an_open_transaction needs row_locks,
        insert_unique_concurrently_writes_one,
        insert_unique_writes_again_though_the_transaction_has_seen_less needs row_locks,
        insert_unique_keeps_nobody_from_settling_the_pending_row needs concurrent_writers,
        insert_unique_refuses_an_id_that_is_taken,
        insert_unique_leaves_an_ended_event_its_key_if_it_fails,
    }
    migrate on no tables {
        migrate_twice_changes_nothing,
        migrate_concurrently_succeeds_everywhere,
        migrate_refuses_a_newer_schema needs sql,
        migrate_leaves_a_newer_schema_that_is_compatible needs sql,
        migration_sql_names_the_configured_table needs sql,
        check_names_the_missing_schema needs sql,
        check_accepts_a_newer_schema_that_is_compatible needs sql,
    }
    join on migrated tables {
        join_refuses_a_mode_that_cannot_coexist,
        join_ignores_expired_nodes_of_another_mode,
    }
    acquire on migrated tables {
        acquire_makes_the_first_node_owner,
        acquire_by_a_second_node_is_standby_and_names_the_owner,
        acquire_again_by_the_owner_is_owner,
        acquire_takes_over_from_an_expired_node,
        acquire_by_a_node_that_was_evicted_is_lost,
        acquire_concurrently_makes_exactly_one_owner,
        acquire_says_whether_the_owner_before_had_left,
    }
    rebalance on migrated tables {
        rebalance_spreads_the_partitions_evenly,
        rebalance_takes_what_is_free_and_leaves_the_rest,
        rebalance_gives_only_what_the_node_owns,
        rebalance_gives_nothing_under_an_old_epoch,
        rebalance_tells_of_an_owner_that_died,
        rebalance_by_a_node_that_was_evicted_is_lost,
    }
    rebalance_together on migrated tables {
        rebalance_concurrently_gives_each_partition_one_owner,
    }
    renew on migrated tables {
        renew_extends_a_living_lease,
        renew_waits_for_no_other_call needs row_locks,
        renew_revives_a_node_that_nobody_evicted,
        renew_refuses_an_evicted_node,
        renew_tells_of_a_database_that_went_back,
        renew_writes_the_figures_of_the_node,
    }
    evict on migrated tables {
        evict_removes_a_node_that_did_not_renew,
        evict_spares_a_node_that_renewed,
    }
    leave on migrated tables {
        leave_frees_ownership_at_once,
        leave_twice_is_fine,
    }
    fetch on migrated tables {
        fetch_returns_committed_rows_only,
        fetch_returns_rows_in_seq_order,
        fetch_starts_above_the_given_seq,
        fetch_leaves_out_excluded_rows,
        fetch_leaves_out_event_types,
        fetch_leaves_out_handlers,
        fetch_stops_at_the_limit_of_bytes,
        fetch_leaves_no_gap_at_the_limit_of_bytes,
        fetch_never_exceeds_the_limit,
        fetch_finds_a_late_commit_below_later_rows needs concurrent_writers,
        fetch_leaves_out_done_and_dead_rows,
        fetch_reads_a_row_of_three_columns,
        fetch_hands_over_an_undecodable_row_beside_the_others,
        fetch_takes_no_event_from_a_row_without_one_payload needs sql,
        fetch_takes_no_event_from_a_row_that_is_too_large needs sql,
    }
    fetch_due on migrated tables {
        fetch_waits_for_the_due_time,
        fetch_serves_both_kinds_under_load,
        fetch_reports_the_next_due_time,
        fetch_delays_no_row_that_is_due_when_it_is_created needs sql,
    }
    fetch_in_a_scope on migrated tables {
        fetch_in_a_scope_returns_its_partitions_and_rows_without_one,
        fetch_in_a_scope_leaves_out_what_waits_behind_a_failing_head,
        fetch_in_a_scope_waits_behind_dead_heads_if_asked,
        fetch_in_a_scope_leaves_out_keys_or_reads_some_alone,
        fetch_in_a_scope_counts_interventions,
        fetch_in_a_scope_says_whether_there_are_heads,
        fetch_in_a_scope_tells_the_state_of_the_nodes_row,
    }
    claim on migrated tables {
        claim_takes_each_row_for_one_node,
        claim_returns_rows_in_seq_order_and_within_the_limit,
        claim_waits_for_the_due_time_and_reports_the_next,
        claim_serves_both_kinds_under_load,
        claim_leaves_out_event_types,
        claim_leaves_out_handlers,
        claim_stops_at_the_limit_of_bytes,
        claim_takes_back_what_the_node_forgot,
        claim_tells_of_a_holder_that_died,
        claim_by_an_unregistered_node_takes_nothing,
        claim_hands_over_an_undecodable_row_beside_the_others,
    }
    claim_together on migrated tables {
        claim_concurrently_takes_each_row_once,
    }
    release on migrated tables {
        release_frees_what_the_node_holds_and_nothing_else,
        release_leaves_another_event_with_the_same_seq_alone,
    }
    reclaim on migrated tables {
        reclaim_frees_the_rows_of_a_dead_node_at_once,
        reclaim_leaves_the_rows_of_living_nodes_alone,
        reclaim_leaves_a_row_that_was_claimed_meanwhile needs row_locks,
        reclaim_finds_rows_of_nodes_long_gone_when_thorough,
        reclaim_says_whether_the_node_is_registered_and_when_to_look_again,
    }
    identify on migrated tables {
        identify_names_the_rows_that_are_there,
        identify_leaves_out_what_is_not_committed,
        identify_sql_finds_what_the_transaction_has_written,
    }
    lookup on migrated tables {
        lookup_names_the_newest_rows_that_the_transaction_sees,
        lookup_reads_rows_as_they_are_recorded,
    }
    order on migrated tables {
        assign_partitions_sets_missing_partitions_only,
        assign_partitions_leaves_another_event_with_the_same_seq_alone,
        promote_due_puts_due_rows_in_their_place,
        promote_due_leaves_another_event_with_the_same_seq_alone,
    }
    writers on migrated tables {
        writers_knows_who_may_still_commit,
        now_is_the_clock_of_created_at,
    }
    read_point on migrated tables {
        raise_read_point_passes_no_pending_row,
        raise_read_point_waits_for_open_transactions needs concurrent_writers,
        raise_read_point_goes_back_after_an_intervention needs sql,
    }
    close on migrated tables {
        close_makes_every_call_fail_with_the_name_of_its_operation,
    }
    begin_attempt on migrated tables {
        begin_attempt_marks_the_row_and_counts_the_crashed_one,
        begin_attempt_is_refused_as_a_settle_is,
        begin_attempt_refuses_another_event_with_the_same_seq,
        begin_attempt_refuses_what_was_decided_before_a_replay,
    }
    settle on migrated tables {
        settle_done_is_terminal_and_clears_the_error,
        settle_retry_sets_attempts_error_and_due_time,
        settle_dead_keeps_the_error_and_the_attempts,
        settle_rescued_is_done_and_keeps_the_error,
        settle_retry_in_place_leaves_the_row_where_it_is,
        settle_stores_any_error_text,
        settle_keeps_payload_bytes,
        settle_remove_deletes_the_row,
        settle_leaves_the_rows_in_between_alone,
    }
    failures on migrated tables {
        settle_keeps_each_failed_attempt,
        settle_keeps_no_more_failed_attempts_than_ten,
        settle_goes_on_where_another_program_wrote_the_failures needs sql,
        begin_attempt_adds_the_crashed_one_to_the_failures,
        replay_keeps_the_failed_attempts,
    }
    positions on migrated tables {
        settle_keeps_the_position_of_a_delivered_row,
        settle_keeps_positions_beside_other_verdicts,
        settle_keeps_no_position_of_a_refused_verdict,
        replay_clears_the_position needs sql,
    }
    settle_refuses on migrated tables {
        settle_refuses_a_node_that_is_not_the_owner,
        settle_refuses_a_row_that_another_node_holds,
        settle_refuses_terminal_rows,
        settle_refuses_unexpected_attempts,
        settle_refuses_what_was_decided_before_a_replay,
        settle_refuses_another_event_with_the_same_seq,
        settle_refuses_another_handler_of_the_same_event,
        settle_twice_counts_once,
        settle_never_inserts,
    }
    receive on migrated tables {
        receive_tells_the_first_time_from_all_others,
        receive_rolled_back_leaves_nothing,
        receive_tells_ids_and_consumers_apart_byte_by_byte,
        receive_concurrently_records_a_message_once,
        receive_waits_for_the_end_of_another_transaction needs concurrent_writers,
    }
    complete on migrated tables {
        complete_commits_with_the_transaction,
        complete_clears_the_error_of_earlier_attempts,
        complete_removes_the_row_if_asked,
        complete_keeps_the_position,
        complete_rolled_back_leaves_the_row_pending,
        complete_is_refused_as_a_settle_is,
        complete_is_refused_for_rows_of_others,
        complete_concurrently_changes_the_row_once,
        complete_outside_of_a_transaction_changes_nothing needs sql,
    }
    settle_shared on migrated tables {
        settle_refuses_a_row_of_a_partition_that_is_not_owned,
    }
    wake_ups on migrated tables {
        a_notification_wakes_every_listener needs wake_ups,
    }
    counts on migrated tables {
        counts_match_the_rows,
    }
    backlog on migrated tables {
        backlog_counts_what_is_pending_and_dead,
        backlog_knows_the_age_of_the_oldest_due_row,
    }
    nodes on migrated tables {
        nodes_lists_the_registered_and_says_who_owns_the_table,
    }
    partitions on migrated tables {
        partitions_counts_what_is_pending_and_who_owns_what,
        partition_owners_names_the_owner_of_each,
    }
    blocked on migrated tables {
        blocked_lists_the_heads_that_others_wait_behind,
        head_of_tells_what_an_event_waits_behind,
    }
    record on migrated tables {
        records_show_every_column_as_stored,
        records_come_one_for_each_handler,
        record_finds_a_row_by_its_seq,
    }
    states on migrated tables {
        states_tell_how_each_row_of_an_event_stands,
        states_take_no_event_for_another,
        states_leave_out_what_is_not_committed,
    }
    recent on migrated tables {
        recent_lists_matching_events_newest_first_page_by_page,
        recent_reads_no_more_rows_than_asked_and_says_where_it_stopped,
        recent_tells_how_an_event_stands,
    }
    audit on migrated tables {
        record_action_tells_who_did_what_and_what_became_of_it,
        end_action_leaves_other_entries_alone,
        actions_lists_entries_newest_first_page_by_page,
        purge_actions_deletes_old_entries_batch_by_batch,
    }
    pending on migrated tables {
        pending_lists_matching_events_page_by_page,
        pending_tells_what_an_event_waits_for,
        count_pending_counts_what_pending_lists,
    }
    control on migrated tables {
        retry_now_makes_waiting_rows_due,
        retry_now_is_for_the_call_whose_failure_is_not_recorded_yet,
        retry_now_leaves_other_states_alone,
        cancel_ends_pending_rows_without_delivery,
        cancel_leaves_other_states_alone,
        cancel_lets_later_events_of_its_key_go_on,
        cancel_and_settle_at_once_end_a_row_once,
        interventions_are_those_that_a_fetch_counts,
    }
    pauses on migrated tables {
        interventions_tell_what_is_paused,
        pause_twice_updates_the_reason,
        pause_ends_by_the_databases_clock,
        pause_is_refused_beyond_a_thousand,
        resume_says_if_it_was_paused,
        count_paused_counts_the_due_rows_that_pauses_hold,
    }
    dead on migrated tables {
        dead_lists_matching_events_page_by_page,
        dead_is_narrowed_by_time_and_error_text,
        dead_takes_the_creation_where_no_end_is_recorded needs sql,
        count_dead_counts_what_dead_lists,
    }
    replay on migrated tables {
        replay_makes_a_dead_event_new_and_due,
        replay_leaves_other_states_alone,
        replay_goes_on_where_a_row_was_replayed_too_often_to_count needs sql,
        discard_deletes_dead_events_only,
    }
    inbox on migrated tables {
        inbox_consumers_lists_each_with_the_age_of_its_oldest_message,
        count_inbox_counts_the_messages_of_a_consumer,
        purge_inbox_deletes_old_messages_of_a_consumer_batch_by_batch,
        purge_inbox_keeps_what_is_young_or_of_others,
    }
    purge on migrated tables {
        purge_deletes_ended_rows_older_than_asked,
        purge_takes_the_creation_where_no_end_is_recorded needs sql,
        purge_of_a_key_keeps_the_rows_of_others,
        purge_keeps_pending_rows_and_other_states,
        purge_goes_on_where_it_stopped_and_says_when_it_is_over,
        purge_goes_on_behind_rows_that_were_stamped_ahead,
        purge_of_everything_stops_while_a_node_lives,
    }
}
