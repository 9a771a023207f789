//! The bugs that are planted in the engine, to prove that the simulation finds them.
//!
//! Each is a line of the engine or of the in-memory store that a developer could write by mistake. It stands in the real code behind
//! `planted_bug::is_active("name")`, which is `false` in everything but the simulation.

/// A planted bug: the name by which the engine knows it, and what goes wrong.
pub type PlantedBug = (&'static str, &'static str);

/// All planted bugs.
pub const PLANTED_BUGS: &[PlantedBug] = &[
    ("both_paths_take_a_row", "The hot path takes a row that the cold path holds already."),
    (
        "caller_is_believed",
        "A row is delivered from memory on the word of a caller that its transaction has committed.",
    ),
    ("claim_forgets_its_exclusions", "A fetch asks for rows that are in memory, and takes them again."),
    ("claim_takes_what_others_hold", "A claim takes rows that another living node holds."),
    ("clear_away_before_the_lease_ends", "Nodes are evicted 200 ms before their lease ends."),
    (
        "cursor_kept_for_ever",
        "A sweep never goes back to the bottom of the table, where a transaction may commit late.",
    ),
    ("dead_one_attempt_early", "An event goes DEAD one attempt before its last."),
    ("due_rows_keep_no_place", "A due event of a key is delivered though rows below it have not been read yet."),
    ("evict_before_the_lease_is_over", "A node is evicted that has been silent for a fifth of its lease."),
    ("failed_head_drops_nothing", "What waits in memory behind an event that failed stays there."),
    ("failover_goes_unnoticed", "A node goes on with what it knows when the database has failed over."),
    ("fetch_brings_rows_early", "A fetch returns rows that are due half a second later."),
    ("fetch_ignores_heads", "A fetch returns rows of a key of which an earlier one waits for another attempt."),
    ("fetch_revives_what_was_settled", "A fetch brings back a row that was settled while it was under way."),
    ("freed_room_wakes_nobody", "Room that is freed does not wake the reader that waits for it."),
    ("give_without_epoch", "A rebalance call that arrives late gives away what the node has come to own anew."),
    (
        "given_back_row_is_forgotten_first",
        "A row is forgotten before it is given back, and given back after it was claimed again.",
    ),
    (
        "held_rows_are_overtaken",
        "An event is sent before an earlier one of its key that was left in the table during a pause.",
    ),
    ("handler_limit_is_ignored", "More calls of a handler run at once than its limit allows."),
    ("interventions_ignored", "The reader does not begin anew when an operator has replayed an event below its mark."),
    (
        "interventions_unnoticed_in_memory",
        "A node does not notice that operators have cancelled events which wait in its memory.",
    ),
    (
        "key_goes_on_while_its_head_retries",
        "The next event of a key begins while an earlier one waits for another attempt.",
    ),
    ("key_unblocked_during_a_fetch", "A key goes on with rows of a fetch that began before its failure was recorded."),
    ("lease_counted_from_the_answer", "A node counts its lease from after the answer to the renewal."),
    ("lease_held_until_refused", "A node that cannot renew its lease goes on until the database says that it is lost."),
    ("leave_changes_nothing", "A node that leaves stays registered until its lease ends."),
    ("mark_moves_unproven", "The mark of the reader moves above rows below which a transaction may still commit."),
    ("modes_run_beside_each_other", "A node joins while nodes of another mode deliver from the table."),
    ("partition_given_while_its_handler_runs", "A partition is given to another node while a handler of it runs."),
    (
        "pauses_unnoticed_in_memory",
        "A node does not notice that operators have paused the type or handler of events which wait in its memory.",
    ),
    (
        "pauses_unnoticed_when_idle",
        "A node that had nothing to do calls a handler without asking what operators have paused meanwhile.",
    ),
    (
        "read_point_ignores_open_transactions",
        "The table is read from above a row that a transaction has not committed yet.",
    ),
    ("read_point_survives_a_failover", "The table is read from where it was complete before the database went back."),
    ("receipts_out_of_step", "The receipts of a batch are taken for those of other events."),
    ("refill_skips_what_was_refused", "A row of a key behind that found no place is taken for read."),
    ("release_before_the_record", "A row is forgotten before its verdict is recorded."),
    ("retry_keeps_the_attempts", "The table does not count the attempt that failed."),
    ("rolled_back_rows_go_hot", "A row that was rolled back to a savepoint is delivered from memory."),
    ("safe_point_ignores_open_transactions", "The table is taken for complete while transactions are open."),
    ("savepoint_ignored", "A rollback to a savepoint keeps the rows."),
    ("settle_by_number_only", "A verdict changes the row at its number, whichever event that is."),
    ("settle_forgets_replays", "A verdict that was decided before a replay changes the replayed row."),
    ("settle_without_fence", "A verdict is recorded whoever owns the row."),
    ("transaction_commits_without_its_event", "A handler's transaction commits, and its event is not DONE with it."),
    (
        "transaction_frees_its_key_unannounced",
        "A handler's transaction makes a failed event DONE, and a read under way takes later events of its key for the next ones.",
    ),
    (
        "transaction_of_a_stale_owner_commits",
        "A handler's transaction commits though its event is another node's by then.",
    ),
    (
        "transaction_overtakes_verdicts",
        "A handler's transaction commits before the verdict on an earlier event of its key is recorded.",
    ),
    (
        "type_resume_unnoticed",
        "The reader does not go back to rows that were left in the table while their route was paused.",
    ),
    ("unconfirmed_is_done", "An event is DONE though its broker has not confirmed it."),
    ("wake_up_without_fallback", "Nobody is woken, and no interval makes up for it."),
];

/// The planted bug of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static PlantedBug> {
    PLANTED_BUGS.iter().find(|(known, _)| *known == name)
}
