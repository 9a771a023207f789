//! Passes events on: to brokers, as a file configures it, or, as the simplest relay, in one line of JSON per delivery.
//!
//! ```text
//! engine ──▶ JsonLineHandler (one call per event) ──▶ LineWriter ──▶ writer thread ──▶ stdout, file
//!                    ◀── written and flushed ────────────────────┘
//! ```
//!
//! A call of the handler returns once its line is flushed. Its event is settled only then. The thread writes all lines
//! that have gathered during its last write, and flushes once for all of them. If there is no verdict, because the
//! reader went away, the limit is reached or the relay is stopping, the call never returns: shutdown drops it and
//! releases the event untouched.

mod brokers;

mod drained_json;
mod json_line_handler;
mod line;
mod line_writer;
mod output;
mod run;

use std::process::ExitCode;

use crate::args::RelayArgs;
use crate::failure::Failure;

/// The options of which one says what to deliver from.
const PURPOSES: &str = "one of them: a file for brokers, as in `pillarbox relay --config relay.toml`, or a database for lines of JSON on stdout, as in \
                        `pillarbox relay --store postgres://app@db/shop`";

/// Delivers until it is stopped.
pub(crate) async fn run(args: RelayArgs) -> Result<ExitCode, Failure> {
    match &args.config {
        Some(file) => Box::pin(brokers::run(file, &args)).await,
        None if args.target.store.is_empty() => Err(Failure::NoSource { purposes: PURPOSES }),
        None => run::run(args).await,
    }
}
