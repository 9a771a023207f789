//! `cargo run --release -p pillarbox-demo`: the demonstration alone, which builds in a fraction of the time that `pillarbox` takes.

use std::process::ExitCode;

use clap::Parser;
use pillarbox_demo::DemoArgs;
use pillarbox_program::failure::sentence;
use pillarbox_program::{arguments, report};

/// Run a small order service, deliver its events and check the database afterwards.
#[derive(Debug, Parser)]
#[command(name = "pillarbox-demo", version)]
struct Cli {
    #[command(flatten)]
    demo: DemoArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return arguments::refuse(&error),
    };
    pillarbox_demo::run(cli.demo).await.unwrap_or_else(|failure| {
        report::note(&format!("error: {}", sentence(&failure)));
        failure.exit_code()
    })
}
