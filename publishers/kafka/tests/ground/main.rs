//! What is particular to Kafka; what every publisher does is tested by the conformance suite.

mod broker;
#[path = "../support/mod.rs"]
mod support;
mod tls;
