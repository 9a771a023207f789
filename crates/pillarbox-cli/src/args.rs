mod bench;
mod dead;
mod keys;
mod purge;
mod relay;
mod target;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pillarbox::ownership::Mode;
use pillarbox::run::FailingKey;

pub(crate) use bench::{
    AllArgs, Bench, BenchArgs, Benches, DrainArgs, IdleArgs, LatencyArgs, Measure, MemoryArgs, MixedArgs, OverheadArgs,
    RelayBenchArgs, Shown, SteadyArgs,
};
pub(crate) use dead::{Chosen, Dead, DeadArgs, Matching};
pub(crate) use keys::{Keys, KeysArgs};
pub(crate) use purge::PurgeArgs;
pub(crate) use relay::{Destination, LogFormat, RelayArgs};
pub(crate) use target::Target;

/// A transactional outbox for Rust: see it work, measure it, look after its tables, deliver from them.
///
/// Results go to stdout, everything else to stderr. With `--json` a command prints one JSON document; errors stay text.
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
    /// Measure writing, delivering and resting, beside a yardstick on the same database.
    Bench(BenchArgs),
    /// Create or upgrade the outbox tables.
    ///
    /// A table named with a schema, such as `billing.outbox_event`, lives there, whatever else the URL names: a PostgreSQL
    /// schema, or a database of the MySQL server, that does not exist is created.
    ///
    /// An outbox-java table of that name is adopted where it stands: what it lacks is added, its rows are kept.
    Migrate(MigrateArgs),
    /// Show what waits, what was given up, and which nodes are running.
    Status(StatusArgs),
    /// Look at events that were given up; deliver them again, or throw them away.
    Dead(DeadArgs),
    /// Look at the keys of which events wait behind one that fails.
    Keys(KeysArgs),
    /// Delete events that were delivered, or given up, long ago.
    ///
    /// Ages count from the moment an event was delivered or given up, by the database's clock. Rows are deleted in batches,
    /// each in a transaction of its own, so that nobody waits for it and it can be stopped at any time.
    Purge(PurgeArgs),
    /// Pass events on: to brokers, as a file says, or as lines of JSON, to stdout or to a file.
    ///
    /// With `--config FILE` it delivers from one or several databases to brokers: an event is done when its broker has confirmed
    /// it. `--check` and `--dry-run` try the file out. See docs/relay.md. All that follows is about lines of JSON.
    ///
    /// Each delivery is one line with the fields event_id, seq, event_type, aggregate_type, aggregate_id, tenant_id, key,
    /// headers, payload, attempt and node. `payload` is the exact text of the payload as a JSON string; a binary payload
    /// comes as `payload_base64` with its `content_type` instead.
    ///
    /// An event counts as delivered once its line was written and flushed. A relay that is killed in between writes the line
    /// again when it comes back: deduplicate by event_id.
    ///
    /// At-least-once ends there: what lies in the pipe behind stdout when its reader stops, as `head` does, is lost, since
    /// its events count as delivered. Where that matters, write to a file with `--to file:PATH`.
    ///
    /// SIGINT and SIGTERM end it in order, with exit code 0; another one, half a second later or more, ends it at once. With
    /// `--json` and a file, how many lines were written is printed at the end; stdout is for the lines alone.
    Relay(Box<RelayArgs>),
}

/// How a database is named.
const STORE_HELP: &str = "Where the database is: `sqlite://PATH`, `PATH.db`, `postgres://USER@HOST/DATABASE` or `mysql://USER@HOST/DATABASE`";

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
#[command(after_help = "Examples:
  pillarbox migrate --store postgres://app@db/shop
  pillarbox migrate --store postgres://app@db/shop --check   # exit code 1 if the tables are missing or old
  pillarbox migrate --store postgres://db/shop --print > V7__outbox.sql")]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print the SQL for another migration tool and change nothing; the database is not asked.
    #[arg(long, conflicts_with = "check")]
    pub(crate) print: bool,
    /// Change nothing; fail if the tables are missing or of another version.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox status --store postgres://app@db/shop
  pillarbox status --store shop.db --json")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Count the rows of every state too. This reads the whole table, with the history it keeps.
    #[arg(long)]
    pub(crate) exact: bool,
}

/// Who may deliver an event. All nodes of an outbox have the same mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ModeArg {
    /// One node at a time; others stand by.
    SingleNode,
    /// Any number of nodes, each the events it has claimed.
    MultiNode,
    /// Any number of nodes, each the keys of its partitions; the events of a key in their order.
    Partitioned,
    /// One node at a time, one event after the other, in the order of the table.
    Ordered,
}

impl ModeArg {
    /// As it is written everywhere.
    pub(crate) fn name(self) -> &'static str {
        Mode::from(self).name()
    }
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::SingleNode => Self::SingleNode,
            ModeArg::MultiNode => Self::MultiNode,
            ModeArg::Partitioned => Self::Partitioned,
            ModeArg::Ordered => Self::Ordered,
        }
    }
}

/// In mode `partitioned`, what becomes of the later events of a key when one of them fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum FailingKeyArg {
    /// They wait while it is tried again, and if it goes DEAD until it is replayed or discarded.
    Wait,
    /// They wait while it is tried again. If it goes DEAD, they go on.
    #[value(alias = "skip-dead")]
    SkipDead,
    /// They go on at once; it is tried again beside them.
    Continue,
}

impl From<FailingKeyArg> for FailingKey {
    fn from(failing: FailingKeyArg) -> Self {
        match failing {
            FailingKeyArg::Wait => Self::Wait,
            FailingKeyArg::SkipDead => Self::SkipDead,
            FailingKeyArg::Continue => Self::Continue,
        }
    }
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
