//! Routes between an outbox and publishers in memory.

mod described;
mod limits;
mod metrics;
mod operator_pause;
mod order;
mod partly;
mod routing;
mod slow_way;
mod start;
mod targets;
