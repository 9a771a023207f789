//! The engine from outside, on the store in memory. What reads the log is in programs of its own: which levels are on is a matter of the
//! whole process.

mod batch_handlers;
mod clock_jumps;
mod contexts;
mod event_limits;
mod fairness;
mod guards;
mod handler_limits;
mod hooks;
mod inbox;
mod lost_connections;
mod metrics;
mod rebalancing;
mod registrations;
mod settling;
mod shutdown;
mod type_pause;
