mod all;
mod beside;
mod drain;
mod engine;
mod relay;

use clap::{Args, Subcommand};

use super::STORE_HELP;

pub(crate) use all::AllArgs;
pub(crate) use beside::{HotArgs, LatencyArgs, MixedArgs, SteadyArgs};
pub(crate) use drain::DrainArgs;
pub(crate) use engine::{IdleArgs, MemoryArgs, OverheadArgs};
pub(crate) use relay::RelayBenchArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox bench drain --store postgres://app@db/test              # how fast is a backlog delivered
  pillarbox bench drain --store shop.db --compare naive             # and how fast by the loop written by hand
  pillarbox bench steady --store mysql://app@db/test --rate 2000    # does it keep up
  pillarbox bench latency --store postgres://app@db/test            # how soon does an event arrive
  pillarbox bench idle --store postgres://app@db/test               # what does it cost when nothing happens")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) benches: Benches,
}

/// The tables are the bench's own: `pillarbox_bench_*` is dropped and created anew.
#[derive(Debug, Subcommand)]
pub(crate) enum Benches {
    #[command(flatten)]
    One(Bench),
    /// Run all benches in turn and write a report: a page, pictures, and the figures as JSON.
    ///
    /// Each runs in a process of its own. One that fails is a line of the report, makes the exit code 1, and does not stop
    /// the others.
    All(AllArgs),
}

/// A bench.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Write events without delivering any: a thousand at once, and one beside a business row.
    Write {
        #[command(flatten)]
        common: Measure,
        /// Events to write.
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_EVENTS))]
        events: u32,
    },
    /// Write one event per transaction, flat out, while they are delivered from memory.
    Hot {
        #[command(flatten)]
        common: Measure,
        #[command(flatten)]
        hot: HotArgs,
    },
    /// Deliver a backlog from the table with a handler that does nothing.
    Drain {
        #[command(flatten)]
        common: Measure,
        #[command(flatten)]
        drain: DrainArgs,
    },
    /// Write one event per transaction at a steady rate while they are delivered: does it keep up? Exit code 1 if not.
    Steady {
        #[command(flatten)]
        common: Measure,
        #[command(flatten)]
        steady: SteadyArgs,
    },
    /// Measure the time from commit to handler: in the same process, and on another node.
    Latency {
        #[command(flatten)]
        common: Measure,
        #[command(flatten)]
        latency: LatencyArgs,
    },
    /// Write one event per transaction, flat out, while they are delivered from the table.
    Mixed {
        #[command(flatten)]
        common: Measure,
        #[command(flatten)]
        mixed: MixedArgs,
    },
    /// Pass a backlog on to a broker, each event DONE once it was confirmed, beside publishing alone; then measure the time from
    /// commit to confirmation.
    Relay {
        #[command(flatten)]
        common: Measure,
        #[command(flatten)]
        relay: RelayBenchArgs,
    },
    /// Run an outbox that has nothing to do, and count what it asks of the database and of the processor.
    Idle(IdleArgs),
    /// Deliver three backlogs, each ten times as large as the one before, and look at the memory that each took.
    Memory {
        #[command(flatten)]
        common: Measure,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Deliver from a store in memory: what the engine alone costs, without a database.
    Overhead(OverheadArgs),
}

/// What fits the memory that counts their calls.
const MOST_EVENTS: i64 = 10_000_000;

/// What most benches have in common.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// Size of each event's JSON payload.
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) payload: u32,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// How the figures are shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Shown {
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// With `--json`, add how the run went: what was written, delivered and waiting, every tenth of a second at most.
    #[arg(long, requires = "json")]
    pub(crate) samples: bool,
}
