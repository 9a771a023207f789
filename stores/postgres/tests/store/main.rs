//! What is particular to PostgreSQL; what every store does is tested by the conformance suite.

mod adopt;
mod cancel;
mod claim;
mod compatible;
mod connect;
mod encoding;
mod examine;
mod failover;
mod guard;
mod identity;
mod large;
mod life;
mod migrate;
mod pgbouncer;
mod predecessors;
mod privileges;
mod read_point;
mod rebalance;
mod restart;
#[path = "../support/mod.rs"]
mod support;
mod wake;
