//! The safe point: from which `seq` on the owner of a partition reads.
//!
//! Rows appear out of order, as [`Proof`](pillarbox_core::store::Proof) explains: below rows that were read long ago, and before one of
//! their key that was written later. The reader therefore reads from a *mark*, and moves it only to where the table is proven to be
//! complete.
//!
//! ```text
//!   writers                    database                                    one node, in one term
//!   ┌──────────────────┐      ┌─────────────────────────────────────┐     ┌────────────────────────────────────────────┐
//!   │ write: a number  │─────▶│ last number given                   │     │ mark: nothing at or below it is to be read │
//!   │ insert           │      │ transactions: names, rows           │ ask │ safe point: the table is complete up to it │
//!   │ undo (savepoint) │      │                                     │◀───▶│                                            │
//!   │ prepare          │      │   ┌─ mark      ┌─ highest           │fetch│ rows in memory:                            │
//!   │ commit, roll back│─────▶│ 1 2 3 · 5 · 7 8   rows: NEW, RETRY, │────▶│   queued ─deliver─▶ ended ─record─▶ gone   │
//!   └──────────────────┘      │                   DEAD, DONE        │take │   refused: rests                           │
//!   operators ── replay, ────▶│ interventions                       │     │ keys that are blocked; the lowest row that │
//!               discard       │ the state of the node's row         │◀────│   was put back below the mark              │
//!                             └─────────────────────────────────────┘settle                                            │
//!                                ▲ goes back to older rows and numbers    └────────────────────────────────────────────┘
//! ```
//!
//! Where the steps are in the code:
//!
//! | Here | There |
//! |---|---|
//! | `ask`, `learn` | `SafePoint::advance`, and the statement `writers.sql`: first its snapshot, then its list of transactions. What follows from an answer decides the engine's own [`SafePoint`](proof::SafePoint). |
//! | `fetch` | `OrderedPoller::read` in `claim/ordered_poller.rs` up to its statement, with `KeyedQueue::begin_fetch` |
//! | `take` | the rest of it: interventions, `promote_due`, `FetchGuard::admit`, `KeyedQueue::push`, and where the mark goes |
//! | `deliver` | a worker from `KeyedQueue::pop` to `KeyedQueue::ended` |
//! | `record`, `answer` | `Store::settle`; `Settler::settled` with `KeyedQueue::recorded` and `Registry::remove` |
//! | `notices` | `HistoryGuard::check_history` and `HistoryGuard::check_mark`; `OrderedPoller::restart_if_history_changed` |
//!
//! How the things that happen look here:
//!
//! - The mark is *in memory only*. Whoever comes to own a partition reads it from the bottom. So a crash and a hand-over are the same
//!   here: the next reader knows nothing.
//! - A *slow transaction* is one whose commit is a step not taken. One without an end keeps the mark where it is.
//! - A transaction that is *prepared* loses its first name at once, as on PostgreSQL before 14.1, 13.5 and 12.9; later releases do
//!   when they restart.
//! - A *database that does not tell* which transactions are open, as MySQL and MariaDB, is believed to end each within two ticks.
//! - A *database that goes back* has the rows, the numbers and the node's row of an earlier moment; its open transactions are gone, and
//!   the numbers are given again. What the node has read may still be on its way to its memory.
//! - The reader never reads from the bottom for no reason. The engine does so at least every 15 s, for rows that are changed by
//!   hand, and would find what the protocol forgot: here it must forget nothing.
//! - A failed event makes its key wait, RETRY or DEAD ([`FailingKey::Wait`](pillarbox_engine::run::FailingKey)).
//! - Transactions begin in their order; another order is another instance.
//!
//! Left out: several runs of partitions beside each other, which share the safe point and nothing else; backlogged keys and classes
//! that are passed over, whose places move as the mark does; rows without a partition; the other modes. `ordered` reads from the
//! bottom every time, and has no mark. `single_node` and `multi_node` keep no order, and visit the bottom every few seconds.

mod database;
mod instance;
#[allow(
    dead_code,
    clippy::items_after_test_module,
    reason = "most of it is the text of the engine, of which the model takes the decision"
)]
mod proof;
mod properties;
mod protocol;
mod reader;

