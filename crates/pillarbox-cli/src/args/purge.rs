use std::time::Duration;

use clap::Args;

use super::{Actor, Target};
use crate::duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox purge --store postgres://app@db/shop --done-after 7d
  pillarbox purge --store postgres://app@db/shop --done-after 12h --dead-after 30d --json
  pillarbox purge --store postgres://app@db/shop --done-after 0s --key customer-17")]
#[command(group(clap::ArgGroup::new("ages").required(true).multiple(true)))]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Delete events delivered longer ago than this, such as `7d`, `12h` or `90m`.
    #[arg(long, value_name = "AGE", value_parser = duration::parse, group = "ages")]
    pub(crate) done_after: Option<Duration>,
    /// Delete events given up longer ago than this.
    #[arg(long, value_name = "AGE", value_parser = duration::parse, group = "ages")]
    pub(crate) dead_after: Option<Duration>,
    /// Delete events written longer ago than this, delivered or not: for tables that other programs read, where no
    /// event ever ends. Asks for confirmation first, and is refused while a node that delivers is running.
    #[arg(long, value_name = "AGE", value_parser = duration::parse, group = "ages")]
    #[arg(conflicts_with_all = ["done_after", "dead_after"])]
    pub(crate) all_after: Option<Duration>,
    /// Delete only events of this key: the ordering key, or the aggregate id where an event has none.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The most rows to look at, and so to delete, in one transaction.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) batch: u16,
    #[command(flatten)]
    pub(crate) actor: Actor,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
}
