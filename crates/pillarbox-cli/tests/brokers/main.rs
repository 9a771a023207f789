//! The relay between a database and real brokers, as a user starts it.

#![cfg(all(unix, feature = "nats"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod config;
mod doctor;
mod endpoint;
mod log;
mod nats;
mod once;
mod relay;
mod reload;
mod restart;
mod silent;
mod start;
mod traces;
mod trouble;
mod unavailable;
mod webhooks;
