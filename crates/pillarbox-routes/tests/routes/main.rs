//! Routes between an outbox and publishers in memory.

mod by_hand;
mod described;
mod limits;
mod metrics;
mod order;
mod partly;
mod routing;
mod slow_way;
mod start;
mod targets;
