//! Exactly once, whatever dies: each payment is booked once though processes are killed, stopped and resumed, and databases killed, in the
//! middle of handlers' transactions.
//!
//! `PILLARBOX_TEST_KILLS` is the number of processes that are killed on each database. A database is killed once for every
//! [`PROCESSES_PER_DATABASE`](crashes::PROCESSES_PER_DATABASE) of them.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod crashes;
mod database;
mod kills;
mod payments;
mod process;
mod server;
mod stops;

/// The number of processes to kill on a database.
fn kills() -> usize {
    std::env::var("PILLARBOX_TEST_KILLS").map_or(40, |kills| kills.parse().expect("PILLARBOX_TEST_KILLS is a number"))
}
