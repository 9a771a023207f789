//! What is particular to MariaDB and MySQL; what every store does is tested by the conformance suite.

mod cancel;
mod connect;
mod contention;
mod examine;
mod failover;
mod guard;
mod guides;
mod identity;
mod implicit_commit;
mod migrate;
mod pauses;
mod predecessors;
mod privileges;
mod session;
#[path = "../support/mod.rs"]
mod support;
mod unknown_status;
