//! Changes of events that an operator has chosen: those that were given up, and those that still have to be delivered.

use std::borrow::Cow;
use std::process::ExitCode;

use pillarbox::Store;
use pillarbox::maintain::{AuditedAction, OperatorAction, Record, Status};
use serde::Serialize;

use crate::args::{Actor, Target};
use crate::audit;
use crate::confirmed_rows::ConfirmedRows;
use crate::failure::{Failure, no_event, no_row};
use crate::store;
use pillarbox_program::progress;
use pillarbox_program::report::{self, counted, plain};

/// Events by their ids, or rows by their numbers.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    pub(crate) event_ids: &'a [String],
    pub(crate) seqs: &'a [i64],
    /// Only the rows for this handler.
    pub(crate) handler: Option<&'a str>,
    /// True if an event is meant for every handler.
    pub(crate) every_handler: bool,
}

/// Makes the change, wakes the nodes that are running, and prints the result. It fails if an event that was named was left alone, after it
/// has changed the others.
pub(crate) async fn run(
    target: &Target,
    change: impl AsyncFnOnce(&dyn Store) -> Result<Changed, Failure>,
) -> Result<ExitCode, Failure> {
    let changed = store::on(target, async |store| {
        let changed = change(store).await;
        let rows = changed.as_ref().map_or_else(|failure| failure.rows_before().unwrap_or_default(), Changed::rows);
        if let Some(wake_ups) = store.wake_ups().filter(|_| rows > 0) {
            // A hint: nodes look by themselves.
            let _ = wake_ups.notify().await;
        }
        let is_cancelled = changed.as_ref().is_ok_and(|changed| changed.action == OperatorAction::Cancel);
        if is_cancelled
            && rows > 0
            && let Some(nodes) = store::nodes_of_earlier_releases(store).await
        {
            report::note(&format!(
                "warning: nodes of an earlier release may still deliver what they have in memory, until they are replaced: {nodes}"
            ));
        }
        changed
    });
    let changed = changed.await?;
    for refused in &changed.refused {
        report::note(&format!("error: {}", refused.sentence(changed.action)));
    }
    report::print_either(target.json, &changed.json(), || changed.text())?;
    Ok(if changed.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Changes the confirmed rows and no others, some hundreds per transaction, and shows the progress; a row that is for
/// another event by now is left alone. `subject` is the filter that they matched.
pub(crate) async fn confirmed(
    store: &dyn Store,
    matched: &ConfirmedRows,
    action: OperatorAction,
    actor: &Actor,
    subject: &str,
) -> Result<Changed, Failure> {
    let bar = progress::bar(matched.len() as u64, action.participle());
    let page_by_page = async || {
        let (mut changed, mut others) = (Changed::all(action, 0), 0);
        for page in matched.pages() {
            let seqs = matched.unchanged(store, page).await.map_err(|failure| changed.cut_short(failure))?;
            let done = action.apply(store, &seqs).await.map_err(|error| changed.cut_short(error))?;
            changed.rows += done.len() as u64;
            others += page.len() - seqs.len();
            bar.inc(page.len() as u64);
        }
        if others > 0 {
            let rows = counted(others as u64, "row");
            report::note(&format!(
                "note: {rows} that matched are for other events now and were left alone: the database has gone back to an earlier state"
            ));
        }
        Ok(changed)
    };
    let changed = audited(store, action, actor, subject, page_by_page).await;
    bar.finish_and_clear();
    changed
}

/// Changes events that were named: nothing before the rows of every event are determined.
pub(crate) async fn named(
    store: &dyn Store,
    named: &Named<'_>,
    action: OperatorAction,
    actor: &Actor,
) -> Result<Changed, Failure> {
    let Named { event_ids, seqs, handler, .. } = *named;
    let listed = |names: Vec<String>| Some(names.join(" ")).filter(|list| !list.is_empty());
    let subject = audit::subject([
        ("event", listed(event_ids.to_vec())),
        ("row", listed(seqs.iter().map(i64::to_string).collect())),
        ("handler", handler.map(str::to_owned)),
    ]);
    audited(store, action, actor, &subject, async || each(store, named, action).await).await
}

/// Makes a change between its two writes to the audit table.
pub(crate) async fn audited(
    store: &dyn Store,
    action: OperatorAction,
    actor: &Actor,
    subject: &str,
    change: impl AsyncFnOnce() -> Result<Changed, Failure>,
) -> Result<Changed, Failure> {
    let action = AuditedAction::new(&actor.name(), action.name(), subject);
    audit::recorded(store, &action, |changed: &Changed| (Some(changed.rows), changed.outcome()), change).await
}

async fn each(store: &dyn Store, named: &Named<'_>, action: OperatorAction) -> Result<Changed, Failure> {
    let Named { event_ids, seqs, handler, every_handler } = *named;
    if !seqs.is_empty() {
        return rows(store, seqs, action).await;
    }
    let mut doomed = Vec::with_capacity(event_ids.len());
    for event_id in event_ids {
        let mut found = records(store, event_id, handler).await?;
        found.retain(|record| is_about(action, record.status));
        if found.len() > 1 && !every_handler {
            let (event_id, handlers) = (event_id.clone(), names(&found));
            return Err(Failure::SeveralHandlers { event_id, state: state_of_an_event(action), handlers });
        }
        doomed.push((event_id, found.iter().map(|record| record.seq).collect::<Vec<_>>()));
    }
    let mut changed = Changed::all(action, 0);
    for (event_id, seqs) in doomed {
        let done = action.apply(store, &seqs).await.map_err(|error| changed.cut_short(error))?;
        changed.rows += done.len() as u64;
        if done.is_empty() {
            let left = records(store, event_id, handler).await.map_err(|failure| changed.cut_short(failure))?;
            let now = store.now().await.map_err(|error| changed.cut_short(error))?;
            let state = left.first().map(|record| record.state(now).name());
            let handler = handler.map(str::to_owned);
            changed.refused.push(Refused { event_id: Some(event_id.clone()), seq: None, handler, state });
        }
    }
    Ok(changed)
}

/// Changes the rows with these numbers.
async fn rows(store: &dyn Store, seqs: &[i64], action: OperatorAction) -> Result<Changed, Failure> {
    let done = action.apply(store, seqs).await?;
    let mut changed = Changed::all(action, done.len() as u64);
    for seq in seqs.iter().filter(|seq| !done.contains(seq)) {
        let left = store.record(*seq).await.map_err(|error| changed.cut_short(error))?;
        let now = store.now().await.map_err(|error| changed.cut_short(error))?;
        let state = left.map(|record| record.state(now).name());
        changed.refused.push(Refused { event_id: None, seq: Some(*seq), handler: None, state });
    }
    Ok(changed)
}

/// The rows of an event, or the one for a handler.
async fn records(store: &dyn Store, event_id: &str, handler: Option<&str>) -> Result<Vec<Record>, Failure> {
    let mut records = store.records(event_id).await?;
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
pub(crate) struct Changed {
    action: OperatorAction,
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
    state: Option<&'static str>,
}

/// The line of JSON. Its keys are a contract. It counts rows: an event has one, or one for each handler with a name.
#[derive(Debug, Serialize)]
struct Json<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discarded: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_now: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled: Option<u64>,
    refused: &'a [Refused],
}

impl Changed {
    /// All that were asked for are changed.
    pub(crate) fn all(action: OperatorAction, rows: u64) -> Self {
        Self { action, rows, refused: Vec::new() }
    }

    /// The number of rows that were changed.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The error of a change that ends here.
    fn cut_short(&self, failure: impl Into<Failure>) -> Failure {
        failure.into().after(self.rows, "row", self.action.participle())
    }

    /// The outcome for the audit table.
    fn outcome(&self) -> Cow<'static, str> {
        let Some(first) = self.refused.first() else { return audit::DONE.into() };
        let more = match self.refused.len() - 1 {
            0 => String::new(),
            more => format!("; {more} more like it"),
        };
        let refused = audit::refused(&format!("{}{more}", first.sentence(self.action)));
        if self.rows == 0 { refused.into() } else { format!("{}, and in part {refused}", audit::DONE).into() }
    }

    fn json(&self) -> Json<'_> {
        let rows = |action| (self.action == action).then_some(self.rows);
        Json {
            replayed: rows(OperatorAction::Replay),
            discarded: rows(OperatorAction::Discard),
            due_now: rows(OperatorAction::RetryNow),
            cancelled: rows(OperatorAction::Cancel),
            refused: &self.refused,
        }
    }

    fn text(&self) -> String {
        let verb = if self.rows == 1 { "was" } else { "were" };
        format!("{} {verb} {}", counted(self.rows, "row"), self.action.participle())
    }
}

