//! Tests of the built program, on real databases.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and so do the functions that tests have in common"
)]

mod beside;
mod command_line;
mod drain;
mod engine;
mod figures;
mod report;
mod support;
