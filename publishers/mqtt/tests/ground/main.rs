//! What is particular to MQTT; what every publisher does is tested by the conformance suite.

mod ending;
mod restart;
mod server;
#[path = "../support/mod.rs"]
mod support;
