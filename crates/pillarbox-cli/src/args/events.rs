use clap::{Args, Subcommand, ValueEnum};
use pillarbox::Store;
use pillarbox::error::StoreError;
use pillarbox::maintain::{EventFilter, EventState, Moment, Status};

use super::{AttributeArgs, ShowArgs, Target};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox events list --store postgres://app@db/shop
  pillarbox events list --store postgres://app@db/shop --event-type order.placed --state done --since 2h
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
        /// Show errors whole: in tables their middle is left out.
        #[arg(long)]
        wide: bool,
    },
    /// Show everything that the table holds about an event, whatever its state.
    Show(ShowArgs),
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
    #[arg(long, value_name = "STATE")]
    state: Option<EventStateArg>,
    /// Only events written at this time or later: an age such as `2h`, by the database's clock, or a time in UTC such as
    /// `2026-05-01 08:00` or `2026-05-01`.
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only events written before this time, in the same form.
    #[arg(long, value_name = "TIME")]
    before: Option<Moment>,
    /// Only events with this text in their error. Its case counts, and no character is a wildcard.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    error: Option<String>,
}

/// The states of an event, and the word for all in which it still has to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EventStateArg {
    /// New, delayed or retrying.
    Pending,
    /// Due, and waiting for its first attempt.
    New,
    /// Written with a delay that is not over.
    Delayed,
    /// Failed or deferred, and waiting for another attempt.
    Retrying,
    /// Delivered, or cancelled.
    Done,
    /// Cancelled by an operator.
    Cancelled,
    /// Given up.
    Dead,
}

impl EventMatching {
    /// The filter, its ages counted back from the present time of the database.
    pub(crate) async fn filter(&self, store: &dyn Store, read_at_most: usize) -> Result<EventFilter, StoreError> {
        let Self { attributes, id, state, since, before, error } = self.clone();
        let [since, before] = Moment::times(store, [since, before]).await?;
        let status = state.and_then(|state| match state {
            EventStateArg::Pending => None,
            EventStateArg::New | EventStateArg::Delayed => Some(Status::New),
            EventStateArg::Retrying => Some(Status::Retry),
            EventStateArg::Done | EventStateArg::Cancelled => Some(Status::Done),
            EventStateArg::Dead => Some(Status::Dead),
        });
        Ok(EventFilter { attributes: attributes.into(), event_id: id, status, since, before, error, read_at_most })
    }

    /// True if the filter finds events that do not match too, since the column `status` does not tell them apart.
    pub(crate) fn is_narrower(&self) -> bool {
        matches!(
            self.state,
            Some(EventStateArg::Pending | EventStateArg::New | EventStateArg::Delayed | EventStateArg::Cancelled)
        )
    }

    /// True if an event that the filter has found matches.
    pub(crate) fn has_state(&self, state: EventState) -> bool {
        match self.state {
            Some(EventStateArg::Pending) => state.is_pending(),
            Some(EventStateArg::New) => state == EventState::New,
            Some(EventStateArg::Delayed) => state == EventState::Delayed,
            Some(EventStateArg::Cancelled) => state == EventState::Cancelled,
            Some(EventStateArg::Retrying | EventStateArg::Done | EventStateArg::Dead) | None => true,
        }
    }
}
