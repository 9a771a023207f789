use std::process::ExitCode;
use std::time::Duration;

use pillarbox::Store;
use pillarbox::maintain::{self, AuditedAction, Purge, Purgeable};
use serde::Serialize;

use crate::args::PurgeArgs;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::{audit, duration, store};
use pillarbox_program::progress;
use pillarbox_program::report::{self, counted};

/// Deletes rows that are old enough.
pub(crate) async fn run(args: &PurgeArgs) -> Result<ExitCode, Failure> {
    let purged = store::on(&args.target, async |store| purge(args, store).await).await?;
    report::print_either(args.target.json, &purged, || purged.text())?;
    Ok(ExitCode::SUCCESS)
}

/// The line of JSON: rows deleted, of each kind that was asked for. Its keys are a contract.
#[derive(Debug, Default, Serialize)]
struct Purged {
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<u64>,
}

async fn purge(args: &PurgeArgs, store: &dyn Store) -> Result<Purged, Failure> {
    if let Some(age) = args.dead_after {
        let of_key = args.key.as_ref().map(|key| format!(" of key `{key}`")).unwrap_or_default();
        let dead = counted(store.backlog().await?.dead, "event");
        confirm(
            store,
            args.yes,
            &format!(
                "delete every event{of_key} that was given up more than {} ago, though no handler has taken it (DEAD, of any age and key: {dead})",
                duration::human(age)
            ),
        )?;
    }
    if let Some(age) = args.all_after {
        let pending = store.backlog().await?;
        let (of_key, and_key) = match &args.key {
            Some(key) => (format!(" of key `{key}`"), " and key"),
            None => (String::new(), ""),
        };
        confirm(
            store,
            args.yes,
            &format!(
                "delete every event{of_key} written more than {} ago, even if it was never delivered (not delivered yet, of any \
                 age{and_key}: {})",
                duration::human(age),
                counted(pending.due + pending.delayed, "event")
            ),
        )?;
    }
    let [done, dead, all] = [args.done_after, args.dead_after, args.all_after].map(|age| age.map(duration::human));
    let subject =
        audit::subject([("DONE after", done), ("DEAD after", dead), ("all after", all), ("key", args.key.clone())]);
    let action = AuditedAction::new(&args.actor.name(), "purge", &subject);
    audit::recorded(
        store,
        &action,
        |purged: &Purged| (Some(purged.rows()), audit::DONE.into()),
        async || {
            let mut purged = Purged::default();
            match each_kind(args, store, &mut purged).await {
                Ok(()) => Ok(purged),
                Err(failure) => Err(failure.after(purged.rows(), "event", "deleted")),
            }
        },
    )
    .await
}

/// Deletes the rows of each kind that was asked for, and counts them in `purged` as they go.
async fn each_kind(args: &PurgeArgs, store: &dyn Store, purged: &mut Purged) -> Result<(), Failure> {
    each_batch(args, store, Purgeable::Done, args.done_after, &mut purged.done).await?;
    each_batch(args, store, Purgeable::Dead, args.dead_after, &mut purged.dead).await?;
    each_batch(args, store, Purgeable::All, args.all_after, &mut purged.all).await
}

async fn each_batch(
    args: &PurgeArgs,
    store: &dyn Store,
    what: Purgeable,
    older_than: Option<Duration>,
    removed: &mut Option<u64>,
) -> Result<(), Failure> {
    let Some(older_than) = older_than else { return Ok(()) };
    let step = Purge { key: args.key.clone(), ..Purge::new(what, older_than, args.batch.into()) };
    let counter = progress::counter("deleted");
    let removed = removed.insert(0);
    let purged = maintain::purge(store, step, |so_far| {
        *removed = so_far;
        counter.set_position(so_far);
    })
    .await;
    counter.finish_and_clear();
    purged?;
    Ok(())
}

impl Purged {
    fn rows(&self) -> u64 {
        [self.done, self.dead, self.all].into_iter().flatten().sum()
    }

    fn text(&self) -> String {
        let kinds = [("delivered", self.done), ("given up", self.dead), ("of any state", self.all)];
        let lines: Vec<_> = kinds
            .into_iter()
            .filter_map(|(kind, removed)| Some((kind, removed?)))
            .map(|(kind, removed)| {
                let verb = if removed == 1 { "was" } else { "were" };
                format!("{} {kind} {verb} deleted", counted(removed, "event"))
            })
            .collect();
        lines.join("\n")
    }
}
