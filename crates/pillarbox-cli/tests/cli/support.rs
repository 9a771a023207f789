//! Running `pillarbox`.

use std::process::Command;

pub(crate) use pillarbox_programtest::*;
use tempfile::TempDir;

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_pillarbox"));

/// The command, with output captured and nothing inherited that could change it.
pub(crate) fn pillarbox(args: &[&str]) -> Command {
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

/// The path of a SQLite database of a test's own, with an outbox in it, and what keeps it there.
pub(crate) fn sqlite() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.db").to_str().expect("UTF-8").to_owned();
    let ended = run(&["migrate", "--store", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    (folder, file)
}
