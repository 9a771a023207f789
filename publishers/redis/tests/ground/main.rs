//! What is particular to Redis; what every publisher does is tested by the conformance suite.

mod examine;
mod restart;
mod server;
#[path = "../support/mod.rs"]
mod support;
