mod audit;
mod console;
mod dead;
mod doctor;
mod events;
mod inbox;
mod keys;
mod matching;
mod pause;
mod pending;
mod purge;
mod relay;
mod show;
mod target;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pillarbox::run::FailingKey;
use pillarbox_demo::DemoArgs;

pub(crate) use audit::AuditArgs;
pub(crate) use console::ConsoleArgs;
pub(crate) use dead::{Chosen, Dead, DeadArgs, Matching};
pub(crate) use doctor::DoctorArgs;
pub(crate) use events::{EventMatching, Events, EventsArgs};
pub(crate) use inbox::{Inbox, InboxArgs};
pub(crate) use keys::{Keys, KeysArgs};
pub(crate) use matching::{Actor, AttributeArgs, person, user};
pub(crate) use pause::{PauseArgs, PauseName, PausesArgs, ResumeArgs};
pub(crate) use pending::{ChosenPending, Pending, PendingArgs, PendingMatching};
pub(crate) use purge::PurgeArgs;
pub(crate) use relay::{LogFormat, OutputSpec, RelayArgs};
pub(crate) use show::ShowArgs;
pub(crate) use target::{Target, quoted};

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
    /// Measure writing, delivering and idling, as ratios to a baseline on the same database: needs `pillarbox-bench` beside this program.
    ///
    /// The benchmarks are a program of their own, `pillarbox-bench`, which has to be in the same folder as this one:
    /// `cargo build --release -p pillarbox-bench`.
    #[command(disable_help_flag = true)]
    Bench {
        /// The arguments of `pillarbox-bench`; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        arguments: Vec<OsString>,
    },
    /// Create or upgrade the outbox tables.
    ///
    /// A table named with a schema, such as `billing.outbox_event`, is created there, whatever the URL names. A
    /// PostgreSQL schema, or a database of the MySQL server, that does not exist is created too.
    ///
    /// An outbox-java table of that name is adopted in place: its missing parts are added, its rows are kept.
    Migrate(MigrateArgs),
    /// Show the events that wait, those that were given up, and the nodes that are running.
    Status(StatusArgs),
    /// Look at events of any state, newest first.
    Events(EventsArgs),
    /// Examine databases and brokers: what harms deliveries, with cause, evidence and remedy.
    ///
    /// It only reads, on one connection to each, in statements that end within a limit: it is harmless beside a service under load.
    /// docs/doctor.md explains every finding.
    ///
    /// Exit codes: 0 nothing was found; 1 something was, such as a file that no relay could run with, or the command failed; 2 the
    /// command line is wrong, or the file cannot be read; 130 it was interrupted, without `--watch`.
    Doctor(Box<DoctorArgs>),
    /// Look at events that still have to be delivered, have them tried now, or cancel them.
    Pending(PendingArgs),
    /// Pause an event type or a handler: no call of it begins on any node until it is resumed.
    ///
    /// Its events stay in the table, and no attempt is counted. Calls that run go on. Nodes notice within two seconds, as
    /// long as they reach the database. In mode `partitioned` later events of a key wait behind one whose type is paused;
    /// in mode `ordered` all later events wait behind what is paused. What is paused already gets the new reason and end.
    Pause(PauseArgs),
    /// Resume an event type or a handler that is paused.
    Resume(ResumeArgs),
    /// List the event types and handlers that are paused, and count the rows that they hold.
    Pauses(PausesArgs),
    /// List, show, replay or discard DEAD events: those that were given up (dead letters).
    Dead(DeadArgs),
    /// Serve a web console: events, DEAD ones, blocked keys, nodes, and what may be done about them.
    ///
    /// Without a password it is for this host alone, and everybody on it may operate. It never listens for other hosts without one.
    Console(Box<ConsoleArgs>),
    /// List keys that are blocked by a failing event.
    Keys(KeysArgs),
    /// Delete events that were delivered, or given up, long ago.
    ///
    /// Ages count from the moment an event was delivered or given up, by the database's clock. Rows are deleted in
    /// batches, each in a transaction of its own, so that no other program waits for long, and the command can be
    /// stopped at any time.
    Purge(PurgeArgs),
    /// Look at the messages that consumers have received, and delete old ones.
    Inbox(InboxArgs),
    /// List what operators have changed: who, what, when and how many rows.
    Audit(AuditArgs),
    /// Pass events on to brokers, as a file configures it, or as lines of JSON to stdout or to a file.
    ///
    /// With `--config FILE` it delivers from one or several databases to brokers: an event is done when its broker has
    /// confirmed it. `--check` and `--dry-run` try the file out. See docs/relay.md. The rest of this text is about
    /// lines of JSON.
    ///
    /// Each delivery is one line with the fields event_id, seq, event_type, aggregate_type, aggregate_id, tenant_id, key,
    /// headers, payload, attempt and node. `payload` is the exact text of the payload as a JSON string; a binary payload
    /// comes as `payload_base64` with its `content_type` instead.
    ///
    /// An event counts as delivered once its line is written and flushed. A relay that is killed before it has recorded
    /// the delivery writes the line again after its restart: deduplicate by event_id.
    ///
    /// At-least-once delivery ends there: lines in the pipe behind stdout are lost when its reader stops, as `head`
    /// does, since their events count as delivered. Where that matters, write to a file with `--to file:PATH`.
    ///
    /// SIGINT, SIGTERM and, without `--config`, SIGHUP stop it in order, with exit code 0; a second signal, at least half a
    /// second later, stops it at once. With `--config` SIGHUP reloads the file. With a file, the number of lines is printed at the end, with `--json` as JSON; otherwise stdout is for
    /// the lines alone.
    ///
    /// Exit codes: 0 it worked, and with `--once` nothing due is left; 1 it failed; 2 the command line or the file is wrong; 3 with
    /// `--once` something due is left, and what it is stands on stderr or in the result; 130 it was stopped at once.
    Relay(Box<RelayArgs>),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox migrate --store postgres://app@db/shop
  pillarbox migrate --store postgres://app@db/shop --check   # exit code 1 if the tables are missing or old
  pillarbox migrate --store postgres://db/shop --print > V7__outbox.sql")]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print the SQL for another migration tool and change nothing; no connection is made.
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
    /// Count the rows of every state too. This reads the whole table, including the rows that are DONE.
    #[arg(long)]
    pub(crate) exact: bool,
}

/// In mode `partitioned`, the treatment of a key's later events when one of them fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum FailingKeyArg {
    /// Later events wait while it is tried again and, if it goes DEAD, until it is replayed or discarded.
    Wait,
    /// Later events wait while it is tried again. If it goes DEAD, they are delivered.
    #[value(alias = "skip-dead")]
    SkipDead,
    /// Later events are delivered at once; it is tried again beside them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
