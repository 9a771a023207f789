//! Tests of the built command, on real databases.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and so do the functions that tests have in common"
)]

mod audit;
mod command_line;
mod console;
mod dead;
mod doctor;
mod doctor_page;
mod events;
mod guides;
mod inbox;
mod keys;
mod migrate;
mod pause;
mod pending;
mod purge;
mod relay;
mod relay_ends;
mod relay_once;
mod status;
mod support;
