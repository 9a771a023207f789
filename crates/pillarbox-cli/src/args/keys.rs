use clap::{Args, Subcommand};

use super::Target;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox keys blocked --store postgres://app@db/shop
  pillarbox keys blocked --store postgres://app@db/shop --json | jq -r '.keys[] | select(.state == \"DEAD\").event_id'")]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) keys: Keys,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List the keys of which later events wait behind one that failed: that one, why it failed, and how many wait.
    ///
    /// One that waits for another attempt goes on by itself. One that is DEAD is for you: make it new with
    /// `pillarbox dead replay`, or throw it away with `pillarbox dead discard`; the others of its key follow.
    ///
    /// This is about tables in mode `partitioned`. In the modes without order, and where nodes run with another
    /// `--failing-key`, the same events are listed, but nobody waits behind them.
    Blocked {
        #[command(flatten)]
        target: Target,
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 20)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Only those whose first event is behind this `seq`: the last one of the page before.
        #[arg(long, value_name = "SEQ")]
        after: Option<i64>,
        /// Show errors whole, not their beginning.
        #[arg(long)]
        wide: bool,
    },
}
