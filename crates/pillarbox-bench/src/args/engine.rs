//! Benches of the outbox alone: idle, on a store in memory, and its use of memory.

use clap::Args;

use super::beside::LooksArg;
use super::{MOST_EVENTS, Shown};
use crate::args::STORE_HELP;
use pillarbox_program::arguments::ModeArg;

#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// Seconds to count for, in each mode.
    #[arg(long, value_name = "N", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) seconds: u32,
    /// Seconds of idling before the count begins. For a minute after its last event an outbox polls more often, to
    /// share work with nodes that join.
    #[arg(long, value_name = "N", default_value_t = 65)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub(crate) after: u32,
    /// The delivery mode; all modes in turn if it is left out.
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    #[command(flatten)]
    pub(crate) looks: LooksArg,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConsoleArgs {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// Rows in the table.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) rows: u32,
    /// Rows of these that are due; one in ten as many more are delayed.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=MOST_EVENTS))]
    pub(crate) pending: u32,
    /// Rows of these that are DEAD.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=MOST_EVENTS))]
    pub(crate) dead: u32,
    /// Pages of each list to read.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) pages: u16,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeBenchArgs {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// Rows to purge.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) rows: u32,
    /// Rows that a step looks at: `purge.batch`.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) batch: u16,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Events in the largest backlog.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(100..=MOST_EVENTS))]
    pub(crate) events: u32,
    /// The delivery mode.
    #[arg(long, value_enum, value_name = "MODE", default_value = "single_node")]
    pub(crate) mode: ModeArg,
}

#[derive(Debug, Args)]
pub(crate) struct OverheadArgs {
    /// Events to deliver; they stay in memory.
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_EVENTS))]
    pub(crate) events: u32,
    /// Size of each event's JSON payload.
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) payload: u32,
    /// Handlers that run concurrently.
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: u16,
    #[command(flatten)]
    pub(crate) shown: Shown,
}
