//! The command line of Pillarbox: a demonstration, the benchmarks, the migration.
//!
//! Results go to stdout, everything else to stderr. Exit code 0: it worked; 1: it failed; 2: the command line is wrong;
//! 130: it was interrupted and ended in order.

mod address;
mod args;
mod bench;
mod demo;
mod failure;
mod migrate;
mod report;
mod service;
mod stopwatch;
mod store;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser as _;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::refuse(&error),
    };
    start_logging();
    // Fails only if a provider is installed already, and then there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::Migrate(args) => migrate::run(&args).await,
    };
    outcome.unwrap_or_else(|failure| {
        report::note(&format!("error: {}", failure.sentence()));
        failure.exit_code()
    })
}

/// Logs go to stderr, so that stdout can be piped; colours only where somebody sees them.
fn start_logging() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
}
