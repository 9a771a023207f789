//! The DEAD events, those that were given up: to list, count by reason, replay and discard.

mod list;
mod summary;

use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::maintain::{DeadEvents, DeadFilter, OperatorAction};
use pillarbox_program::report::counted;

use crate::args::{Chosen, Dead};
use crate::change::{self, Changed, Named};
use crate::confirm::confirm;
use crate::confirmed_rows::ConfirmedRows;
use crate::failure::Failure;
use crate::{audit, show};

/// Runs one of the commands.
pub(crate) async fn run(dead: Dead) -> Result<ExitCode, Failure> {
    match dead {
        Dead::List { target, matching, limit, after, wide } => {
            list::run(&target, &matching, limit.into(), after, wide).await
        }
        Dead::Summary { target, matching, limit, wide } => {
            summary::run(&target, &matching, usize::try_from(limit).unwrap_or(usize::MAX), wide).await
        }
        Dead::Show(args) => show::run(&args).await,
        Dead::Replay(chosen) => change(&chosen, OperatorAction::Replay).await,
        Dead::Discard(chosen) => change(&chosen, OperatorAction::Discard).await,
    }
}

/// Replays or discards the chosen events.
async fn change(chosen: &Chosen, action: OperatorAction) -> Result<ExitCode, Failure> {
    let named = Named {
        event_ids: &chosen.event_ids,
        seqs: &chosen.seq,
        handler: chosen.matching.attributes.handler.as_deref(),
        every_handler: chosen.every_handler,
    };
    let change = async |store: &dyn Store| {
        if chosen.all {
            all(store, chosen, action, |about_to| confirm(store, chosen.yes, about_to)).await
        } else {
            change::named(store, &named, action, &chosen.actor).await
        }
    };
    change::run(&chosen.target, change).await
}

/// Replays or discards all rows that match when `ask` asks about them. One that goes DEAD while somebody thinks it over is left alone.
async fn all(
    store: &dyn Store,
    chosen: &Chosen,
    action: OperatorAction,
    ask: impl FnOnce(&str) -> Result<(), Failure>,
) -> Result<Changed, Failure> {
    let filter = chosen.matching.filter(store).await?;
    let matched = ConfirmedRows::of(store, &DeadEvents::of(store).matching(&filter).await?).await?;
    if matched.is_empty() {
        return Ok(Changed::all(action, 0));
    }
    let rows = counted(matched.len() as u64, "row");
    let is_replay = action == OperatorAction::Replay;
    ask(&if is_replay { format!("deliver {rows} again") } else { format!("delete {rows} for good") })?;
    change::confirmed(store, &matched, action, &chosen.actor, &subject(&filter)).await
}

/// The filter as the audit table has it.
fn subject(filter: &DeadFilter) -> String {
    let DeadFilter { attributes: of, since, before, error } = filter;
    let [since, before] = [since, before].map(|time| time.map(|time| time.to_string()));
    audit::subject(audit::attributes(of).chain([("error", error.clone()), ("since", since), ("before", before)]))
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

    /// One below zero, as another program may number it, and two that have not been given up.
    const ROWS: &str = "
        INSERT INTO outbox_event (seq, event_id, event_type, payload, status, done_at) VALUES
            (-7, 'below', 't', '{}', 3, 1), (1, 'early', 't', '{}', 2, NULL), (2, 'dead', 't', '{}', 3, 2),
            (3, 'late', 't', '{}', 0, NULL)";
    const DIE: &str = "UPDATE outbox_event SET status = 3, done_at = 3 WHERE event_id IN ('early', 'late')";
    /// The state after a failover to older data: the number is another event's.
    const GO_BACK: &str = "UPDATE outbox_event SET event_id = 'another' WHERE event_id = 'dead'";
    const LEFT: &str = "SELECT event_id FROM outbox_event WHERE status = 3 ORDER BY seq";

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_that_go_dead_or_become_another_event_after_the_question_are_left_alone() {
        for (name, action) in [("replay", OperatorAction::Replay), ("discard", OperatorAction::Discard)] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("shop.db").to_str().unwrap().to_owned();
            let store = SqliteStore::open(&file).await.unwrap();
            store.migrate().await.unwrap();
            execute(&file, ROWS).await;
            let cli = Cli::try_parse_from(["pillarbox", "dead", name, "--all", "--store", &file]).unwrap();
            let Command::Dead(args) = cli.command else { panic!("another command") };
            let (Dead::Replay(chosen) | Dead::Discard(chosen)) = args.dead else { panic!("another command") };
            let ask = |about_to: &str| {
                assert!(about_to.contains("2 rows"), "{about_to}");
                block_in_place(|| {
                    Handle::current().block_on(async {
                        execute(&file, DIE).await;
                        execute(&file, GO_BACK).await;
                    });
                });
                Ok(())
            };
            let changed = all(&store, &chosen, action, ask).await.unwrap();
            assert_eq!(changed.rows(), 1, "{name}");
            assert_eq!(column(&file, LEFT).await, ["early", "another", "late"], "{name}");
            store.close().await;
        }
    }
}
