//! The protocol of partitions: leases, epochs, hand-over, and the fence of a settle. Who should own what decides
//! `ownership::spread`; how far a process believes the database's clock decides [`State::observe`](clock::State).
//!
//! ```text
//!   process                                     database (each request is one transaction)
//!   ┌───────────────────────────────┐  join     ┌──────────────────────────────────────────────────────┐
//!   │ node: id                      │──────────▶│ members:    id, ticks left of its lease              │
//!   │   age: own ticks since the    │  renew    │                                                      │
//!   │        confirmed renewal was  │◀─────────▶│                                                      │
//!   │        sent; live while       │ rebalance │ partitions: owner, epoch                             │
//!   │        age < LEASE − MARGIN   │◀─────────▶│                                                      │
//!   │   clock: how far it believes  │  watch    │                                                      │
//!   │        that of the database   │◀─────────▶│                                                      │
//!   │   watched: ticks since each   │  read     │                                                      │
//!   │        other was seen to renew│◀──────────│             events recorded as delivered: 0, 1, 2 …  │
//!   │   target                      │  settle   │                                                      │
//!   │   of each partition:          │──────────▶│                                                      │
//!   │     owned: epoch              │  leave    │                                                      │
//!   │     work: read ─begin─▶ running──────────▶│                                                      │
//!   └───────────────────────────────┘           └──────────────────────────────────────────────────────┘
//!          │ crash, stop                           ▲ arrives or vanishes
//!          └──────────────── late request ─────────┘
//! ```
//!
//! How the things that happen to processes look here:
//!
//! - A *pause*, of a process or of the network, is steps not taken while ticks are. Nothing ever forces a process to act:
//!   every step is tried before and after every other, so each kind of slowness is among what is explored.
//! - A *lost request* is one that was not sent; a *lost answer* changes the table and not the node; a *late request* is one
//!   whose sender gave it up, or died, before the database gets it.
//! - A *slow clock* misses ticks that the database's counts. As many as the margin are allowed for.
//! - A *renewal* succeeds as long as the node's row is there, though its lease has ended: nobody else has taken over then.
//! - A *jump* of the database's clock ends all leases, or lets none end any more. Each process believes that clock only as far as it
//!   has seen it run, and evicts a node that it has not seen to renew for the length of a lease.
//! - A *stop* of a node that no longer relies on its lease is a crash: the database hears of neither.
//! - A *handler that is told to stop* either goes on, which is a step not taken, or ends without a verdict. Its partition is not
//!   given before.
//! - What a node has read waits in memory until its partition is another node's target; then it is dropped, and so is what a fetch
//!   under way brings. So nothing is delivered under a later epoch than it was read under, though no epoch is compared.
//! - A renewal reaches the database the moment it is sent. A real one arrives later, and so does the end of its lease: the
//!   model is the harder case.
//! - Partitions do not influence each other: each goes to the node whose target it is in. So watching four of the 256 is exact
//!   for those four; they lie in the four stretches into which the limits of two and three nodes cut the whole.
//!
//! Left out: rows that fail and are tried again, keys beside each other in a partition (a partition here is a single key), and a
//! database that loses what it has committed, all of which are in [`safe_point`](super::safe_point); clocks that are wrong by more
//! than the margin, except to see that the model tells; a handler that goes on after its node has lost its lease, which nothing can
//! prevent.

#[allow(
    dead_code,
    unreachable_pub,
    clippy::items_after_test_module,
    reason = "most of it is the text of the engine, of which the model takes the decision"
)]
mod clock;
mod node;
mod properties;
mod protocol;
mod table;

use super::store::NodeStatus;
use super::{breaks, holds};
use properties::{HEALS, NOT_BEHIND, NOT_TWICE, ONE_DELIVERY, ONE_OWNER};
use protocol::{Flaw, Jump, MARGIN, Protocol};

/// Two processes and the partition that every join and leave moves.
fn small() -> Protocol {
    Protocol {
        processes: 2,
        joins: 2,
        places: vec![255],
        events: 0,
        time_passes: true,
        slow_answers: false,
        drift: 0,
        jump: None,
        joins_later: false,
        faults: 0,
        heals: false,
        flaw: None,
    }
}

/// Renewals, slow and lost answers, slow clocks.
fn leases() -> Protocol {
    Protocol { slow_answers: true, drift: MARGIN, ..small() }
}

