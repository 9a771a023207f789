use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use pillarbox_core::store::{Pause, PauseKind};
use pillarbox_engine::maintain::PauseNote;
use serde::Deserialize;

use super::audit::Audit;
use super::operation::Operation;
use super::run_to_completion::run_to_completion;
use crate::pages::answer;
use crate::parts::{query, text};
use crate::problem::Problem;
use crate::view::View;

/// An event type or a handler that is to be paused, as the form tells it.
#[derive(Deserialize)]
pub(crate) struct Paused {
    #[serde(flatten)]
    named: Named,
    #[serde(default)]
    reason: String,
    /// Such as `2h`; empty for a pause without an end.
    #[serde(rename = "for", default)]
    length: String,
    /// `yes` if a pause that is there may be replaced.
    #[serde(default)]
    replace: String,
}

#[derive(Deserialize)]
pub(crate) struct Named {
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Type,
    Handler,
}

impl Named {
    fn kind(&self) -> PauseKind {
        match self.kind {
            Kind::Type => PauseKind::Type,
            Kind::Handler => PauseKind::Handler,
        }
    }
}

/// Pauses an event type or a handler on all nodes.
pub(crate) async fn pause(view: View, Operation(asked): Operation<Paused>) -> Result<Response, Problem> {
    let app = view.app.clone();
    run_to_completion(&app, paused(view, asked)).await
}

async fn paused(view: View, asked: Paused) -> Result<Response, Problem> {
    let (kind, name) = (asked.named.kind(), &*asked.named.name);
    if name.trim().is_empty() {
        return Err(Problem::bad(format!("the name of the {kind} is missing; write the exact one")));
    }
    let mut note = PauseNote::new().by(&*view.user.name);
    if let Some(reason) = text(&asked.reason) {
        note = note.reason(reason);
    }
    if let Some(length) = text(&asked.length) {
        let wrong = |_| {
            Problem::bad(
                "the time after which it resumes is none, such as `30m` or `2h`; leave it empty for a pause without an end",
            )
        };
        note = note.lasting(humantime::parse_duration(&length).map_err(wrong)?);
    }
    let pauses = view.source.pauses().map_err(Problem::unavailable)?;
    let all = answer(view.store()?.pauses()).await?;
    if asked.replace != "yes"
        && let Some(before) = all.iter().find(|pause| (pause.kind, &*pause.name) == (kind, name))
    {
        return Err(Problem::refused(StatusCode::CONFLICT, already(before)));
    }
    let audit = Audit::begin(&view, "pause", &format!("{kind} {name}{}", note.in_words())).await?;
    let outcome = pauses.pause(kind, name, &note).await.map_err(|error| error.to_string());
    audit.end(None, &outcome).await;
    outcome.map_err(Problem::bad)?;
    let next = if answer(pauses.is_known(kind, name)).await.unwrap_or(true) {
        "pauses".to_owned()
    } else {
        format!("pauses?{}", query(&[("unknown", name)]))
    };
    Ok(Redirect::to(&next).into_response())
}

/// The note of a pause that would be replaced.
fn already(pause: &Pause) -> String {
    let Pause { kind, name, since, by, reason, .. } = pause;
    let by = by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the {kind} {name} is paused already, since {since}{by}{reason}; to replace that, tick the box in the form")
}

/// Resumes an event type or a handler on all nodes.
pub(crate) async fn resume(view: View, Operation(named): Operation<Named>) -> Result<Response, Problem> {
    let app = view.app.clone();
    run_to_completion(&app, resumed(view, named)).await
}

async fn resumed(view: View, named: Named) -> Result<Response, Problem> {
    let kind = named.kind();
    let pauses = view.source.pauses().map_err(Problem::unavailable)?;
    let audit = Audit::begin(&view, "resume", &format!("{kind} {}", named.name)).await?;
    let outcome = pauses.resume(kind, &named.name).await.map_err(|error| error.to_string());
    if outcome == Ok(false) {
        let why = "it was not paused any more";
        audit.refused(None, why).await;
        return Err(Problem::bad(why));
    }
    audit.end(None, &outcome).await;
    outcome.map_err(Problem::bad)?;
    Ok(Redirect::to("pauses").into_response())
}
