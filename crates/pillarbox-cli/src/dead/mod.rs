//! The events that were given up: to look at, to deliver again, to throw away.

mod change;
mod list;
pub(crate) mod show;

use std::process::ExitCode;

use crate::args::Dead;
use crate::failure::Failure;
use change::DeadAction;

/// Runs one of the commands.
pub(crate) async fn run(dead: Dead) -> Result<ExitCode, Failure> {
    match dead {
        Dead::List { target, matching, limit, after, wide } => {
            list::run(&target, &matching, limit.into(), after, wide).await
        }
        Dead::Show { target, event_id, seq, handler } => {
            show::run(&target, event_id.as_deref(), seq, handler.as_deref()).await
        }
        Dead::Replay(chosen) => change::run(&chosen, DeadAction::Replay).await,
        Dead::Discard(chosen) => change::run(&chosen, DeadAction::Discard).await,
    }
}
