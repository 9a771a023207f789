//! Relays as real processes on a real database: killed, frozen, slow, stopped.
//!
//! What can be seen from outside of all of them together is the promise of the outbox: every event is delivered; twice
//! only where a process died, or stood still for longer than its lease, while it held the event; and nothing is stuck.
//!
//! | Test | What happens to a node |
//! |---|---|
//! | `kills` | it is killed at a random moment, 20 times |
//! | `stalls` | it stands still for longer than its lease while it delivers, and goes on; or it is just slow |
//! | `handover` | it is stopped in order while much is left to do |
//! | `keys` | in mode `partitioned`: it is killed, or stands still; it joins and leaves in order |
//! | `sharing` | in mode `partitioned`: it starts beside another, it is killed, it leaves; who owns what is sampled |
//!
//! A scenario is written once, against [`database::Database`]; every database that many processes can share runs it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and so do the functions that tests have in common; what it prints is shown then"
)]

mod database;
mod fleet;
mod handover;
mod keys;
mod kills;
mod sequence;
mod sharing;
mod stalls;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the commands, which use more of it")]
mod support;
