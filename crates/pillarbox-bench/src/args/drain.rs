use clap::{Args, ValueEnum};
use pillarbox::error::ConfigError;
use pillarbox::run::DispatchConfig;

use super::MOST_EVENTS;
use pillarbox_program::address::Address;
use pillarbox_program::arguments::ModeArg;

/// Connections for handlers, which share them if there are more: a server has a hundred in all.
const MOST_FOR_HANDLERS: u16 = 64;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox bench drain --store postgres://app@db/test --mode multi_node --nodes 2
  pillarbox bench drain --store postgres://app@db/test --done 1000000 --delayed 1000000 --idle-transaction
  pillarbox bench drain --store postgres://app@db/test --mode partitioned --keys 1000 --blocked 10000 --delete-done
  pillarbox bench drain --store postgres://app@db/test --handler transaction --workers 16
  pillarbox bench drain --store mysql://app@db/test --compare naive")]
pub(crate) struct DrainArgs {
    /// Events in the backlog.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_EVENTS))]
    pub(crate) events: u32,
    /// The delivery mode.
    #[arg(long, value_enum, value_name = "MODE", default_value = "single_node")]
    pub(crate) mode: ModeArg,
    /// Outboxes that drain at the same time, in this process, each over its own connections. In the modes with one
    /// active node the others stand by.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) nodes: u8,
    /// Handlers that run concurrently on each node. [default: the outbox's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) workers: Option<u16>,
    /// Rows read, and verdicts recorded, in one batch. [default: the outbox's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) batch: Option<u16>,
    /// The work of the handler.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "nothing")]
    pub(crate) handler: HandlerArg,
    /// Delivered events that the table holds as well.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) done: u32,
    /// Events given up that the table holds as well.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) dead: u32,
    /// Events delayed until tomorrow that the table holds as well.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) delayed: u32,
    /// Delete events as soon as they are delivered, instead of marking their rows as DONE.
    #[arg(long)]
    pub(crate) delete_done: bool,
    /// Keys, assigned to the events in turn; mode `partitioned` only. [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) keys: Option<u32>,
    /// Events that wait behind a failing one of the same key, written before all others; mode `partitioned` only. They
    /// are not measured.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) blocked: u32,
    /// Keep a transaction open from before the first delivery until after the last, so that the database has to keep every old
    /// version of a row; not on SQLite.
    #[arg(long)]
    pub(crate) idle_transaction: bool,
    /// Tasks that write other events meanwhile, one per transaction, flat out. Those events are delivered too, but not
    /// measured.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=256))]
    pub(crate) writers: u16,
    /// Drain the same backlog a second time, by another method.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["writers", "blocked"])]
    pub(crate) compare: Option<Compare>,
}

/// The work of the handler in a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum HandlerArg {
    /// It only counts its calls.
    Nothing,
    /// It inserts a row in a transaction of its own: at least once.
    Row,
    /// It inserts that row in the transaction in which its event becomes DONE: exactly once.
    Transaction,
}

impl HandlerArg {
    /// The name of the value on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Row => "row",
            Self::Transaction => "transaction",
        }
    }

    /// The meaning of the value, beside a figure.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Nothing => "it only counts its calls",
            Self::Row => "each inserts a row in a transaction of its own",
            Self::Transaction => "each inserts a row in the transaction in which its event becomes DONE",
        }
    }
}

/// The method that a drain is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Compare {
    /// A hand-written loop: one connection locks 100 rows, skipping locked ones, and updates them one by one.
    Naive,
}

impl DrainArgs {
    /// The number of keys of the events; `None` in modes without keys.
    ///
    /// # Errors
    /// An option about keys, in a mode without keys.
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

    /// The connections that the bench needs beside those of the outbox: one for each writer and for each handler that works on one.
    pub(crate) fn connections(&self) -> u16 {
        let handlers = if self.handler == HandlerArg::Nothing { 0 } else { self.workers() };
        self.writers.max(1) + handlers.saturating_mul(self.nodes.into()).min(MOST_FOR_HANDLERS)
    }

    /// Handlers that run concurrently on each node.
    pub(crate) fn workers(&self) -> u16 {
        // Mode `ordered` has one worker, whatever the setting.
        if self.mode == ModeArg::Ordered {
            return 1;
        }
        self.workers.unwrap_or_else(|| u16::try_from(DispatchConfig::default().workers).unwrap_or(u16::MAX))
    }

    /// Checks the options that only some modes and databases have.
    ///
    /// # Errors
    /// An option that does not apply.
    pub(crate) fn check(&self, address: &Address) -> Result<(), ConfigError> {
        if self.workers.is_some() && self.mode == ModeArg::Ordered {
            let remedy = "leave it out, or choose another mode";
            return Err(ConfigError::new("--workers", "does not apply to mode ordered, which has one", remedy));
        }
        if self.handler != HandlerArg::Nothing && self.compare.is_some() {
            let problem = "does not apply beside --compare, whose loop inserts no rows";
            return Err(ConfigError::new("--handler", problem, "leave one of them out"));
        }
        if self.idle_transaction && matches!(address, Address::Sqlite(_)) {
            let problem = "does not apply to SQLite, where readers keep no row from being removed";
            return Err(ConfigError::new("--idle-transaction", problem, "leave it out, or name another database"));
        }
        Ok(())
    }
}
