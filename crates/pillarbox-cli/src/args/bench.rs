use std::path::PathBuf;

use clap::{Args, Subcommand};
use pillarbox::error::ConfigError;

use super::{ModeArg, STORE_HELP};

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
        #[command(flatten)]
        drain: DrainArgs,
    },
    /// Run all benches in turn and write a report: a page, pictures, and the figures as JSON.
    ///
    /// Each runs in a process of its own. One that fails is a line of the report, makes the exit code 1, and does not stop
    /// the others.
    All(AllArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox bench all --store postgres://app@db/test --report report    # takes a while
  pillarbox bench all --store bench.db --report report --quick          # a minute or two, and no measurement")]
pub(crate) struct AllArgs {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// Where the report goes: `report.md`, `report.json` and pictures. The folder is created if it is missing; other files
    /// in it are left alone.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: PathBuf,
    /// Run everything with numbers that are too small to mean anything: to see that it works.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the report as JSON too.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox bench drain --store postgres://app@db/test --mode multi_node --nodes 2
  pillarbox bench drain --store postgres://app@db/test --done 1000000 --delayed 1000000
  pillarbox bench drain --store postgres://app@db/test --mode partitioned --keys 1000 --blocked 10000 --delete-done")]
pub(crate) struct DrainArgs {
    /// Events in the backlog.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) events: u32,
    /// Who may deliver an event.
    #[arg(long, value_enum, value_name = "MODE", default_value = "single_node")]
    pub(crate) mode: ModeArg,
    /// Outboxes that drain at once, in this process, each over connections of its own. In the modes of one active node
    /// the others stand by.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) nodes: u8,
    /// Delivered events that the table keeps besides.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) done: u32,
    /// Events that were given up, which the table keeps besides.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) dead: u32,
    /// Events delayed until tomorrow that wait in the table besides.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) delayed: u32,
    /// Delete events as soon as they are delivered, instead of marking their rows as DONE.
    #[arg(long)]
    pub(crate) delete_done: bool,
    /// Keys that the events belong to in turn; mode `partitioned` only. [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) keys: Option<u32>,
    /// Events that wait behind one whose handler fails, of a key of their own, written before all others; mode `partitioned`
    /// only. They are not measured.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) blocked: u32,
}

impl DrainArgs {
    /// How many keys the events belong to, in the mode that knows keys.
    ///
    /// # Errors
    /// An option that is about keys, in another mode.
    pub(crate) fn keys(&self) -> Result<Option<u32>, ConfigError> {
        const KEYS: u32 = 100_000;
        if self.mode == ModeArg::Partitioned {
            return Ok(Some(self.keys.unwrap_or(KEYS)));
        }
        let refuse = |option| {
            let remedy = "leave it out, or choose mode partitioned";
            Err(ConfigError::new(option, "does not apply to this mode, which has no keys", remedy))
        };
        match (self.keys, self.blocked) {
            (None, 0) => Ok(None),
            (Some(_), _) => refuse("--keys"),
            (None, _) => refuse("--blocked"),
        }
    }
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
    /// With `--json`, add how the run went: what was written, delivered and waiting, every tenth of a second at most.
    #[arg(long, requires = "json")]
    pub(crate) samples: bool,
}
