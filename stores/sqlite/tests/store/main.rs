//! What is particular to SQLite; what every store does is tested by the conformance suite.

mod busy;
mod bytes;
mod cancel;
mod migrations;
mod opening;
mod scratch;
mod writer;
