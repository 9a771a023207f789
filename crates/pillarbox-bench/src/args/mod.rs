mod all;
mod beside;
mod drain;
mod engine;
mod relay;

use clap::{Args, Parser, Subcommand};

use pillarbox_program::arguments::STORE_HELP;

pub(crate) use all::AllArgs;
pub(crate) use beside::{HotArgs, LatencyArgs, LooksArg, MixedArgs, SteadyArgs};
pub(crate) use drain::{DrainArgs, HandlerArg};
pub(crate) use engine::{ConsoleArgs, IdleArgs, MemoryArgs, OverheadArgs, PurgeBenchArgs};
pub(crate) use relay::RelayBenchArgs;

/// Benchmarks of Pillarbox: writing, delivering and idling, beside a yardstick on the same database.
///
/// Results go to stdout, everything else to stderr. With `--json` a bench prints one line of JSON; errors stay text.
#[derive(Debug, Parser)]
#[command(name = "pillarbox-bench", bin_name = "pillarbox bench", version)]
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

/// The benches use tables of their own, `pillarbox_bench_*`, which are dropped and created anew.
#[derive(Debug, Subcommand)]
pub(crate) enum Benches {
    #[command(flatten)]
    One(Bench),
    /// Run all benches in turn and write a report: a page, pictures, and the figures as JSON.
    ///
    /// Each runs in its own process. A bench that fails becomes a line of the report and makes the exit code 1; the
    /// others still run.
    All(AllArgs),
}

/// A bench.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Write events without delivering any: a thousand per transaction, and one beside a business row.
    Write(Measure<WriteArgs>),
    /// Write one event per transaction, flat out, while they are delivered from memory.
    Hot(Measure<HotArgs>),
    /// Deliver a backlog from the table with a handler that does nothing.
    Drain(Measure<DrainArgs>),
    /// Write one event per transaction at a steady rate while they are delivered. Exit code 1 if writing or delivery
    /// falls behind.
    Steady(Measure<SteadyArgs>),
    /// Measure the time from commit to handler: in the same process, on another node, and of rows that SQL alone inserts. And the time until
    /// another process that waits for the delivery knows of it.
    Latency(Measure<LatencyArgs>),
    /// Write one event per transaction, flat out, while they are delivered from the table.
    Mixed(Measure<MixedArgs>),
    /// Pass a backlog on to a broker, each event DONE once it is confirmed, beside publishing alone; then measure the
    /// time from commit to confirmation.
    Relay(Measure<RelayBenchArgs>),
    /// Run an idle outbox, and count its statements and its CPU time.
    Idle(IdleArgs),
    /// Fill a table, and measure a page of each list that a console shows.
    Console(ConsoleArgs),
    /// Fill a table with delivered rows, and purge them.
    Purge(PurgeBenchArgs),
    /// Deliver three backlogs, each ten times as large as the one before, and measure the peak memory of each.
    Memory(Measure<MemoryArgs>),
    /// Deliver from a store in memory: the cost of the engine alone, without a database.
    Overhead(OverheadArgs),
}

/// The most events of a bench: their calls are counted in memory.
const MOST_EVENTS: i64 = 10_000_000;

/// The options that most benches have in common, and those of one bench.
#[derive(Debug, Args)]
pub(crate) struct Measure<T: Args> {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = "PILLARBOX_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// Size of each event's JSON payload.
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) payload: u32,
    #[command(flatten)]
    pub(crate) shown: Shown,
    #[command(flatten)]
    pub(crate) own: T,
}

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Events to write.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_EVENTS))]
    pub(crate) events: u32,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Shown {
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// With `--json`, add samples of the run: events written, delivered and waiting, at most every tenth of a second.
    #[arg(long, requires = "json")]
    pub(crate) samples: bool,
}
