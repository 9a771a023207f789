//! The keys that are blocked by a failing event.

mod blocked;

use std::process::ExitCode;

use crate::args::Keys;
use crate::failure::Failure;

/// Runs one of the commands.
pub(crate) async fn run(keys: Keys) -> Result<ExitCode, Failure> {
    match keys {
        Keys::Blocked { target, limit, after, wide } => blocked::run(&target, limit.into(), after, wide).await,
    }
}