/// Deliveries while nodes die and are taken for dead.
fn takeovers() -> Protocol {
    Protocol { events: 1, faults: 1, ..small() }
}

/// Deliveries while nodes join and leave, so that a partition goes to another node and comes back.
fn hand_overs() -> Protocol {
    Protocol { events: 2, faults: 1, joins: 3, time_passes: false, ..small() }
}

/// The limits of three nodes' ranges, while nodes come and go.
fn three_nodes() -> Protocol {
    Protocol { processes: 3, joins: 4, places: vec![0, 100, 150, 255], time_passes: false, ..small() }
}

/// The end of every state once nothing fails any more.
fn aftermath() -> Protocol {
    Protocol { joins: 3, places: vec![0, 100, 150, 255], heals: true, ..small() }
}

/// The same with an event under way.
fn aftermath_of_deliveries() -> Protocol {
    Protocol { heals: true, ..takeovers() }
}

/// A jump of the database's clock.
fn jumps(jump: Jump) -> Protocol {
    Protocol { jump: Some(jump), heals: true, ..small() }
}

#[test]
fn a_node_stops_relying_on_its_lease_before_others_take_over() {
    holds(leases());
}

#[test]
fn a_dead_nodes_deliveries_are_taken_over() {
    holds(takeovers());
}

#[test]
fn a_partition_is_handed_over_between_deliveries() {
    holds(hand_overs());
}

#[test]
fn three_nodes_rebalance() {
    holds(three_nodes());
}

#[test]
fn partitions_are_all_owned_again_after_any_fault() {
    holds(aftermath());
    holds(aftermath_of_deliveries());
}

#[test]
fn a_jump_of_the_databases_clock_ends_no_living_lease_and_spares_no_dead_one() {
    holds(jumps(Jump::Forward));
    holds(jumps(Jump::Back));
}

#[test]
fn without_the_margin_a_slow_clock_makes_two_owners() {
    breaks(ONE_OWNER, Protocol { flaw: Some(Flaw::NoMargin), ..leases() });
}

#[test]
fn a_clock_slower_than_the_margin_makes_two_owners() {
    breaks(ONE_OWNER, Protocol { drift: MARGIN + 1, ..leases() });
}

#[test]
fn a_lease_counted_from_the_answer_makes_two_owners() {
    breaks(ONE_OWNER, Protocol { flaw: Some(Flaw::CountsFromAnswer), ..leases() });
}

#[test]
fn giving_away_what_is_running_makes_two_deliveries() {
    breaks(ONE_DELIVERY, Protocol { flaw: Some(Flaw::GivesWhatRuns), faults: 0, ..hand_overs() });
}

#[test]
fn a_late_gift_that_names_no_epoch_makes_two_owners() {
    breaks(ONE_OWNER, Protocol { flaw: Some(Flaw::GivesWithoutEpoch), ..hand_overs() });
}

#[test]
fn rows_read_under_an_earlier_ownership_are_delivered_twice() {
    breaks(NOT_TWICE, Protocol { flaw: Some(Flaw::KeepsWhatItHasRead), faults: 0, ..hand_overs() });
}

#[test]
fn a_settle_without_a_fence_changes_rows_behind_the_owner() {
    breaks(NOT_BEHIND, Protocol { flaw: Some(Flaw::SettlesUnfenced), ..takeovers() });
}

#[test]
fn partitions_that_nobody_gives_stay_where_they_are() {
    breaks(HEALS, Protocol { flaw: Some(Flaw::KeepsSurplus), ..aftermath() });
}

#[test]
fn a_clock_that_is_believed_when_it_jumps_makes_two_owners() {
    breaks(ONE_OWNER, Protocol { flaw: Some(Flaw::BelievesTheClock), heals: false, ..jumps(Jump::Forward) });
}

#[test]
fn partitions_of_a_dead_node_stay_unowned_if_the_clock_is_set_back_unwatched() {
    breaks(HEALS, Protocol { flaw: Some(Flaw::WatchesNobody), ..jumps(Jump::Back) });
}

/// A limit that the documentation names: a process that starts after the jump cannot know of it.
#[test]
fn a_process_that_starts_after_a_jump_takes_over_at_once() {
    breaks(ONE_OWNER, Protocol { joins_later: true, heals: false, ..jumps(Jump::Forward) });
}
