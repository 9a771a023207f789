use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{FailingKeyArg, Target};
use crate::{duration, exporter};
use pillarbox_program::arguments::ModeArg;

#[derive(Debug, Args)]
#[command(mut_arg("store", |store| {
    store.required(false).default_value("").hide_default_value(true)
}))]
#[command(after_help = "Examples:
  pillarbox relay --config relay.toml --check
  pillarbox relay --config relay.toml
  pillarbox relay --store postgres://app@db/shop --mode multi_node | kcat -b kafka -t events -P
  pillarbox relay --store postgres://app@db/shop --mode partitioned --to file:events.jsonl
  pillarbox relay --store shop.db --mode ordered --to file:events.jsonl
  pillarbox relay --store shop.db --limit 10 | jq -r .event_type
  pillarbox relay --config relay.toml --once --deadline 50s   # exit code 3 if something due is left")]
pub(crate) struct RelayArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Deliver to brokers, as this file configures it. It names the databases, their modes and all else. SIGHUP reads
    /// it again.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "mode", "failing_key", "delete_done", "to", "fsync", "limit", "workers", "node_name", "lease", "poll_interval",
        "wake_up", "metrics", "table",
    ])]
    pub(crate) config: Option<PathBuf>,
    /// The format of the log on stderr; `RUST_LOG` sets its level.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) log: LogFormat,
    /// Deliver nothing: check the file, check that the databases and the brokers have everything it names, and report
    /// problems.
    #[arg(long, requires = "config")]
    pub(crate) check: bool,
    /// Deliver nothing: show where the events that are due would go.
    #[arg(long, requires = "config", conflicts_with = "check")]
    pub(crate) dry_run: bool,
    /// Deliver what is due, and end. Exit code 0: nothing due is left; 3: something is. Delayed and DEAD events are not due, and
    /// neither is an event that waits for another attempt, nor those behind it in mode `partitioned`. Events that other nodes hold are
    /// due, and those of a paused route.
    #[arg(long, conflicts_with_all = ["limit", "check", "dry_run"])]
    pub(crate) once: bool,
    /// The longest time that `--once` takes, from its start on; ending in order may take a few seconds more. The last quarter is for the
    /// events under way, or as much of it as the drain timeout.
    // clap asks for no `--once` beside what that conflicts with.
    #[arg(long, requires = "once", conflicts_with_all = ["limit", "check", "dry_run"], value_name = "DURATION",
        value_parser = duration::parse, default_value = "30s")]
    pub(crate) deadline: Duration,
    /// The delivery mode. All nodes of an outbox have the same one.
    #[arg(long, value_enum, value_name = "MODE", default_value = "single_node")]
    pub(crate) mode: ModeArg,
    /// The treatment of a key's later events when one of them fails; mode `partitioned` only. [default: wait]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) failing_key: Option<FailingKeyArg>,
    /// Delete events as soon as they are delivered, instead of keeping them as DONE until they are purged.
    #[arg(long)]
    pub(crate) delete_done: bool,
    /// The destination of the lines: `stdout`, or `file:PATH`, which is appended to.
    #[arg(long, value_name = "WHERE", default_value = "stdout")]
    pub(crate) to: OutputSpec,
    /// Force each line to the disk before its event counts as delivered, so that it survives a power failure. Files
    /// only.
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Stop after this many lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// The most events to deliver concurrently, and so lines to flush together; one in mode `ordered`. [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) workers: Option<u16>,
    /// The node's name in the database and in the lines. [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// The time that ownership holds without renewal. The events of a killed relay wait this long for the next one.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "15s")]
    pub(crate) lease: Duration,
    /// The longest wait before the relay looks at the table again. On an idle system an event may wait this long, since
    /// other processes write all events.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "500ms")]
    pub(crate) poll_interval: Duration,
    /// Let commits of other processes wake the relay. PostgreSQL only; the writing processes have to turn it on too.
    #[arg(long)]
    pub(crate) wake_up: bool,
    /// Serve health, status and metrics for Prometheus at this address: `IP:PORT`, or a port for this host only. The
    /// paths are `/health/live`, `/health/ready`, `/status` and `/metrics`.
    #[arg(long, value_name = "ADDR", value_parser = exporter::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// For tests: wait so long between writing a line and calling its event delivered.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, hide = true)]
    pub(crate) delay: Option<Duration>,
}

/// The format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text for each entry.
    Text,
    /// A line with a JSON object for each entry.
    Json,
}

/// The option `--to`: the destination of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputSpec {
    Stdout,
    File(PathBuf),
}

impl FromStr for OutputSpec {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "stdout" => Ok(Self::Stdout),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err("write `stdout` or `file:PATH`"),
        }
    }
}

impl fmt::Display for OutputSpec {
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
        assert_eq!("stdout".parse(), Ok(OutputSpec::Stdout));
        assert_eq!("file:a:b/events.jsonl".parse(), Ok(OutputSpec::File("a:b/events.jsonl".into())));
        for text in ["", "file:", "events.jsonl", "stderr", "kafka:events"] {
            assert!(text.parse::<OutputSpec>().is_err(), "{text}");
        }
    }
}
