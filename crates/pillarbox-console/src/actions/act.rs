use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use pillarbox_core::store::{DeadFilter, OperatorAction, PendingFilter};
use serde::Deserialize;

use super::action::named;
use super::audit::Audit;
use super::confirm::no_row;
use super::jobs::Job;
use super::operation::Operation;
use super::run_to_completion::run_to_completion;
use crate::pages::answer;
use crate::parts::{Filters, Unknown};
use crate::problem::Problem;
use crate::source::Source;
use crate::view::View;

/// A change that was confirmed.
#[derive(Deserialize)]
pub(crate) struct Confirmed {
    #[serde(rename = "do", deserialize_with = "named")]
    action: OperatorAction,
    /// The number of one row; without it, all that match.
    #[serde(default)]
    seq: String,
    /// The event and the handler that the row was for.
    #[serde(default)]
    row_event: String,
    #[serde(default)]
    row_handler: String,
    /// The number that the confirmation named.
    #[serde(default)]
    count: String,
    #[serde(flatten)]
    filters: Filters,
    #[serde(flatten)]
    unknown: Unknown,
}

/// Makes a change that was confirmed.
pub(crate) async fn act(view: View, Operation(confirmed): Operation<Confirmed>) -> Result<Response, Problem> {
    let app = view.app.clone();
    run_to_completion(&app, made(view, confirmed)).await
}

async fn made(view: View, confirmed: Confirmed) -> Result<Response, Problem> {
    let Confirmed { action, seq, row_event, row_handler, count, filters, unknown } = confirmed;
    unknown.refuse()?;
    if seq.is_empty() {
        let count = count.parse().map_err(|_| Problem::bad("`count` is no number of rows"))?;
        return all(&view, action, &filters, count).await;
    }
    let seq: i64 = seq.parse().map_err(|_| Problem::bad("`seq` is no number of a row"))?;
    let record = answer(view.store()?.record(seq)).await?;
    let record = record.ok_or_else(|| no_row(seq))?;
    if record.event_id != row_event || record.handler.as_deref().unwrap_or_default() != row_handler {
        // A failover to a replica that lags gives numbers again.
        return Err(Problem::refused(
            StatusCode::CONFLICT,
            format!(
                "row {seq} is for another event or handler than the one that was confirmed; nothing was changed: look at it again"
            ),
        ));
    }
    let audit = Audit::begin(&view, action.name(), &format!("row {seq}, event {}", record.event_id)).await?;
    let outcome = one(&view.source, action, seq).await;
    match &outcome {
        Ok(0) => audit.refused(Some(0), not_changed(action)).await,
        outcome => audit.end(outcome.as_ref().ok().copied(), outcome).await,
    }
    let rows = outcome.map_err(Problem::unavailable)?;
    // A discarded row has no page any more.
    let page = if action == OperatorAction::Discard && rows > 0 { "dead".to_owned() } else { format!("event/{seq}") };
    Ok(Redirect::to(&page).into_response())
}

/// Changes the row, and no other of its event.
async fn one(source: &Source, action: OperatorAction, seq: i64) -> Result<u64, String> {
    let (dead, pending, seqs) = (source.dead()?, source.pending()?, [seq]);
    let rows = match action {
        OperatorAction::Replay => dead.replay_rows(&seqs).await,
        OperatorAction::Discard => dead.discard_rows(&seqs).await,
        OperatorAction::RetryNow => pending.retry_rows_now(&seqs).await,
        OperatorAction::Cancel => pending.cancel_rows(&seqs).await,
    };
    let rows = rows.map_err(|error| error.to_string())?;
    wake(source, rows).await;
    Ok(rows)
}

/// The reason why a row is not changed.
fn not_changed(action: OperatorAction) -> &'static str {
    match action {
        OperatorAction::Replay | OperatorAction::Discard => "it was not DEAD any more",
        OperatorAction::RetryNow => "it waited for no time any more",
        OperatorAction::Cancel => "it was not pending any more",
    }
}

/// Tells nodes elsewhere. They look by themselves, too.
async fn wake(source: &Source, rows: u64) {
    if rows > 0
        && let Ok(store) = source.store()
        && let Some(wake_ups) = store.wake_ups()
    {
        // A hint that is lost costs a little time.
        let _ = wake_ups.notify().await;
    }
}

/// Filters of one of the two kinds.
enum Filter {
    Dead(DeadFilter),
    Pending(PendingFilter),
}

/// Begins to change all that match, and leads to the page of its progress. More than were confirmed are not changed.
async fn all(view: &View, action: OperatorAction, filters: &Filters, expected: u64) -> Result<Response, Problem> {
    let (filter, count) = if action.is_about_dead() {
        let filter = filters.dead(view.store()?).await?;
        let count = answer(view.store()?.count_dead(&filter)).await?;
        (Filter::Dead(filter), count)
    } else {
        let filter = filters.pending()?;
        let pending = view.source.pending().map_err(Problem::unavailable)?;
        let count = match action {
            OperatorAction::RetryNow => answer(pending.count_waiting(&filter)).await?,
            _ => answer(pending.count(&filter)).await?,
        };
        (Filter::Pending(filter), count)
    };
    if count > expected {
        return Err(Problem::refused(
            StatusCode::CONFLICT,
            format!(
                "there are {count} rows now, and {expected} were confirmed; nothing was changed: look at them again"
            ),
        ));
    }
    let words = filters.words();
    let job = Job::new(view.source.name(), action, words.clone(), &view.user.name, view.now, expected);
    let busy = || {
        Problem::refused(
            StatusCode::TOO_MANY_REQUESTS,
            "four changes of many events run already; wait until one has ended",
        )
    };
    let job = view.app.jobs.add(job).ok_or_else(busy)?;
    let subject = if words.is_empty() { "all".to_owned() } else { words };
    let audit = match Audit::begin(view, action.name(), &subject).await {
        Ok(audit) => audit,
        Err(problem) => {
            job.end(Err("it could not be recorded in the audit, so nothing was changed".to_owned()));
            return Err(problem);
        }
    };
    let (source, running) = (view.source.clone(), Arc::clone(&job));
    view.app.jobs.run(async move {
        let outcome = audit.noted(change(&source, action, &filter, &running), || running.changed()).await;
        let rows = outcome.as_ref().map_or_else(|_| running.changed(), |rows| *rows);
        audit.end(Some(rows), &outcome).await;
        wake(&source, running.changed()).await;
        running.end(outcome);
    });
    Ok(Redirect::to(&format!("job/{}", job.id)).into_response())
}

async fn change(source: &Source, action: OperatorAction, filter: &Filter, job: &Job) -> Result<u64, String> {
    let progress = |so_far| job.progress(so_far);
    let rows = match filter {
        Filter::Dead(filter) if action == OperatorAction::Replay => source.dead()?.replay_all(filter, progress).await,
        Filter::Dead(filter) => source.dead()?.discard_all(filter, progress).await,
        Filter::Pending(filter) if action == OperatorAction::RetryNow => {
            source.pending()?.retry_all_now(filter, progress).await
        }
        Filter::Pending(filter) => source.pending()?.cancel_all(filter, progress).await,
    };
    rows.map_err(|error| error.to_string())
}
