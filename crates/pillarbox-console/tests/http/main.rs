//! The console as a browser asks for it, over an outbox in memory.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod actions;
mod mounting;
mod pages;
mod site;
