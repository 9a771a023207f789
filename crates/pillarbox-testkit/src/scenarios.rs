//! The promises of the engine, tried on a store: the second half of the suite.

mod cancellation;
mod clocks;
mod control;
mod crash;
mod delivery;
mod drain;
mod failure;
mod follow;
mod going_back;
mod handlers;
mod in_order;
mod keys;
mod limits;
mod many_nodes;
mod outage;
mod ownership;
mod pauses;
mod queueing;
mod savepoints;
mod setting;
mod test_outbox;
mod transactions;
mod upkeep;

use pillarbox_core::ownership::NodeMode::{MultiNode, Ordered, Partitioned, SingleNode};

use crate::run::Case;
use crate::{Fault, Harness};
use queueing::LARGE;

/// The registry: every scenario, by its module. One that stands in several rows says what it is tried with in each.
macro_rules! scenarios {
    (@ $harness:ident $module:ident $name:ident) => { $module::$name($harness) };
    (@ $harness:ident $module:ident $name:ident $test:ident($($with:expr),*)) => { $module::$test($harness, $($with),*) };
    ($($module:ident {
        $($name:ident $(= $test:ident($($with:expr),*))? $(on $threads:ident thread)? $(needs $capability:ident)?),* $(,)?
    })*) => {
        pub(crate) fn cases<H: Harness>() -> Vec<Case<H>> {
            vec![$($(Case {
                name: stringify!($name),
                kind: "engine",
                one_thread: false $(|| stringify!($threads) == "one")?,
                migrated: true,
                lacking: if true $(&& H::CAPABILITIES.$capability)? { &[] } else { &[$(stringify!($capability))?] },
                test: |harness| Box::pin(scenarios!(@ harness $module $name $($test($($with),*))?)),
            }),*),*]
        }
    };
}

