use clap::Args;

use super::Target;

/// The event to show, by its id or by the number of a row.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The id of the event.
    #[arg(value_name = "EVENT_ID", required_unless_present = "seq")]
    pub(crate) event_id: Option<String>,
    /// The row with this number, as logs and lists name it.
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["event_id", "handler"])]
    pub(crate) seq: Option<i64>,
    /// Only the event's row for the handler of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) handler: Option<String>,
}
