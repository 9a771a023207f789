//! `pillarbox bench` runs `pillarbox-bench`, a program in the same folder: an operator needs neither benches nor plots.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use crate::failure::Failure;

/// Hands over to `pillarbox-bench`. On Unix this process becomes it, so that signals reach it.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    const DOING: &str = "run the benchmarks";
    let this = std::env::current_exe().map_err(Failure::of_system(DOING))?;
    let program = this.with_file_name(format!("pillarbox-bench{EXE_SUFFIX}"));
    let mut command = Command::new(&program);
    command.args(arguments);
    hand_over(&mut command).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::NoBench { program: program.display().to_string() },
        _ => Failure::Bench { program: program.display().to_string(), source: error },
    })
}

#[cfg(unix)]
fn hand_over(command: &mut Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    Err(command.exec())
}

#[cfg(not(unix))]
fn hand_over(command: &mut Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
