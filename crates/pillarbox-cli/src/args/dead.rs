use clap::{Args, Subcommand};
use pillarbox::store::DeadFilter;

use super::Target;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox dead list --store postgres://app@db/shop --event-type order.placed
  pillarbox dead show --store postgres://app@db/shop 01JD2N8Y6T0VQZ5W4B9K3M7XRC
  pillarbox dead replay --store postgres://app@db/shop 01JD2N8Y6T0VQZ5W4B9K3M7XRC --handler mailer
  pillarbox dead replay --store postgres://app@db/shop --seq 4711
  pillarbox dead replay --store postgres://app@db/shop --all --tenant acme")]
pub(crate) struct DeadArgs {
    #[command(subcommand)]
    pub(crate) dead: Dead,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    /// List events that were given up, oldest first; once for each handler that gave one up, if its handlers have names.
    List {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        matching: Matching,
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 20)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Only those behind this `seq`: the last one of the page before.
        #[arg(long, value_name = "SEQ")]
        after: Option<i64>,
        /// Show errors whole, not their beginning.
        #[arg(long)]
        wide: bool,
    },
    /// Show all that the table holds about an event, DEAD or not.
    Show {
        #[command(flatten)]
        target: Target,
        /// The event.
        #[arg(value_name = "EVENT_ID", required_unless_present = "seq")]
        event_id: Option<String>,
        /// The row with this number, as logs and `dead list` name it.
        #[arg(long, value_name = "SEQ", conflicts_with_all = ["event_id", "handler"])]
        seq: Option<i64>,
        /// Only its row for the handler of this name.
        #[arg(long, value_name = "NAME")]
        handler: Option<String>,
    },
    /// Make events new again: without attempts and error, to be delivered now.
    ///
    /// An event whose handlers have names has a row for each of them, and each is given up by itself. Where that was done by
    /// more than one, an id alone is refused before anything is changed: name one with `--handler`, or pass
    /// `--every-handler`. Rows are counted.
    Replay {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Delete events for good.
    ///
    /// An event whose handlers have names has a row for each of them, and each is given up by itself. Where that was done by
    /// more than one, an id alone is refused before anything is changed: name one with `--handler`, or pass
    /// `--every-handler`. Rows are counted.
    Discard {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        chosen: Chosen,
    },
}

/// Which events that were given up: those that match all that is said.
#[derive(Debug, Clone, Args)]
pub(crate) struct Matching {
    /// Only events of this type.
    #[arg(long, value_name = "TYPE")]
    pub(crate) event_type: Option<String>,
    /// Only events of this kind of aggregate; `__GLOBAL__` for those that belong to none.
    #[arg(long, value_name = "TYPE")]
    pub(crate) aggregate_type: Option<String>,
    /// Only events of this tenant.
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// Only for the handler of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) handler: Option<String>,
    /// Only events of this key: the ordering key, or the aggregate id where an event has none.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

impl From<Matching> for DeadFilter {
    fn from(matching: Matching) -> Self {
        let Matching { event_type, aggregate_type, tenant, handler, key } = matching;
        Self { event_type, aggregate_type, tenant_id: tenant, handler, key }
    }
}

/// Events by their ids, rows by their numbers, or all that match.
#[derive(Debug, Clone, Args)]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub(crate) struct Chosen {
    /// Which ones.
    #[arg(value_name = "EVENT_ID", group = "which")]
    #[arg(conflicts_with_all = ["event_type", "aggregate_type", "tenant", "key"])]
    pub(crate) event_ids: Vec<String>,
    /// The rows with these numbers, as logs and `dead list` name them; more with a comma between them.
    #[arg(long, value_name = "SEQ", group = "which", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["event_type", "aggregate_type", "tenant", "key", "handler", "every_handler"])]
    pub(crate) seq: Vec<i64>,
    /// All that were given up and match; asks before it begins.
    #[arg(long, group = "which")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) matching: Matching,
    /// Take the given events for every handler that gave them up.
    #[arg(long, conflicts_with_all = ["handler", "all"])]
    pub(crate) every_handler: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}
