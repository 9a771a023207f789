//! Routes between an outbox and publishers in memory.

mod by_hand;
mod metrics;
mod order;
mod routing;
mod start;
mod targets;
