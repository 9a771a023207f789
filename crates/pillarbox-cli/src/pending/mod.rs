//! The events that still have to be delivered: to look at.

mod list;

use std::process::ExitCode;

use crate::args::Pending;
use crate::dead;
use crate::failure::Failure;

/// Runs one of the commands.
pub(crate) async fn run(pending: Pending) -> Result<ExitCode, Failure> {
    match pending {
        Pending::List { target, matching, limit, after, wide } => {
            list::run(&target, matching, limit.into(), after, wide).await
        }
        Pending::Show { target, event_id, seq, handler } => {
            dead::show::run(&target, event_id.as_deref(), seq, handler.as_deref()).await
        }
    }
}