scenarios! {
    delivery {
        a_commit_of_the_users_own_is_delivered_from_the_table,
        a_reported_commit_is_delivered_from_memory,
        a_guarded_commit_is_delivered_from_memory,
        a_commit_right_after_the_start_is_delivered_soon,
        a_guarded_commit_begun_before_the_term_is_delivered_soon needs concurrent_writers,
        a_backlog_is_delivered_right_after_the_start,
        rolled_back_events_are_never_delivered,
        a_late_commit_is_delivered needs concurrent_writers,
        a_delayed_event_is_not_early,
        a_row_of_another_process_is_found_by_polling,
    }
    savepoints {
        events_rolled_back_to_a_savepoint_are_never_delivered = around_savepoints(SingleNode),
        events_rolled_back_to_a_savepoint_are_never_delivered_on_many_nodes = around_savepoints(MultiNode),
        without_hooks_what_is_rolled_back_is_not_delivered,
        a_commit_with_its_receipt_is_verified,
        a_receipt_of_what_was_rolled_back_delivers_nothing,
    }
    queueing {
        a_full_hot_queue_loses_nothing_and_doubles_nothing,
        a_backlog_far_beyond_memory_is_drained_in_bounded_memory,
        large_payloads_are_delivered_in_bounded_memory = large_payloads(SingleNode, LARGE),
        large_payloads_are_delivered_in_bounded_memory_on_many_nodes = large_payloads(MultiNode, LARGE),
        large_payloads_of_few_keys_are_delivered_in_bounded_memory = large_payloads(Partitioned, 3),
        large_payloads_of_many_keys_are_delivered_in_bounded_memory = large_payloads(Partitioned, LARGE),
        reporting_and_polling_race_without_a_second_call,
    }
    failure {
        a_failing_event_is_retried_and_goes_dead_at_the_limit,
        a_failure_that_passes_ends_well,
        a_panic_is_a_failure_and_the_worker_survives,
        an_unrecoverable_failure_goes_dead_uncounted,
        a_deferral_counts_no_attempt,
        rows_that_cannot_be_read_go_dead_alone,
        an_event_without_a_handler_goes_dead_or_is_parked,
    }
    handlers {
        every_named_handler_gets_a_row_of_its_own,
        each_handler_has_failures_of_its_own,
        a_batch_holds_the_rows_of_one_handler,
        a_row_for_nobody_is_unroutable,
        a_fallback_runs_once_when_retries_are_exhausted,
        a_fallback_runs_for_what_is_not_retryable,
        a_fallback_that_fails_leaves_the_event_dead,
        an_observer_of_dead_events_leaves_them_dead,
        a_fallback_ends_a_failing_head_in_order,
        a_fallback_ends_a_row_that_its_node_holds,
        errors_that_are_not_retryable_go_dead_at_once,
    }
    limits {
        a_limited_handler_runs_no_more_often_at_once = runs_no_more_often_at_once(SingleNode),
        a_limited_handler_runs_no_more_often_at_once_on_many_nodes = runs_no_more_often_at_once(MultiNode),
        a_limited_handler_runs_no_more_often_at_once_of_keys = runs_no_more_often_at_once(Partitioned),
        a_limited_handler_begins_no_more_events_than_its_rate = begins_no_more_events_than_its_rate(SingleNode),
        a_limited_handler_begins_no_more_events_than_its_rate_on_many_nodes = begins_no_more_events_than_its_rate(MultiNode),
        a_limited_handler_begins_no_more_events_than_its_rate_of_keys = begins_no_more_events_than_its_rate(Partitioned),
        a_handler_at_its_rate_holds_nobody_up = holds_nobody_up(SingleNode),
        a_handler_at_its_rate_holds_nobody_up_on_many_nodes = holds_nobody_up(MultiNode),
        a_handler_at_its_rate_holds_nobody_up_of_keys = holds_nobody_up(Partitioned),
        a_limited_handler_begins_no_more_events_than_its_rate_in_order = begins_no_more_events_than_its_rate(Ordered),
    }
    ownership {
        a_standby_takes_over_when_the_owner_leaves,
        a_standby_takes_over_when_the_owner_is_cut_off = a_node_is_cut_off(SingleNode),
        the_verdict_of_a_node_that_was_cut_off_is_refused = a_node_is_cut_off(MultiNode),
        a_node_that_was_cut_off_comes_back_as_another,
        a_receipt_from_before_another_owner_is_not_delivered_again,
        a_node_whose_registration_is_gone_notices_at_the_first_refusal,
        a_start_waits_for_the_lock_of_the_nodes,
        shutdown_finishes_what_is_queued_and_frees_the_table,
        shutdown_leaves_what_does_not_end_to_the_next_owner,
    }
    test_outbox {
        a_test_delivers_all = delivers_all(SingleNode),
        a_test_delivers_all_on_many_nodes = delivers_all(MultiNode),
        a_test_delivers_all_of_keys = delivers_all(Partitioned),
        a_test_delivers_all_in_order = delivers_all(Ordered),
    }
    drain {
        drain_ends_when_nothing_due_is_left = ends_when_nothing_due_is_left(SingleNode),
        drain_ends_when_nothing_due_is_left_on_many_nodes = ends_when_nothing_due_is_left(MultiNode),
        drain_ends_when_nothing_due_is_left_of_keys = ends_when_nothing_due_is_left(Partitioned),
        drain_ends_when_nothing_due_is_left_in_order = ends_when_nothing_due_is_left(Ordered),
        drain_leaves_delayed_rows = leaves_delayed_rows(SingleNode),
        drain_leaves_delayed_rows_on_many_nodes = leaves_delayed_rows(MultiNode),
        drain_leaves_delayed_rows_of_keys = leaves_delayed_rows(Partitioned),
        drain_leaves_delayed_rows_in_order = leaves_delayed_rows(Ordered),
        drain_ends_at_the_deadline_and_counts_the_rest = ends_at_the_deadline_and_counts_the_rest(SingleNode),
        drain_ends_at_the_deadline_and_counts_the_rest_on_many_nodes = ends_at_the_deadline_and_counts_the_rest(MultiNode),
        drain_ends_at_the_deadline_and_counts_the_rest_of_keys = ends_at_the_deadline_and_counts_the_rest(Partitioned),
        drain_ends_at_the_deadline_and_counts_the_rest_in_order = ends_at_the_deadline_and_counts_the_rest(Ordered),
        drain_ends_at_the_deadline_under_a_stream = ends_at_the_deadline_under_a_stream(SingleNode),
        drain_ends_at_the_deadline_under_a_stream_on_many_nodes = ends_at_the_deadline_under_a_stream(MultiNode),
        drain_ends_at_the_deadline_under_a_stream_of_keys = ends_at_the_deadline_under_a_stream(Partitioned),
        drain_ends_at_the_deadline_under_a_stream_in_order = ends_at_the_deadline_under_a_stream(Ordered),
        drain_waits_for_what_another_node_delivers = waits_for_what_another_node_delivers(SingleNode),
        drain_waits_for_what_another_node_delivers_on_many_nodes = waits_for_what_another_node_delivers(MultiNode),
        drain_waits_for_what_another_node_delivers_of_keys = waits_for_what_another_node_delivers(Partitioned),
        drain_waits_for_what_another_node_delivers_in_order = waits_for_what_another_node_delivers(Ordered),
        drain_leaves_no_lease = leaves_no_lease(SingleNode),
        drain_leaves_no_lease_on_many_nodes = leaves_no_lease(MultiNode),
        drain_leaves_no_lease_of_keys = leaves_no_lease(Partitioned),
        drain_leaves_no_lease_in_order = leaves_no_lease(Ordered),
        drain_does_not_wait_behind_a_failing_event,
        drain_leaves_what_no_handler_takes,
        drain_counts_the_events_of_a_paused_type,
    }
    control {
        cancelled_events_in_memory_are_not_begun = cancelled_events_leave_memory(SingleNode),
        cancelled_events_in_memory_are_not_begun_on_many_nodes = cancelled_events_leave_memory(MultiNode),
        cancelled_events_in_memory_are_not_begun_of_keys = cancelled_events_leave_memory(Partitioned),
        cancelled_events_in_memory_are_not_begun_in_order = cancelled_events_leave_memory(Ordered),
        the_verdict_on_a_cancelled_event_is_refused,
        waiting_events_are_tried_now = waiting_events_are_tried_now(SingleNode),
        waiting_events_are_tried_now_on_many_nodes = waiting_events_are_tried_now(MultiNode),
        waiting_events_are_tried_now_of_keys = waiting_events_are_tried_now(Partitioned),
        waiting_events_are_tried_now_in_order = waiting_events_are_tried_now(Ordered),
        a_delayed_event_is_delivered_now,
        a_cancelled_head_lets_its_key_go_on = a_cancelled_head_lets_the_others_go_on(Partitioned),
        a_cancelled_head_lets_the_others_go_on_in_order = a_cancelled_head_lets_the_others_go_on(Ordered),
        a_head_that_is_cancelled_during_its_call_is_not_tried_again,
        an_event_that_waits_for_a_rate_in_order_can_be_cancelled,
    }
    pauses {
        a_paused_type_stays_until_it_is_resumed = a_paused_type_is_left_in_the_table(SingleNode),
        a_paused_type_stays_until_it_is_resumed_on_many_nodes = a_paused_type_is_left_in_the_table(MultiNode),
        a_paused_type_stays_until_it_is_resumed_of_keys = a_paused_type_is_left_in_the_table(Partitioned),
        a_pause_is_noticed_in_memory = a_pause_reaches_what_waits_in_memory(SingleNode),
        a_pause_is_noticed_in_memory_on_many_nodes = a_pause_reaches_what_waits_in_memory(MultiNode),
        a_pause_is_noticed_in_memory_of_keys = a_pause_reaches_what_waits_in_memory(Partitioned),
        a_pause_is_noticed_in_memory_in_order = a_pause_reaches_what_waits_in_memory(Ordered),
        a_paused_type_takes_no_hot_path = a_paused_type_is_not_delivered_hot(SingleNode),
        a_paused_type_takes_no_hot_path_on_many_nodes = a_paused_type_is_not_delivered_hot(MultiNode),
        a_pause_is_noticed_after_idleness = an_idle_node_notices_before_its_next_call(SingleNode),
        a_pause_is_noticed_after_idleness_on_many_nodes = an_idle_node_notices_before_its_next_call(MultiNode),
        a_pause_is_noticed_after_idleness_of_keys = an_idle_node_notices_before_its_next_call(Partitioned),
        a_pause_is_noticed_after_idleness_in_order = an_idle_node_notices_before_its_next_call(Ordered),
        a_paused_type_holds_its_keys_back,
        a_paused_type_holds_a_long_key_back,
        all_wait_behind_a_paused_event_in_order,
        a_pause_holds_on_two_nodes_on_many_nodes = a_pause_holds_on_every_node(MultiNode),
        a_pause_holds_on_two_nodes_of_keys = a_pause_holds_on_every_node(Partitioned),
        a_paused_handler_holds_its_rows = a_paused_handler_holds_its_rows_alone(SingleNode),
        a_paused_handler_holds_its_rows_on_many_nodes = a_paused_handler_holds_its_rows_alone(MultiNode),
        a_paused_handler_holds_its_rows_of_keys = a_paused_handler_holds_its_rows_alone(Partitioned),
        a_pause_has_an_end = a_pause_ends_by_itself(SingleNode),
        a_pause_has_an_end_on_many_nodes = a_pause_ends_by_itself(MultiNode),
        a_pause_has_an_end_of_keys = a_pause_ends_by_itself(Partitioned),
        a_pause_has_an_end_in_order = a_pause_ends_by_itself(Ordered),
        drain_names_what_is_paused = a_drain_names_what_is_paused(SingleNode),
        drain_names_what_is_paused_on_many_nodes = a_drain_names_what_is_paused(MultiNode),
        drain_names_what_is_paused_of_keys = a_drain_names_what_is_paused(Partitioned),
        drain_names_what_is_paused_in_order = a_drain_names_what_is_paused(Ordered),
    }
    follow {
        an_event_of_another_node_is_waited_for = is_waited_for(SingleNode),
        an_event_of_another_node_is_waited_for_on_many_nodes = is_waited_for(MultiNode),
        an_event_of_another_node_is_waited_for_of_keys = is_waited_for(Partitioned),
        an_event_of_another_node_is_waited_for_in_order = is_waited_for(Ordered),
        an_event_ends_dead_with_its_error,
        an_event_ends_cancelled,
        an_event_of_several_handlers_ends_with_the_last,
        the_positions_that_handlers_report_are_told = tells_positions(SingleNode),
        the_positions_that_handlers_report_are_told_on_many_nodes = tells_positions(MultiNode),
        the_positions_that_handlers_report_are_told_of_keys = tells_positions(Partitioned),
        the_positions_that_handlers_report_are_told_in_order = tells_positions(Ordered),
        no_position_is_kept_where_none_is_wanted,
        waiting_survives_a_restart_of_the_deliverer,
        waiting_asks_nothing_when_nobody_waits,
        waiting_goes_on_when_the_database_is_back,
        waiting_ends_with_its_time_and_says_if_the_event_was_seen,
        a_row_that_is_deleted_while_it_is_waited_for_is_gone,
        waiting_is_refused_where_delivered_rows_are_deleted,
    }
    going_back {
        rows_lost_and_numbered_again_are_delivered_on_a_single_node = going_back(SingleNode),
        rows_lost_and_numbered_again_are_delivered_on_many_nodes = going_back(MultiNode),
        rows_lost_and_numbered_again_are_delivered_in_the_order_of_keys = going_back(Partitioned),
        rows_lost_and_numbered_again_are_delivered_in_order = going_back(Ordered),
    }
    clocks {
        a_dead_owner_is_evicted_though_the_clock_was_set_back = is_taken_over(SingleNode),
        a_dead_nodes_rows_are_freed_though_the_clock_was_set_back = is_taken_over(MultiNode),
        a_dead_nodes_partitions_are_taken_though_the_clock_was_set_back = is_taken_over(Partitioned),
        a_living_owner_is_not_evicted_when_the_clock_is_set_back,
        a_living_owner_keeps_the_table_when_the_clock_is_set_forward = nobody_takes_over(SingleNode) on one thread,
        living_nodes_keep_their_rows_when_the_clock_is_set_forward = nobody_takes_over(MultiNode) on one thread,
        living_nodes_keep_their_partitions_when_the_clock_is_set_forward = nobody_takes_over(Partitioned) on one thread,
        a_dead_owner_is_evicted_when_its_lease_ends_though_the_clock_was_set_forward =
            is_taken_over_in_time(SingleNode) on one thread,
        a_dead_nodes_rows_are_freed_when_its_lease_ends_though_the_clock_was_set_forward =
            is_taken_over_in_time(MultiNode) on one thread,
        a_dead_nodes_partitions_are_taken_when_its_lease_ends_though_the_clock_was_set_forward =
            is_taken_over_in_time(Partitioned) on one thread,
    }
    many_nodes {
        nodes_share_a_backlog_without_a_second_call,
        a_guarded_commit_is_delivered_from_memory_by_its_writer,
        a_reported_commit_of_the_users_own_is_claimed_at_once,
        rows_that_memory_has_no_room_for_are_claimed,
        rows_that_a_node_forgot_are_found_again,
        the_rows_of_a_dead_node_are_delivered_by_another,
        a_handler_longer_than_the_lease_runs_once,
        a_clean_stop_gives_back_what_it_holds,
        a_stop_in_the_middle_of_a_claim_gives_back_what_it_takes,
        modes_that_cannot_coexist_refuse_to_start,
        clocks_minutes_apart_change_nothing,
        a_full_hot_queue_leaves_the_rest_to_others,
        rows_that_two_guards_hold_for_the_same_room_are_left_to_others needs concurrent_writers,
        a_lost_lease_is_no_crash = losses_of_a_lease_count_no_attempt(Fault::None),
        an_outage_is_no_crash = losses_of_a_lease_count_no_attempt(Fault::Unreachable),
    }
    in_order {
        events_are_delivered_in_the_order_of_the_table,
        a_commit_is_delivered_in_order_without_polling,
        a_failing_head_holds_up_those_behind_it,
        a_deferred_head_holds_up_those_behind_it,
        a_failing_head_goes_dead_and_the_rest_go_on,
        a_standby_goes_on_with_the_failing_head,
        a_batch_handler_is_called_for_one_event_at_a_time,
        a_due_retry_keeps_its_place_beyond_memory,
        due_rows_beyond_a_fetch_are_not_overtaken,
        an_event_made_due_during_a_fetch_is_not_overtaken,
        a_failure_that_cannot_be_recorded_keeps_its_place = a_failure_that_cannot_be_recorded(false),
        a_failure_of_a_transaction_that_cannot_be_recorded_keeps_its_place = a_failure_that_cannot_be_recorded(true),
        a_failure_whose_record_has_no_answer_counts_once,
    }
    crash {
        an_event_that_kills_its_process_goes_dead = poison_among_innocents(SingleNode),
        an_event_that_kills_its_process_goes_dead_on_many_nodes = poison_among_innocents(MultiNode),
        an_event_that_kills_its_process_goes_dead_in_order = poison_among_innocents(Ordered),
        an_event_that_kills_its_process_goes_dead_in_its_key = poison_among_innocents(Partitioned),
        a_suspect_waits_for_the_record_of_the_one_before = suspects_wait_for_the_record_of_the_one_before(SingleNode),
        a_suspect_waits_for_the_record_of_the_one_before_on_many_nodes = suspects_wait_for_the_record_of_the_one_before(MultiNode),
        a_suspect_waits_for_the_record_of_the_one_before_of_its_node = suspects_wait_for_the_record_of_the_one_before(Partitioned),
        suspects_take_one_worker_of_the_handler = suspects_take_one_worker(SingleNode),
        suspects_take_one_worker_of_the_handler_on_many_nodes = suspects_take_one_worker(MultiNode),
        suspects_take_one_worker_of_the_handler_of_their_node = suspects_take_one_worker(Partitioned),
    }
    keys {
        events_of_a_key_are_delivered_in_order,
        a_commit_wakes_the_owner_of_its_key,
        a_dead_head_keeps_its_key_waiting_until_it_is_replayed,
        a_discarded_head_lets_its_key_go_on,
        a_key_goes_on_if_it_was_told_to,
        events_wait_behind_a_head_that_is_tried_again,
        events_wait_behind_a_head_that_is_deferred,
        a_slow_key_and_a_failing_key_delay_nobody_else,
        a_delayed_event_holds_nobody_up,
        rows_of_other_programs_are_delivered,
        events_are_found_after_the_table_was_emptied needs sql,
        a_writer_whose_clock_is_ahead_is_not_overtaken needs sql,
        a_late_commit_of_another_key_is_delivered needs concurrent_writers,
        a_late_commit_is_not_overtaken_by_what_was_written_after_it needs concurrent_writers,
        nodes_that_come_and_leave_deliver_nothing_twice,
        partitions_are_shared_evenly,
        the_keys_of_a_node_that_was_cut_off_go_to_another,
        a_handler_longer_than_the_drain_keeps_its_partition,
        a_handler_that_ends_when_it_is_told_to_has_not_failed,
        delivered_events_are_deleted_if_asked,
        a_settle_that_fails_for_a_while_breaks_no_order,
        a_failure_that_cannot_be_recorded_keeps_its_key_waiting,
        keys_that_operators_let_go_on_are_not_overtaken,
        a_row_that_cannot_be_read_keeps_its_key_waiting,
        a_busy_key_keeps_nobody_else_waiting,
        few_keys_of_many_workers_are_read_together,
        a_due_retry_waits_for_earlier_events_of_its_key_beyond_memory,
        each_named_handler_has_its_own_order_and_its_own_retries,
        writers_whose_clocks_differ_change_no_order,
    }
    transactions {
        a_handlers_transaction_commits_with_its_event = commits_with_its_event(SingleNode),
        a_handlers_transaction_commits_with_its_event_on_many_nodes = commits_with_its_event(MultiNode),
        a_handlers_transaction_commits_with_its_event_in_its_key = commits_with_its_event(Partitioned),
        a_handlers_transaction_commits_with_its_event_in_order = commits_with_its_event(Ordered),
        a_handler_reports_a_position_in_its_transaction,
        a_handlers_transaction_removes_its_event,
        a_failed_handlers_transaction_leaves_nothing,
        a_handler_that_gives_up_in_its_transaction_leaves_nothing,
        a_handlers_transaction_that_is_kept_is_not_committed,
        a_handlers_transaction_that_is_not_committed_counts_no_attempt needs sql,
        a_begin_that_panics_is_tried_again,
        a_begin_that_fails_holds_up_no_stop,
        a_begin_that_fails_is_not_overtaken_at_a_stop,
        a_stale_owners_transaction_is_rolled_back needs concurrent_writers,
        a_handlers_transaction_waits_for_earlier_verdicts_on_its_key = waits_for_earlier_verdicts(Partitioned),
        a_handlers_transaction_waits_for_earlier_verdicts_in_order = waits_for_earlier_verdicts(Ordered),
    }
    upkeep {
        replayed_events_are_delivered_again,
        a_running_node_purges_what_is_over,
        a_running_node_purges_the_inbox,
        a_running_node_purges_the_audit_table,
        a_node_writes_what_it_has_done_into_its_row,
        a_writer_purges_by_age,
        interceptors_run_around_the_handler,
    }
    outage {
        an_outage_while_settling_costs_no_attempt_and_no_second_call = while_settling(Fault::Unreachable),
        an_answer_lost_after_settling_costs_nothing = while_settling(Fault::LostAnswer),
        an_outage_while_fetching_only_delays,
        a_verdict_that_the_database_refuses_stops_nobody_else,
        operators_are_told_of_an_outage,
        many_events_are_read_and_recorded_in_a_few_round_trips,
    }
    cancellation {
        a_write_dropped_at_any_await_is_whole_or_absent,
        a_store_call_dropped_at_any_await_leaves_no_lock,
        a_claim_dropped_at_any_await_leaves_no_lock,
        an_operators_call_dropped_at_any_await_leaves_no_lock,
        a_rebalance_dropped_at_any_await_leaves_no_lock,
    }
}
