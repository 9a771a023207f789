use std::time::Duration;

use clap::{Args, Subcommand};

use super::{Actor, Target};
use crate::duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox inbox status --store postgres://app@db/shop
  pillarbox inbox purge --store postgres://app@db/shop --older-than 30d
  pillarbox inbox purge --store postgres://app@db/shop --older-than 7d --consumer billing --json")]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    pub(crate) inbox: Inbox,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Inbox {
    /// List the consumers, with the number of messages that the inbox remembers of each, and the age of the oldest.
    Status {
        #[command(flatten)]
        target: Target,
        /// The most consumers to list.
        #[arg(long, value_name = "N", default_value_t = 20)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
        /// Only consumers whose name comes after this one: the last one of the page before.
        #[arg(long, value_name = "CONSUMER")]
        after: Option<String>,
    },
    /// Delete messages that consumers received long ago.
    ///
    /// A message that comes again after that is handled again: keep them for longer than their senders try. Processes that
    /// deliver from these tables do the same by themselves, with what is older than `purge.inbox_after`, 30 days unless
    /// set otherwise.
    ///
    /// Messages are deleted in batches, each in a transaction of its own, and the command can be stopped at any time.
    Purge {
        #[command(flatten)]
        target: Target,
        /// Delete messages received longer ago than this, such as `30d`, `12h` or `90m`, by the database's clock.
        #[arg(long, value_name = "AGE", value_parser = duration::parse)]
        older_than: Duration,
        /// Delete only those of this consumer.
        #[arg(long, value_name = "CONSUMER")]
        consumer: Option<String>,
        /// The most messages to delete in one transaction.
        #[arg(long, value_name = "N", default_value_t = 2000)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
        batch: u16,
        #[command(flatten)]
        actor: Actor,
    },
}
