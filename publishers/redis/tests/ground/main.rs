//! What is particular to Redis; what every publisher does is tested by the conformance suite.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that tests have in common"
)]

mod examine;
mod restart;
mod server;
#[path = "../support/mod.rs"]
mod support;