impl Refused {
    fn sentence(&self, action: OperatorAction) -> String {
        let Self { event_id, seq, handler, state } = self;
        let of_handler = handler.as_ref().map(|handler| format!(" for handler `{handler}`")).unwrap_or_default();
        let not = other_state(action);
        match (event_id, seq, state) {
            (Some(id), _, Some(state)) => format!("event `{id}` is {state}{of_handler}, {not}; it was left alone"),
            (Some(id), _, None) if handler.is_none() => no_event(id),
            (Some(id), _, None) => format!("there is no event `{id}`{of_handler} in this outbox"),
            (None, seq, Some(state)) => {
                format!("row {} is {state}, {not}; it was left alone", seq.unwrap_or_default())
            }
            (None, seq, None) => no_row(seq.unwrap_or_default()),
        }
    }
}

/// True if the action may change rows with this status.
fn is_about(action: OperatorAction, status: i16) -> bool {
    let states: &[Status] = if action.is_about_dead() { &[Status::Dead] } else { &[Status::New, Status::Retry] };
    states.iter().any(|state| state.code() == status)
}

/// Says of a row in which state it is not.
fn other_state(action: OperatorAction) -> &'static str {
    match action {
        OperatorAction::Replay | OperatorAction::Discard => "not DEAD",
        OperatorAction::RetryNow => "and waits for no time",
        OperatorAction::Cancel => "not pending",
    }
}

/// Says in which state an event is for several handlers.
fn state_of_an_event(action: OperatorAction) -> &'static str {
    if action.is_about_dead() { "was given up by" } else { "waits for" }
}
