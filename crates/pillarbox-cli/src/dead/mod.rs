//! The DEAD events, those that were given up: to list, replay and discard.

mod list;
pub(crate) mod show;

use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::maintain::{DeadEvents, DeadFilter};
use pillarbox_program::report::counted;

use crate::args::{Chosen, Dead};
use crate::audit;
use crate::change::{self, Action, Changed, Named};
use crate::confirm::confirm;
use crate::failure::Failure;

/// Runs one of the commands.
pub(crate) async fn run(dead: Dead) -> Result<ExitCode, Failure> {
    match dead {
        Dead::List { target, matching, limit, after, wide } => {
            list::run(&target, &matching, limit.into(), after, wide).await
        }
        Dead::Show { target, event_id, seq, handler } => {
            show::run(&target, event_id.as_deref(), seq, handler.as_deref()).await
        }
        Dead::Replay(chosen) => change(&chosen, Action::Replay).await,
        Dead::Discard(chosen) => change(&chosen, Action::Discard).await,
    }
}

/// Replays or discards the chosen events.
async fn change(chosen: &Chosen, action: Action) -> Result<ExitCode, Failure> {
    let named = Named {
        event_ids: &chosen.event_ids,
        seqs: &chosen.seq,
        handler: chosen.matching.attributes.handler.as_deref(),
        every_handler: chosen.every_handler,
    };
    let change = async |store: &dyn Store| {
        if chosen.all {
            all(store, chosen, action).await
        } else {
            change::named(store, &named, action, &chosen.actor).await
        }
    };
    change::run(&chosen.target, change).await
}

async fn all(store: &dyn Store, chosen: &Chosen, action: Action) -> Result<Changed, Failure> {
    let (dead, filter) = (DeadEvents::of(store), chosen.matching.filter(store).await?);
    let matching = dead.count(&filter).await?;
    if matching == 0 {
        return Ok(Changed::all(action, 0));
    }
    let rows = counted(matching, "row");
    let is_replay = action == Action::Replay;
    confirm(chosen.yes, &if is_replay { format!("deliver {rows} again") } else { format!("delete {rows} for good") })?;
    let change = async || {
        change::with_progress(action, matching, async |progress| {
            if is_replay { dead.replay_all(&filter, progress).await } else { dead.discard_all(&filter, progress).await }
        })
        .await
    };
    change::audited(store, action, &chosen.actor, &subject(&filter), change).await
}

/// The filter as the audit table has it.
fn subject(filter: &DeadFilter) -> String {
    let DeadFilter { attributes: of, since, before, error } = filter;
    let [since, before] = [since, before].map(|time| time.map(|time| time.to_string()));
    audit::subject(audit::attributes(of).chain([("error", error.clone()), ("since", since), ("before", before)]))
}