use super::{breaks, holds};
use instance::{Flaw, GoesBack, Instance};
use properties::{BELOW_THE_OPEN, COMMITTED, FOUND, IN_ORDER, ONCE};

/// A transaction, one of another key beside it, and one of the first key that may come after it.
fn writers() -> Instance {
    Instance {
        transactions: vec![vec!['a'], vec!['b'], vec!['a']],
        limit: 2,
        delayed: None,
        rolls_back: false,
        prepares: false,
        tells: true,
        long: false,
        fails: 0,
        dies: false,
        crashes: 0,
        goes_back: None,
        slow_queries: false,
        slow_verdicts: false,
        late_answers: false,
        crowded: false,
        flaw: None,
    }
}

/// Transactions that go back to savepoints, or end without a commit.
fn roll_backs() -> Instance {
    Instance { transactions: vec![vec!['a', 'a'], vec!['b']], limit: 1, rolls_back: true, ..writers() }
}

/// Transactions that are prepared and end later, while the reader looks at them.
fn prepared() -> Instance {
    Instance { transactions: vec![vec!['a'], vec!['b']], prepares: true, slow_queries: true, ..writers() }
}

/// A database that does not tell which transactions are open.
fn untold() -> Instance {
    Instance { transactions: vec![vec!['a'], vec!['b']], tells: false, ..writers() }
}

/// An event that fails, with one of its key behind it.
fn failures() -> Instance {
    Instance { transactions: vec![vec!['a'], vec!['a']], fails: 1, slow_verdicts: true, ..writers() }
}

/// The same while memory holds so many rows that fetches bring some of them again. Then the code has a gap: a row that is due while
/// its RETRY is recorded and not answered loses its due time, and is found by the next poll from the bottom.
fn crowded() -> Instance {
    Instance { crowded: true, ..failures() }
}

/// An event that goes DEAD, and what operators do about it.
fn operators() -> Instance {
    Instance { dies: true, ..failures() }
}

/// An event with a delay between two without.
fn delays() -> Instance {
    Instance { transactions: vec![vec!['a'], vec!['a'], vec!['a']], delayed: Some(1), limit: 1, ..writers() }
}

/// A partition that comes to another node.
fn hand_overs() -> Instance {
    Instance { transactions: vec![vec!['a'], vec!['a']], crashes: 1, slow_verdicts: true, ..writers() }
}

/// A database that comes to hold older data.
fn goes_back(how: GoesBack) -> Instance {
    let slow_verdicts = how == GoesBack::Restarts;
    Instance { goes_back: Some(how), crashes: 0, slow_verdicts, ..hand_overs() }
}

#[test]
fn events_that_commit_late_are_read_before_those_written_after_them() {
    holds(writers());
    holds(roll_backs());
}

#[test]
fn a_prepared_transaction_is_waited_for() {
    holds(prepared());
}

#[test]
fn transactions_that_the_database_does_not_tell_have_their_time() {
    holds(untold());
}

#[test]
fn events_behind_a_failed_one_are_found_below_the_mark() {
    holds(failures());
    holds(operators());
}

#[test]
fn a_delayed_event_takes_its_place() {
    holds(delays());
}

#[test]
fn the_next_owner_reads_what_the_last_one_had_in_memory() {
    holds(hand_overs());
}

#[test]
fn the_mark_ends_with_the_history_of_its_database() {
    holds(goes_back(GoesBack::FailsOver));
    holds(goes_back(GoesBack::IsRestored));
    holds(goes_back(GoesBack::Restarts));
}

#[test]
fn a_mark_that_passes_open_transactions_lets_events_overtake() {
    let flawed = || Instance { flaw: Some(Flaw::IgnoresOpenTransactions), ..writers() };
    breaks(BELOW_THE_OPEN, flawed());
    breaks(IN_ORDER, flawed());
}

#[test]
fn a_mark_at_the_last_row_that_was_read_passes_open_transactions() {
    breaks(BELOW_THE_OPEN, Instance { flaw: Some(Flaw::MarksWhatWasRead), ..writers() });
}

