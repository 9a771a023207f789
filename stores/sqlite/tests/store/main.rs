//! What is particular to SQLite; what every store does is tested by the conformance suite.
#![expect(clippy::expect_used, clippy::panic, reason = "in tests, and in what only they use, a panic is the failure")]

mod admin;
mod busy;
mod bytes;
mod cancel;
mod claim;
mod examine;
mod guard;
mod migrations;
mod opening;
mod partitions;
mod restore;
mod scratch;
mod writer;
