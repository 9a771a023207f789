use std::process::ExitCode;

use indicatif::ProgressBar;
use pillarbox::Store;
use pillarbox::maintain::{DeadEvents, Record, Status};
use serde::Serialize;

use super::show::status_name;
use crate::args::Chosen;
use crate::confirm::confirm;
use crate::failure::{Failure, no_event, no_row};
use crate::store;
use pillarbox_console::progress;
use pillarbox_console::report::{self, counted, plain};

/// The change to make to events that were given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadAction {
    Replay,
    Discard,
}

/// Replays or discards the chosen events. It fails if one of them was not given up, after it has changed the others.
pub(super) async fn run(chosen: &Chosen, action: DeadAction) -> Result<ExitCode, Failure> {
    let changed = store::on(&chosen.target, async |store| {
        if chosen.all { all(store, chosen, action).await } else { each(store, chosen, action).await }
    });
    let changed = changed.await?;
    for refused in &changed.refused {
        report::note(&format!("error: {}", refused.sentence()));
    }
    report::print_either(chosen.target.json, &changed.json(), || changed.text())?;
    Ok(if changed.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn all(store: &dyn Store, chosen: &Chosen, action: DeadAction) -> Result<Changed, Failure> {
    let (dead, filter) = (DeadEvents::of(store), chosen.matching.filter(store).await?);
    let matching = dead.count(&filter).await?;
    if matching == 0 {
        return Ok(Changed { action, rows: 0, refused: Vec::new() });
    }
    let about_to = match action {
        DeadAction::Replay => format!("deliver {} again", counted(matching, "row")),
        DeadAction::Discard => format!("delete {} for good", counted(matching, "row")),
    };
    confirm(chosen.yes, &about_to)?;
    let bar = progress::bar(matching, action.participle());
    let progress = |so_far| advance(&bar, so_far);
    let changed = match action {
        DeadAction::Replay => dead.replay_all(&filter, progress).await,
        DeadAction::Discard => dead.discard_all(&filter, progress).await,
    };
    bar.finish_and_clear();
    Ok(Changed { action, rows: changed?, refused: Vec::new() })
}

/// Shows progress. More events may have gone DEAD since they were counted.
fn advance(bar: &ProgressBar, so_far: u64) {
    bar.set_length(bar.length().unwrap_or(0).max(so_far));
    bar.set_position(so_far);
}

/// Changes nothing before the rows of every event are determined.
async fn each(store: &dyn Store, chosen: &Chosen, action: DeadAction) -> Result<Changed, Failure> {
    let handler = chosen.matching.handler.as_deref();
    if !chosen.seq.is_empty() {
        return rows(store, &chosen.seq, action).await;
    }
    let mut doomed = Vec::with_capacity(chosen.event_ids.len());
    for event_id in &chosen.event_ids {
        let mut dead = records(store, event_id, handler).await?;
        dead.retain(|record| record.status == Status::Dead.code());
        if dead.len() > 1 && !chosen.every_handler {
            return Err(Failure::SeveralHandlers { event_id: event_id.clone(), handlers: names(&dead) });
        }
        doomed.push((event_id, dead.iter().map(|record| record.seq).collect::<Vec<_>>()));
    }
    let mut changed = Changed { action, rows: 0, refused: Vec::new() };
    for (event_id, seqs) in doomed {
        let done = change(store, &seqs, action).await?;
        changed.rows += done.len() as u64;
        if done.is_empty() {
            let status = records(store, event_id, handler).await?.first().map(|record| status_name(record.status));
            let handler = handler.map(str::to_owned);
            changed.refused.push(Refused { event_id: Some(event_id.clone()), seq: None, handler, status });
        }
    }
    Ok(changed)
}

/// Changes the rows with these numbers that are DEAD.
async fn rows(store: &dyn Store, seqs: &[i64], action: DeadAction) -> Result<Changed, Failure> {
    let done = change(store, seqs, action).await?;
    let mut changed = Changed { action, rows: done.len() as u64, refused: Vec::new() };
    for seq in seqs.iter().filter(|seq| !done.contains(seq)) {
        let status = store.record(*seq).await?.map(|record| status_name(record.status));
        changed.refused.push(Refused { event_id: None, seq: Some(*seq), handler: None, status });
    }
    Ok(changed)
}

async fn change(store: &dyn Store, seqs: &[i64], action: DeadAction) -> Result<Vec<i64>, Failure> {
    Ok(match action {
        DeadAction::Replay => store.replay(seqs).await?,
        DeadAction::Discard => store.discard(seqs).await?,
    })
}

/// The rows of an event, or the one for a handler.
async fn records(store: &dyn Store, event_id: &str, handler: Option<&str>) -> Result<Vec<Record>, Failure> {
    let mut records = DeadEvents::of(store).show(event_id).await?;
    records.retain(|record| handler.is_none_or(|handler| record.handler.as_deref() == Some(handler)));
    Ok(records)
}

/// The handlers of these rows. A row from before the handlers had names has none.
fn names(records: &[Record]) -> String {
    let name = |record: &Record| {
        record.handler.as_deref().map_or_else(|| "one without a name".to_owned(), |name| format!("`{}`", plain(name)))
    };
    records.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The result of a command.
#[derive(Debug)]
struct Changed {
    action: DeadAction,
    rows: u64,
    refused: Vec<Refused>,
}

/// An event that was not given up, and so was left alone.
#[derive(Debug, Serialize)]
struct Refused {
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    /// The number that was asked for in place of an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    /// The handler that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<String>,
    /// Its state; null if there is no such event, or none for that handler.
    status: Option<String>,
}

/// The line of JSON. Its keys are a contract. It counts rows: an event has one, or one for each handler with a name.
#[derive(Debug, Serialize)]
struct Json<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discarded: Option<u64>,
    refused: &'a [Refused],
}

impl Changed {
    fn json(&self) -> Json<'_> {
        let rows = |action| (self.action == action).then_some(self.rows);
        Json { replayed: rows(DeadAction::Replay), discarded: rows(DeadAction::Discard), refused: &self.refused }
    }

    fn text(&self) -> String {
        let verb = if self.rows == 1 { "was" } else { "were" };
        format!("{} {verb} {}", counted(self.rows, "row"), self.action.participle())
    }
}

impl Refused {
    fn sentence(&self) -> String {
        let Self { event_id, seq, handler, status } = self;
        let of_handler = handler.as_ref().map(|handler| format!(" for handler `{handler}`")).unwrap_or_default();
        match (event_id, seq, status) {
            (Some(id), _, Some(status)) => format!("event `{id}` is {status}{of_handler}, not DEAD; it was left alone"),
            (Some(id), _, None) if handler.is_none() => no_event(id),
            (Some(id), _, None) => format!("there is no event `{id}`{of_handler} in this outbox"),
            (None, seq, Some(status)) => {
                format!("row {} is {status}, not DEAD; it was left alone", seq.unwrap_or_default())
            }
            (None, seq, None) => no_row(seq.unwrap_or_default()),
        }
    }
}

impl DeadAction {
    fn participle(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
        }
    }
}
