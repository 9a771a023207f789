//! The events that still have to be delivered: to look at, to try now, to cancel.

mod list;

use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::maintain::{OperatorAction, Pauses, PendingEvents, PendingFilter};
use pillarbox_program::report::{self, counted};

use crate::args::{ChosenPending, Pending};
use crate::change::{self, Changed, Named};
use crate::confirm::confirm;
use crate::confirmed_rows::ConfirmedRows;
use crate::failure::Failure;
use crate::{audit, show};

/// Runs one of the commands.
pub(crate) async fn run(pending: Pending) -> Result<ExitCode, Failure> {
    match pending {
        Pending::List { target, matching, limit, after, wide } => {
            list::run(&target, matching, limit.into(), after, wide).await
        }
        Pending::Show(args) => show::run(&args).await,
        Pending::Retry(chosen) => change(&chosen, OperatorAction::RetryNow).await,
        Pending::Cancel(chosen) => change(&chosen, OperatorAction::Cancel).await,
    }
}

/// Cancels the chosen events, or has them tried now.
async fn change(chosen: &ChosenPending, action: OperatorAction) -> Result<ExitCode, Failure> {
    let filter = PendingFilter::from(chosen.matching.clone());
    let named = Named {
        event_ids: &chosen.event_ids,
        seqs: &chosen.seq,
        handler: filter.attributes.handler.as_deref(),
        every_handler: chosen.every_handler,
    };
    let change = async |store: &dyn Store| {
        if chosen.all {
            all(store, &filter, chosen, action, |about_to| confirm(store, chosen.yes, about_to)).await
        } else {
            change::named(store, &named, action, &chosen.actor).await
        }
    };
    let change = async |store: &dyn Store| {
        let changed = change(store).await?;
        if action == OperatorAction::RetryNow && !Pauses::of(store).list().await?.is_empty() {
            report::note(
                "note: types or handlers are paused, and what they hold waits for them: see `pillarbox pauses`",
            );
        }
        Ok(changed)
    };
    change::run(&chosen.target, change).await
}

/// Changes all rows that match when `ask` asks about them. One that is written while somebody thinks it over is left alone.
async fn all(
    store: &dyn Store,
    filter: &PendingFilter,
    chosen: &ChosenPending,
    action: OperatorAction,
    ask: impl FnOnce(&str) -> Result<(), Failure>,
) -> Result<Changed, Failure> {
    let pending = PendingEvents::of(store);
    let is_retry = action == OperatorAction::RetryNow;
    let seqs = if is_retry { pending.waiting(filter).await? } else { pending.matching(filter).await? };
    let matched = ConfirmedRows::of(store, &seqs).await?;
    if matched.is_empty() {
        return Ok(Changed::all(action, 0));
    }
    let rows = counted(matched.len() as u64, "row");
    let about_to =
        if is_retry { format!("try {rows} now") } else { format!("cancel {rows}: what is cancelled is not delivered") };
    ask(&about_to)?;
    change::confirmed(store, &matched, action, &chosen.actor, &subject(filter)).await
}

/// The filter as the audit table has it.
fn subject(filter: &PendingFilter) -> String {
    let PendingFilter { attributes: of, state } = filter;
    audit::subject(audit::attributes(of).chain([("state", state.map(|state| state.name().to_owned()))]))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pillarbox::SqliteStore;
    use pillarbox_programtest::{column, execute};
    use tokio::runtime::Handle;
    use tokio::task::block_in_place;

    use super::*;
    use crate::args::{Cli, Command};

    /// Two that are delayed, one of them below zero, as another program may number it, and one that waits for another attempt.
    const ROWS: &str = "
        INSERT INTO outbox_event (seq, event_id, event_type, payload, status, available_at) VALUES
            (-7, 'below', 't', '{}', 0, 32503680000000000), (1, 'delayed', 't', '{}', 0, 32503680000000000),
            (2, 'retrying', 't', '{}', 2, 32503680000000000)";
    const WRITE: &str = "
        INSERT INTO outbox_event (seq, event_id, event_type, payload, available_at) VALUES
            (-8, 'lower', 't', '{}', 32503680000000000), (9, 'late', 't', '{}', 32503680000000000)";
    const LEFT: &str = "
        SELECT event_id FROM outbox_event WHERE status IN (0, 2) AND available_at = 32503680000000000 ORDER BY seq";

    #[tokio::test(flavor = "multi_thread")]
    async fn events_written_after_the_question_are_left_alone() {
        for (name, action) in [("retry", OperatorAction::RetryNow), ("cancel", OperatorAction::Cancel)] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("shop.db").to_str().unwrap().to_owned();
            let store = SqliteStore::open(&file).await.unwrap();
            store.migrate().await.unwrap();
            execute(&file, ROWS).await;
            let cli = Cli::try_parse_from(["pillarbox", "pending", name, "--all", "--store", &file]).unwrap();
            let Command::Pending(args) = cli.command else { panic!("another command") };
            let (Pending::Retry(chosen) | Pending::Cancel(chosen)) = args.pending else { panic!("another command") };
            let ask = |about_to: &str| {
                assert!(about_to.contains("3 rows"), "{about_to}");
                block_in_place(|| Handle::current().block_on(execute(&file, WRITE)));
                Ok(())
            };
            let changed = all(&store, &chosen.matching.clone().into(), &chosen, action, ask).await.unwrap();
            assert_eq!(changed.rows(), 3, "{name}");
            assert_eq!(column(&file, LEFT).await, ["lower", "late"], "{name}");
            store.close().await;
        }
    }
}
