use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use pillarbox_core::error::StoreError;
use pillarbox_core::store::{DeadFilter, PendingFilter, Record};
use pillarbox_engine::maintain::{Changed, PendingChange};
use serde::Deserialize;

use super::Action;
use super::audit::Audit;
use super::jobs::Job;
use super::operation::Operation;
use crate::pages::answer;
use crate::parts::Filters;
use crate::problem::Problem;
use crate::source::Source;
use crate::view::View;

/// A change that was confirmed.
#[derive(Deserialize)]
pub(crate) struct Confirmed {
    #[serde(rename = "do")]
    action: Action,
    /// The number of one row; without it, all that match.
    #[serde(default)]
    seq: String,
    /// The number that the confirmation named.
    #[serde(default)]
    count: String,
    #[serde(flatten)]
    filters: Filters,
}

/// Makes a change that was confirmed.
pub(crate) async fn act(view: View, Operation(confirmed): Operation<Confirmed>) -> Result<Response, Problem> {
    let Confirmed { action, seq, count, filters } = confirmed;
    if seq.is_empty() {
        return all(&view, action, &filters, count.parse().unwrap_or(0)).await;
    }
    let seq: i64 = seq.parse().map_err(|_| Problem::bad("`seq` is no number of a row"))?;
    let record = answer(view.store()?.record(seq)).await?;
    let record = record.ok_or_else(|| {
        Problem::not_found(format!("no row has the number {seq}; it may have been purged or discarded"))
    })?;
    let audit = Audit::begin(&view, action.name(), &format!("row {seq}, event {}", record.event_id)).await?;
    let outcome = one(&view, action, &record).await;
    audit.end(outcome.as_ref().ok().copied(), &outcome).await;
    let rows = outcome.map_err(Problem::unavailable)?;
    // What is discarded has no page any more.
    let page = if action == Action::Discard && rows > 0 { "dead".to_owned() } else { format!("event/{seq}") };
    Ok(Redirect::to(&page).into_response())
}

/// Changes the row.
async fn one(view: &View, action: Action, record: &Record) -> Result<u64, String> {
    let (id, handler) = (&*record.event_id, record.handler.as_deref());
    let (dead, pending) = (view.source.dead()?, view.source.pending()?);
    let text = |error: StoreError| error.to_string();
    let of_dead = |changed| if let Changed::Rows(rows) = changed { rows } else { 0 };
    let of_pending = |changed| if let PendingChange::Rows(rows) = changed { rows } else { 0 };
    let rows = match (action, handler) {
        (Action::Replay, Some(handler)) => dead.replay_for(id, handler).await.map(of_dead),
        (Action::Replay, None) => dead.replay(id).await.map(of_dead),
        (Action::Discard, Some(handler)) => dead.discard_for(id, handler).await.map(of_dead),
        (Action::Discard, None) => dead.discard(id).await.map(of_dead),
        (Action::RetryNow, Some(handler)) => pending.retry_now_for(id, handler).await.map(of_pending),
        (Action::RetryNow, None) => pending.retry_now(id).await.map(of_pending),
        (Action::Cancel, Some(handler)) => pending.cancel_for(id, handler).await.map(of_pending),
        (Action::Cancel, None) => pending.cancel(id).await.map(of_pending),
    };
    let rows = rows.map_err(text)?;
    wake(&view.source, rows).await;
    Ok(rows)
}

/// Tells nodes elsewhere. They look by themselves, too.
async fn wake(source: &Source, rows: u64) {
    if rows > 0
        && let Ok(store) = source.store()
        && let Some(wake_ups) = store.wake_ups()
    {
        // A hint that is lost costs a little time.
        let _ = wake_ups.ring().await;
    }
}

/// Filters of one of the two kinds.
enum Filter {
    Dead(DeadFilter),
    Pending(PendingFilter),
}

/// Begins to change all that match, and leads to the page of its progress.
async fn all(view: &View, action: Action, filters: &Filters, expected: u64) -> Result<Response, Problem> {
    let filter = if action.is_about_dead() {
        Filter::Dead(filters.dead(view.store()?).await?)
    } else {
        Filter::Pending(filters.pending()?)
    };
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
        let outcome = change(&source, action, &filter, &running).await;
        let rows = outcome.as_ref().map_or_else(|_| running.changed(), |rows| *rows);
        audit.end(Some(rows), &outcome).await;
        wake(&source, running.changed()).await;
        running.end(outcome);
    });
    Ok(Redirect::to(&format!("job/{}", job.id)).into_response())
}

async fn change(source: &Source, action: Action, filter: &Filter, job: &Job) -> Result<u64, String> {
    let progress = |so_far| job.progress(so_far);
    let rows = match filter {
        Filter::Dead(filter) if action == Action::Replay => source.dead()?.replay_all(filter, progress).await,
        Filter::Dead(filter) => source.dead()?.discard_all(filter, progress).await,
        Filter::Pending(filter) if action == Action::RetryNow => {
            source.pending()?.retry_all_now(filter, progress).await
        }
        Filter::Pending(filter) => source.pending()?.cancel_all(filter, progress).await,
    };
    rows.map_err(|error| error.to_string())
}