#[test]
fn transactions_that_are_read_before_the_snapshot_leave_out_later_ones() {
    breaks(BELOW_THE_OPEN, Instance { flaw: Some(Flaw::ReadsTransactionsFirst), ..prepared() });
}

#[test]
fn a_prepared_transaction_under_another_name_is_passed() {
    breaks(BELOW_THE_OPEN, Instance { flaw: Some(Flaw::ForgetsNewNames), ..prepared() });
}

#[test]
fn a_proof_from_after_the_read_passes_what_was_committed_since() {
    breaks(FOUND, Instance { flaw: Some(Flaw::ProvesAfterTheRead), ..writers() });
}

#[test]
fn rows_of_open_transactions_are_not_events() {
    breaks(COMMITTED, Instance { flaw: Some(Flaw::ReadsUncommittedRows), ..writers() });
}

#[test]
fn a_row_that_was_put_back_below_the_mark_is_forgotten() {
    breaks(FOUND, Instance { flaw: Some(Flaw::ForgetsWhatWasPutBack), ..failures() });
}

#[test]
fn events_in_memory_overtake_one_that_fails() {
    breaks(IN_ORDER, Instance { flaw: Some(Flaw::GoesOnBehindAFailure), ..failures() });
}

#[test]
fn a_fetch_from_before_a_failure_brings_what_has_to_wait_for_it() {
    breaks(IN_ORDER, Instance { flaw: Some(Flaw::UnblocksDuringAFetch), ..failures() });
}

#[test]
fn a_fetch_that_does_not_ask_for_heads_brings_what_waits_behind_them() {
    breaks(IN_ORDER, Instance { flaw: Some(Flaw::NeverAsksForHeadsAgain), ..failures() });
}

#[test]
fn a_fetch_from_before_a_verdict_brings_the_event_again() {
    breaks(ONCE, Instance { flaw: Some(Flaw::RevivesWhatWasSettled), ..crowded() });
}

#[test]
fn events_that_operators_free_below_the_mark_are_forgotten() {
    breaks(FOUND, Instance { flaw: Some(Flaw::IgnoresOperators), ..operators() });
}

#[test]
fn a_due_event_overtakes_what_is_not_read_yet() {
    breaks(IN_ORDER, Instance { flaw: Some(Flaw::DeliversDueRowsEarly), ..delays() });
}

#[test]
fn a_mark_that_is_handed_on_passes_what_was_only_in_memory() {
    breaks(FOUND, Instance { flaw: Some(Flaw::HandsTheMarkOn), ..hand_overs() });
}

#[test]
fn a_mark_that_outlives_a_failover_passes_the_numbers_that_are_given_again() {
    let flawed = || Instance { flaw: Some(Flaw::KeepsTheMarkAfterAFailover), ..goes_back(GoesBack::FailsOver) };
    breaks(BELOW_THE_OPEN, flawed());
    breaks(FOUND, flawed());
}

#[test]
fn a_mark_that_outlives_a_crash_of_the_database_passes_what_was_lost() {
    breaks(FOUND, Instance { flaw: Some(Flaw::KeepsTheMarkAfterALoss), ..goes_back(GoesBack::Restarts) });
}

/// Limits that the documentation names, to see that the model would tell.
#[test]
fn limits_of_the_protocol_show_in_the_model() {
    // A transaction that is open for longer than a minute, where nobody tells.
    breaks(BELOW_THE_OPEN, Instance { long: true, ..untold() });
    // A backup that is younger than the last renewal: what is written then waits for the next poll from the bottom.
    breaks(FOUND, goes_back(GoesBack::IsRestoredYoung));
}

#[test]
fn a_minute_from_the_question_is_too_short_where_its_answer_is_slow() {
    let slow = || Instance { slow_queries: true, ..untold() };
    holds(slow());
    breaks(BELOW_THE_OPEN, Instance { flaw: Some(Flaw::CountsFromTheQuestion), ..slow() });
}

#[test]
fn a_verdict_that_is_lost_before_its_answer_is_noticed_is_forgotten() {
    let late = || Instance { late_answers: true, ..goes_back(GoesBack::Restarts) };
    holds(late());
    breaks(FOUND, Instance { flaw: Some(Flaw::TrustsALateAnswer), ..late() });
}
