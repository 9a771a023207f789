//! Passing events on: to brokers, as a file says, or, the simplest relay, as one line of JSON per delivery.
//!
//! ```text
//! engine ──▶ Courier (one call per event) ──▶ Sink ──▶ writer thread ──▶ stdout, file
//!                    ◀── written and flushed ──────────────┘
//! ```
//!
//! A call of the handler returns once its line was flushed, and only then is its event settled. The thread writes what
//! has gathered while it wrote before, and flushes once for all of it. Where no verdict is known, because the reader went
//! away, the limit is reached or the relay is stopping, the call just never returns: shutting down drops it and gives the
//! event back untouched.

mod brokers;

mod courier;
mod line;
mod output;
mod run;
mod sink;

use std::process::ExitCode;

use crate::args::RelayArgs;
use crate::failure::Failure;

/// Delivers until it is told to stop.
pub(crate) async fn run(args: RelayArgs) -> Result<ExitCode, Failure> {
    match &args.config {
        Some(file) => Box::pin(brokers::run(file, &args)).await,
        None => run::run(args).await,
    }
}
