use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// A transactional outbox for Rust: see it work, measure it, create its tables.
#[derive(Debug, Parser)]
#[command(name = "pillarbox", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a small order service, deliver its events and check the database afterwards.
    Demo(DemoArgs),
    /// Measure writing, the hot path or draining, beside a yardstick on the same database.
    Bench(BenchArgs),
    /// Create or upgrade the outbox tables.
    Migrate(MigrateArgs),
}

/// How a database is named.
const STORE_HELP: &str = "Where the database is: `sqlite://PATH`, `PATH.db` or `postgres://USER@HOST/DATABASE`";

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    #[arg(default_value = "sqlite://pillarbox-demo.db")]
    pub(crate) store: String,
    /// Orders to place; 0 only delivers what an earlier run has left.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) orders: u32,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) bench: Bench,
}

/// The tables are the bench's own: `pillarbox_bench_*` is dropped and created anew.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Write events without delivering any: a thousand at once, and one beside a business row.
    Write {
        #[command(flatten)]
        common: Measure,
        /// Events to write.
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        events: u32,
    },
    /// Write one event per transaction, flat out, while they are delivered from memory.
    Hot {
        #[command(flatten)]
        common: Measure,
        /// Events to write.
        #[arg(long, value_name = "N", default_value_t = 50_000)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        events: u32,
        /// Tasks that write at once, each over a connection of its own where the database allows it.
        #[arg(long, value_name = "N", default_value_t = 8)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
        writers: u16,
    },
    /// Deliver a backlog from the table with default settings and a handler that does nothing.
    Drain {
        #[command(flatten)]
        common: Measure,
        /// Events in the backlog.
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        events: u32,
    },
}

/// What all benches have in common.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// Size of each event's JSON payload.
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) payload: u32,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// The event table: `table` or `schema.table`. The tables beside it are named after it.
    #[arg(long, value_name = "NAME", default_value = "outbox_event")]
    pub(crate) table: String,
    /// Print the SQL for another migration tool and change nothing.
    #[arg(long)]
    pub(crate) print: bool,
}

/// Reports a command line that is wrong, or the help that was asked for.
///
/// clap quotes what it does not understand, and that may be a URL given in the wrong place; its password must not end in
/// a log.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    if !error.use_stderr() || !std::env::args().any(|argument| argument.contains('@')) {
        // What cannot be written to a closed stream is of no interest to anybody.
        let _ = error.print();
        return ExitCode::from(code);
    }
    let text = without_passwords(&error.to_string(), std::env::args());
    let _ = write!(std::io::stderr(), "{text}");
    ExitCode::from(code)
}

/// Replaces whatever stands between `://` and the last `@` of an argument.
fn without_passwords(text: &str, arguments: impl Iterator<Item = String>) -> String {
    arguments.fold(text.to_owned(), |text, argument| {
        let credentials = argument.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        match credentials {
            Some((credentials, _)) if !credentials.is_empty() => text.replace(credentials, "***"),
            _ => text,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_url_in_the_wrong_place_does_not_show_its_password() {
        let arguments = ["migrate", "postgres://me:s3cret@host/db", "--table", "a@b"];
        let text = format!("unexpected argument '{}' found", arguments[1]);
        let shown = without_passwords(&text, arguments.iter().map(ToString::to_string));
        assert_eq!(shown, "unexpected argument 'postgres://***@host/db' found");
    }
}
