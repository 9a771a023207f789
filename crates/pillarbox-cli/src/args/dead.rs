use clap::{Args, Subcommand};
use pillarbox::Store;
use pillarbox::error::StoreError;
use pillarbox::maintain::{DeadFilter, Moment};

use super::{Actor, AttributeArgs, ShowArgs, Target};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox dead summary --store postgres://app@db/shop
  pillarbox dead list --store postgres://app@db/shop --event-type order.placed
  pillarbox dead list --store postgres://app@db/shop --since 2h --error 'timeout'
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
    /// List events that were given up, oldest first. An event whose handlers have names is listed for each that gave it
    /// up.
    List {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        matching: Matching,
        /// The most events to list.
        #[arg(long, value_name = "N", default_value_t = 20)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Only events after this `seq`: the last one of the page before.
        #[arg(long, value_name = "SEQ")]
        after: Option<i64>,
        /// Show errors whole: in tables their middle is left out.
        #[arg(long)]
        wide: bool,
    },
    /// Count events that were given up by type, handler and error, most first: what an outage left, at a glance.
    ///
    /// Words with a digit, such as ids and times, do not tell errors apart, and where they differ the error has `*` in their place; a number behind a
    /// word such as `HTTP` or `code` does. An event whose handlers have names counts for each that gave it up.
    Summary {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        matching: Matching,
        /// The most events to read, oldest first.
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        limit: u32,
        /// Show errors whole: in tables their middle is left out.
        #[arg(long)]
        wide: bool,
    },
    /// Show everything that the table holds about an event, DEAD or not.
    Show(ShowArgs),
    /// Make events NEW again, without attempts and error, to be delivered now.
    ///
    /// An event whose handlers have names has a row for each of them, and each handler gives it up by itself. If
    /// several have, the event's id alone is refused before anything is changed: name a handler with `--handler`, or
    /// pass `--every-handler`. The result counts rows.
    Replay(Chosen),
    /// Delete events for good.
    ///
    /// An event whose handlers have names has a row for each of them, and each handler gives it up by itself. If
    /// several have, the event's id alone is refused before anything is changed: name a handler with `--handler`, or
    /// pass `--every-handler`. The result counts rows.
    Discard(Chosen),
}

/// A filter for events that were given up. They have to match all options.
#[derive(Debug, Clone, Args)]
pub(crate) struct Matching {
    #[command(flatten)]
    pub(crate) attributes: AttributeArgs,
    /// Only events given up at this time or later: an age such as `2h`, by the database's clock, or a time in UTC such as
    /// `2026-05-01 08:00` or `2026-05-01`.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Moment>,
    /// Only events given up before this time, in the same form.
    #[arg(long, value_name = "TIME")]
    pub(crate) before: Option<Moment>,
    /// Only events with this text in their error. Its case counts, and no character is a wildcard.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) error: Option<String>,
}

impl Matching {
    /// The filter, its ages counted back from the present time of the database.
    pub(crate) async fn filter(&self, store: &dyn Store) -> Result<DeadFilter, StoreError> {
        let Self { attributes, since, before, error } = self.clone();
        let [since, before] = Moment::times(store, [since, before]).await?;
        Ok(DeadFilter { attributes: attributes.into(), since, before, error })
    }
}

/// Events by their ids, rows by their numbers, or all that match.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub(crate) struct Chosen {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The ids of the events.
    #[arg(value_name = "EVENT_ID", group = "which")]
    #[arg(conflicts_with_all = ["event_type", "aggregate_type", "tenant", "key", "since", "before", "error"])]
    pub(crate) event_ids: Vec<String>,
    /// The rows with these numbers, as logs and `dead list` name them; separate several with commas.
    #[arg(long, value_name = "SEQ", group = "which", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["event_type", "aggregate_type", "tenant", "key", "since", "before", "error"])]
    #[arg(conflicts_with_all = ["handler", "every_handler"])]
    pub(crate) seq: Vec<i64>,
    /// All events that were given up and match; asks for confirmation first.
    #[arg(long, group = "which")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) matching: Matching,
    /// Take the given events for every handler that gave them up.
    #[arg(long, conflicts_with_all = ["handler", "all"])]
    pub(crate) every_handler: bool,
    #[command(flatten)]
    pub(crate) actor: Actor,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
}
