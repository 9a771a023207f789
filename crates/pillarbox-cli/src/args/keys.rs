use clap::{Args, Subcommand};

use super::Target;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox keys blocked --store postgres://app@db/shop
  pillarbox keys blocked --store postgres://app@db/shop --json | jq -r '.keys[] | select(.state == \"dead\").event_id'")]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) keys: Keys,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List keys whose later events wait behind one that failed, with that event, its error, and the number that wait.
    ///
    /// An event that waits for another attempt goes on by itself. A DEAD event waits for you: make it NEW with
    /// `pillarbox dead replay`, or throw it away with `pillarbox dead discard`; the others of its key follow.
    ///
    /// This is for tables in mode `partitioned`. In the modes without order, and where nodes run with another
    /// `--failing-key`, the same events are listed, but later events of their keys do not necessarily wait.
    Blocked {
        #[command(flatten)]
        target: Target,
        /// The most keys to list.
        #[arg(long, value_name = "N", default_value_t = 20)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Only keys whose first event comes after this `seq`: the last one of the page before.
        #[arg(long, value_name = "SEQ")]
        after: Option<i64>,
        /// Show errors whole: in tables their middle is left out.
        #[arg(long)]
        wide: bool,
    },
}
