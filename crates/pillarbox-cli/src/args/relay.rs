use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};

use super::{FailingKeyArg, ModeArg, Target};
use crate::{duration, exporter};

#[derive(Debug, Args)]
#[command(mut_arg("store", |store| {
    store.required(false).required_unless_present("config").default_value_if("config", ArgPredicate::IsPresent, "")
}))]
#[command(after_help = "Examples:
  pillarbox relay --config relay.toml --check
  pillarbox relay --config relay.toml
  pillarbox relay --store postgres://app@db/shop --mode multi_node | kcat -b kafka -t events -P
  pillarbox relay --store postgres://app@db/shop --mode partitioned --to file:events.jsonl
  pillarbox relay --store shop.db --mode ordered --to file:events.jsonl
  pillarbox relay --store shop.db --limit 10 | jq -r .event_type")]
pub(crate) struct RelayArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Deliver to brokers, as this file says. Databases, modes and all else are in it. SIGHUP reads it again.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "mode", "failing_key", "delete_done", "to", "fsync", "limit", "workers", "node_name", "lease", "poll_interval",
        "wake_up", "metrics", "table",
    ])]
    pub(crate) config: Option<PathBuf>,
    /// How the log on stderr is written; `RUST_LOG` says how much of it.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) log: LogFormat,
    /// Deliver nothing: check the file, ask the databases and the brokers whether they have what it names, and say what is wrong.
    #[arg(long, requires = "config")]
    pub(crate) check: bool,
    /// Deliver nothing: show where each pending event would go.
    #[arg(long, requires = "config", conflicts_with = "check")]
    pub(crate) dry_run: bool,
    /// Who may deliver an event. All nodes of an outbox have the same mode.
    #[arg(long, value_enum, value_name = "MODE", default_value = "single_node")]
    pub(crate) mode: ModeArg,
    /// What becomes of the later events of a key when one of them fails; mode `partitioned` only. [default: wait]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) failing_key: Option<FailingKeyArg>,
    /// Delete events as soon as they are delivered, instead of keeping them as DONE until they are purged.
    #[arg(long)]
    pub(crate) delete_done: bool,
    /// Where the lines go: `stdout`, or `file:PATH`, which is appended to.
    #[arg(long, value_name = "WHERE", default_value = "stdout")]
    pub(crate) to: Destination,
    /// Force each line to the disk before its event counts as delivered, so that it survives the loss of power. Files only.
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Stop after so many lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Events under way at once, and so lines flushed together at most; one in mode `ordered`. [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) workers: Option<u16>,
    /// The node's name in the database and in the lines. [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// How long ownership holds without renewal: how long the events of a killed relay wait for the next one.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "15s")]
    pub(crate) lease: Duration,
    /// How long to wait at most before looking at the table again: how long an event may wait on an idle system, since all
    /// of them are written by other processes.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "500ms")]
    pub(crate) poll_interval: Duration,
    /// Be woken by other processes' commits. PostgreSQL only; the writing processes have to turn it on too.
    #[arg(long)]
    pub(crate) wake_up: bool,
    /// Serve health, status and metrics for Prometheus at this address: `IP:PORT`, or a port of this host only. The paths are
    /// `/health/live`, `/health/ready`, `/status` and `/metrics`.
    #[arg(long, value_name = "ADDR", value_parser = exporter::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// For tests: wait so long between writing a line and calling its event delivered.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, hide = true)]
    pub(crate) delay: Option<Duration>,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people.
    Text,
    /// An object of JSON in a line.
    Json,
}

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

impl FromStr for Destination {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "stdout" => Ok(Self::Stdout),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err("write `stdout` or `file:PATH`"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("stdout"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_nothing_else() {
        assert_eq!("stdout".parse(), Ok(Destination::Stdout));
        assert_eq!("file:a:b/events.jsonl".parse(), Ok(Destination::File("a:b/events.jsonl".into())));
        for text in ["", "file:", "events.jsonl", "stderr", "kafka:events"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
