use clap::{Args, Subcommand, ValueEnum};
use pillarbox::maintain::{PendingFilter, PendingState};

use super::{Actor, AttributeArgs, ShowArgs, Target};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pillarbox pending list --store postgres://app@db/shop --state retrying
  pillarbox pending list --store postgres://app@db/shop --key customer-17 --json
  pillarbox pending show --store postgres://app@db/shop 01JD2N8Y6T0VQZ5W4B9K3M7XRC
  pillarbox pending retry --store postgres://app@db/shop --all --event-type order.placed
  pillarbox pending cancel --store postgres://app@db/shop 01JD2N8Y6T0VQZ5W4B9K3M7XRC --handler mailer")]
pub(crate) struct PendingArgs {
    #[command(subcommand)]
    pub(crate) pending: Pending,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pending {
    /// List events that still have to be delivered, in the order of the table. An event whose handlers have names is
    /// listed for each that has not had it.
    ///
    /// Nothing is changed, and no running node is held up. Payloads are not read: `pending show` prints them.
    List {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        matching: PendingMatching,
        /// The most events to list.
        #[arg(long, value_name = "N", default_value_t = 20)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=9_999))]
        limit: u16,
        /// Only events after this `seq`: the last one of the page before.
        #[arg(long, value_name = "SEQ")]
        after: Option<i64>,
        /// Show errors whole: in tables their middle is left out.
        #[arg(long)]
        wide: bool,
    },
    /// Show everything that the table holds about an event, pending or not.
    Show(ShowArgs),
    /// Make events due now that wait for a time: delayed ones, and those that wait for another attempt. Their attempts stay.
    ///
    /// An event waits for earlier ones of its key all the same, and a call that runs is not repeated. An event whose
    /// handlers have names has a row for each of them: name one with `--handler`, or pass `--every-handler`. The
    /// result counts rows.
    Retry(ChosenPending),
    /// Cancel events: they are over without a delivery, and later events of their key go on.
    ///
    /// Their rows stay, as DONE with the error `cancelled by an operator`, for as long as those of delivered events. A call that runs is not stopped. Nodes
    /// that have an event in memory notice within two seconds; until then, one of them may still begin it. An event
    /// whose handlers have names has a row for each of them: name one with `--handler`, or pass `--every-handler`. The
    /// result counts rows.
    Cancel(ChosenPending),
}

/// Events by their ids, rows by their numbers, or all that match.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub(crate) struct ChosenPending {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The ids of the events.
    #[arg(value_name = "EVENT_ID", group = "which")]
    #[arg(conflicts_with_all = ["event_type", "aggregate_type", "tenant", "key", "state"])]
    pub(crate) event_ids: Vec<String>,
    /// The rows with these numbers, as logs and `pending list` name them; separate several with commas.
    #[arg(long, value_name = "SEQ", group = "which", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["event_type", "aggregate_type", "tenant", "key", "state"])]
    #[arg(conflicts_with_all = ["handler", "every_handler"])]
    pub(crate) seq: Vec<i64>,
    /// All events that match; asks for confirmation first.
    #[arg(long, group = "which")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) matching: PendingMatching,
    /// Take the given events for every handler that they wait for.
    #[arg(long, conflicts_with_all = ["handler", "all"])]
    pub(crate) every_handler: bool,
    #[command(flatten)]
    pub(crate) actor: Actor,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// A filter for pending events. They have to match all options.
#[derive(Debug, Clone, Args)]
pub(crate) struct PendingMatching {
    #[command(flatten)]
    pub(crate) attributes: AttributeArgs,
    /// Only events in this state.
    #[arg(long, value_name = "STATE")]
    state: Option<StateArg>,
}

/// The reason for which an event is still pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    /// Due, and waiting for its first attempt.
    New,
    /// Written with a delay that is not over.
    Delayed,
    /// Failed or deferred, and waiting for another attempt.
    Retrying,
}

impl From<PendingMatching> for PendingFilter {
    fn from(matching: PendingMatching) -> Self {
        Self { attributes: matching.attributes.into(), state: matching.state.map(PendingState::from) }
    }
}

impl From<StateArg> for PendingState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::New => Self::New,
            StateArg::Delayed => Self::Delayed,
            StateArg::Retrying => Self::Retrying,
        }
    }
}
