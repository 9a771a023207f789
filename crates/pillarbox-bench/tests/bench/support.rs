//! Running `pillarbox-bench`.

use std::process::Command;

pub(crate) use pillarbox_programtest::*;

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_pillarbox-bench"));

/// The command, with output captured and nothing inherited that could change it.
pub(crate) fn bench(args: &[&str]) -> Command {
    PROGRAM.command(args)
}

/// Runs the command to its end.
pub(crate) fn run(args: &[&str]) -> Ended {
    PROGRAM.run(args)
}

/// Runs the command to its end without blocking the runtime.
pub(crate) async fn run_async(args: &[&str]) -> Ended {
    PROGRAM.run_async(args).await
}
