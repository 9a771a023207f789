//! What is particular to SNS and SQS; what every publisher does is tested by the conformance suite.

mod batches;
#[path = "../support/mod.rs"]
mod support;
mod tls;
