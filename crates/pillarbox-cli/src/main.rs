//! The command line of Pillarbox: a demonstration, the tools of an operator, and a relay.
//!
//! Results go to stdout, everything else to stderr. With `--json` the result is one JSON document; errors stay text, in
//! one line on stderr, and the exit code says that there was one. Exit code 0: it worked; 1: it failed; 2: the command
//! line or the relay's file is wrong; 3: `relay --once` has left something due; 130: it was interrupted.

mod args;

mod audit;
mod bench;
mod change;
mod console;
mod dead;
mod doctor;
mod events;
mod inbox;
mod keys;
mod migrate;
mod pause;
mod pending;
mod purge;
mod relay;
mod status;

mod confirm;
mod confirmed_rows;
mod duration;
mod exporter;
mod failure;
mod listing;
mod payload;
mod show;
mod store;

use std::process::ExitCode;
use std::time::Duration;

use args::{Cli, Command, LogFormat};
use clap::Parser as _;
use mimalloc::MiMalloc;
use pillarbox_program::failure::sentence;
use pillarbox_program::traces::{Traces, TracesError};
use pillarbox_program::{arguments, log, report};

/// Each event is a handful of small texts, made by one thread and dropped by another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The time that the end of the process leaves to what runs on a thread of its own and cannot be stopped, such as the look-up of a name or
/// the end of a client. The runtime would wait for it without an end.
const LAST_WAIT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            report::note(&format!("error: the threads of this program cannot be started: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(run());
    runtime.shutdown_timeout(LAST_WAIT);
    code
}

async fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return arguments::refuse(&error),
    };
    let (level, json) = match &cli.command {
        // A server says whether it delivers or stands by, and that it is stopping.
        Command::Relay(args) => ("info", args.log == LogFormat::Json),
        _ => ("warn", false),
    };
    let filter = match log::filter(level) {
        Ok(filter) => filter,
        Err(error) => return refuse(&error),
    };
    // Fails only if a provider is installed already, and then there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let traces = match traces_of(&cli.command) {
        Ok(traces) => traces,
        Err(error) => return refuse(&error),
    };
    log::start_with(filter, json, traces.as_ref());
    let outcome = match cli.command {
        Command::Demo(args) => pillarbox_demo::run(args).await.map_err(failure::Failure::from),
        Command::Bench { arguments } => bench::run(&arguments),
        Command::Migrate(args) => migrate::run(&args).await,
        Command::Doctor(args) => doctor::run(&args).await,
        Command::Status(args) => status::run(&args).await,
        Command::Events(args) => events::run(args.events).await,
        Command::Pending(args) => pending::run(args.pending).await,
        Command::Pause(args) => pause::pause(args).await,
        Command::Resume(args) => pause::resume(args).await,
        Command::Pauses(args) => pause::list(args).await,
        Command::Dead(args) => dead::run(args.dead).await,
        Command::Console(args) => console::run(*args).await,
        Command::Keys(args) => keys::run(args.keys).await,
        Command::Inbox(args) => inbox::run(args.inbox).await,
        Command::Purge(args) => purge::run(&args).await,
        Command::Audit(args) => audit::run(&args).await,
        Command::Relay(args) => relay::run(*args).await,
    };
    if let Some(traces) = traces {
        traces.shut_down().await;
    }
    outcome.unwrap_or_else(|failure| {
        for sentence in failure.sentences() {
            report::note(&format!("error: {sentence}"));
        }
        failure.exit_code()
    })
}

/// Reports a variable that cannot be used, as an error on the command line.
fn refuse(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    report::note(&format!("error: {}", sentence(error)));
    ExitCode::from(2)
}

/// The relay's traces. No other command sends messages.
fn traces_of(command: &Command) -> Result<Option<Traces>, TracesError> {
    match command {
        Command::Relay(_) => Traces::from_environment("pillarbox-relay"),
        _ => Ok(None),
    }
}
