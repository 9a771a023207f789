//! What is particular to MariaDB and MySQL; what every store does is tested by the conformance suite.

mod cancel;
mod connect;
mod contention;
mod examine;
mod failover;
mod guard;
mod identity;
mod migrate;
mod predecessors;
#[path = "../support/mod.rs"]
mod support;
mod unknown_status;
