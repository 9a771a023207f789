//! What is particular to HTTP endpoints; what every publisher does is tested by the conformance suite.

mod answers;
mod failures;
#[path = "../support/mod.rs"]
mod support;
