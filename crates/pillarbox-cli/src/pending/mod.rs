//! The events that still have to be delivered: to look at, to try now, to cancel.

mod list;

use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::maintain::{Pauses, PendingEvents, PendingFilter};
use pillarbox_program::report::{self, counted};

use crate::args::{ChosenPending, Pending};
use crate::audit;
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
        handler: filter.attributes.handler.as_deref(),
        every_handler: chosen.every_handler,
    };
    let change = async |store: &dyn Store| {
        if chosen.all {
            all(store, &filter, chosen, action).await
        } else {
            change::named(store, &named, action, &chosen.actor).await
        }
    };
    let change = async |store: &dyn Store| {
        let changed = change(store).await?;
        if action == Action::RetryNow && changed.rows() > 0 && !Pauses::of(store).list().await?.is_empty() {
            report::note(
                "note: types or handlers are paused, and what they hold waits for them: see `pillarbox pauses`",
            );
        }
        Ok(changed)
    };
    change::run(&chosen.target, change).await
}

async fn all(
    store: &dyn Store,
    filter: &PendingFilter,
    chosen: &ChosenPending,
    action: Action,
) -> Result<Changed, Failure> {
    let pending = PendingEvents::of(store);
    let is_retry = action == Action::RetryNow;
    let matching = if is_retry { pending.count_waiting(filter).await? } else { pending.count(filter).await? };
    if matching == 0 {
        return Ok(Changed::all(action, 0));
    }
    let rows = counted(matching, "row");
    let about_to =
        if is_retry { format!("try {rows} now") } else { format!("cancel {rows}: what is cancelled is not delivered") };
    confirm(chosen.yes, &about_to)?;
    let change = async || {
        change::with_progress(action, matching, async |progress| {
            if is_retry {
                pending.retry_all_now(filter, progress).await
            } else {
                pending.cancel_all(filter, progress).await
            }
        })
        .await
    };
    change::audited(store, action, &chosen.actor, &subject(filter), change).await
}

/// The filter as the audit table has it.
fn subject(filter: &PendingFilter) -> String {
    let PendingFilter { attributes: of, state } = filter;
    audit::subject(audit::attributes(of).chain([("state", state.map(|state| state.name().to_owned()))]))
}
