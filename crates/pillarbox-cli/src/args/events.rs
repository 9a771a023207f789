use clap::{Args, Subcommand, ValueEnum};
use pillarbox::Store;
use pillarbox::error::StoreError;
use pillarbox::event::Timestamp;
use pillarbox::maintain::{EventFilter, Status};

use super::{AttributeArgs, Target};
use crate::moment::{self, Moment};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox events list --store postgres://app@db/shop
  pillarbox events list --store postgres://app@db/shop --event-type order.placed --status done --since 2h
  pillarbox events show --store postgres://app@db/shop 01JD2N8Y6T0VQZ5W4B9K3M7XRC")]
pub(crate) struct EventsArgs {
    #[command(subcommand)]
    pub(crate) events: Events,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// List events of any state, newest first.
    ///
    /// A page reads a bounded number of rows, matching or not, and says how far back it has searched; pass the number it names as
    /// `--below` to go on. Nothing is changed, and payloads are not read: `events show` prints them.
    List {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        matching: Box<EventMatching>,
        /// The most events to list.
        #[arg(long, value_name = "N", default_value_t = 20)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// The most rows to read, matching or not.
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        read_at_most: u32,
        /// Only events before this `seq`: where the page before has stopped.
        #[arg(long, value_name = "SEQ")]
        below: Option<i64>,
        /// Show whole errors instead of their beginnings.
        #[arg(long)]
        wide: bool,
    },
    /// Show everything that the table holds about an event, whatever its state.
    Show {
        #[command(flatten)]
        target: Target,
        /// The id of the event.
        #[arg(value_name = "EVENT_ID", required_unless_present = "seq")]
        event_id: Option<String>,
        /// The row with this number, as logs and `events list` name it.
        #[arg(long, value_name = "SEQ", conflicts_with_all = ["event_id", "handler"])]
        seq: Option<i64>,
        /// Only the event's row for the handler of this name.
        #[arg(long, value_name = "NAME")]
        handler: Option<String>,
    },
}

/// A filter for events of any state. They have to match all options.
#[derive(Debug, Clone, Args)]
pub(crate) struct EventMatching {
    #[command(flatten)]
    attributes: AttributeArgs,
    /// Only the event with this id.
    #[arg(long, value_name = "EVENT_ID")]
    id: Option<String>,
    /// Only events in this state.
    #[arg(long, value_name = "STATUS")]
    status: Option<StatusArg>,
    /// Only events written at this time or later: an age such as `2h`, by the database's clock, or a time in UTC such as
    /// `2026-05-01T08:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    since: Option<Moment>,
    /// Only events written before this time, in the same form.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    before: Option<Moment>,
    /// Only events with this text in their error. Its case counts, and no character is a wildcard.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    error: Option<String>,
}

/// The state of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatusArg {
    /// Waiting for its first attempt.
    New,
    /// Waiting for another attempt.
    Retry,
    /// Delivered, or cancelled.
    Done,
    /// Given up.
    Dead,
}

impl EventMatching {
    /// The filter, its ages counted back from the present time of the database.
    pub(crate) async fn filter(&self, store: &dyn Store, read_at_most: usize) -> Result<EventFilter, StoreError> {
        let Self { attributes, id, status, since, before, error } = self.clone();
        let [since, before]: [Option<Timestamp>; 2] = moment::times(store, [since, before]).await?;
        let status = status.map(|status| match status {
            StatusArg::New => Status::New,
            StatusArg::Retry => Status::Retry,
            StatusArg::Done => Status::Done,
            StatusArg::Dead => Status::Dead,
        });
        Ok(EventFilter { attributes: attributes.into(), event_id: id, status, since, before, error, read_at_most })
    }
}
