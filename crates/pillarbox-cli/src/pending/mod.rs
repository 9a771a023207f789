//! The events that still have to be delivered: to look at, to try now, to cancel.

mod list;

use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::maintain::{PendingEvents, PendingFilter};
use pillarbox_program::report::counted;

use crate::args::{ChosenPending, Pending};
use crate::change::{self, Action, Changed, Named};
use crate::confirm::confirm;
use crate::dead;
use crate::failure::Failure;

/// Runs one of the commands.
pub(crate) async fn run(pending: Pending) -> Result<ExitCode, Failure> {
    match pending {
        Pending::List { target, matching, limit, after, wide } => {
            list::run(&target, matching, limit.into(), after, wide).await
        }
        Pending::Show { target, event_id, seq, handler } => {
            dead::show::run(&target, event_id.as_deref(), seq, handler.as_deref()).await
        }
        Pending::Retry(chosen) => change(&chosen, Action::RetryNow).await,
        Pending::Cancel(chosen) => change(&chosen, Action::Cancel).await,
    }
}

/// Cancels the chosen events, or has them tried now.
async fn change(chosen: &ChosenPending, action: Action) -> Result<ExitCode, Failure> {
    let filter = PendingFilter::from(chosen.matching.clone());
    let named = Named {
        event_ids: &chosen.event_ids,
        seqs: &chosen.seq,
        handler: filter.handler.as_deref(),
        every_handler: chosen.every_handler,
    };
    let change = async |store: &dyn Store| {
        if chosen.all {
            all(store, &filter, chosen.yes, action).await
        } else {
            change::named(store, &named, action).await
        }
    };
    change::run(&chosen.target, change).await
}

async fn all(store: &dyn Store, filter: &PendingFilter, yes: bool, action: Action) -> Result<Changed, Failure> {
    let pending = PendingEvents::of(store);
    let is_retry = action == Action::RetryNow;
    let matching = if is_retry { pending.count_waiting(filter).await? } else { pending.count(filter).await? };
    if matching == 0 {
        return Ok(Changed::all(action, 0));
    }
    let rows = counted(matching, "row");
    let about_to =
        if is_retry { format!("try {rows} now") } else { format!("cancel {rows}, which are not delivered then") };
    confirm(yes, &about_to)?;
    change::with_progress(action, matching, async |progress| {
        if is_retry {
            pending.retry_all_now(filter, progress).await
        } else {
            pending.cancel_all(filter, progress).await
        }
    })
    .await
}
