use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use pillarbox_routes::Forwarder;
use serde::Deserialize;

use super::audit::Audit;
use super::operation::Operation;
use super::run_to_completion::run_to_completion;
use crate::pages::routes::REASON;
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct Named {
    route: String,
}

#[derive(Deserialize)]
pub(crate) struct Paused {
    route: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
pub(crate) struct Probed {
    route: String,
    /// One of its targets, as its status shows it; the route itself without one.
    target: Option<String>,
}

/// Lets a paused route, or one of its paused targets, be tried out now.
pub(crate) async fn probe(view: View, Operation(asked): Operation<Probed>) -> Result<Response, Problem> {
    let app = view.app.clone();
    run_to_completion(&app, probed(view, asked)).await
}

async fn probed(view: View, Probed { route, target }: Probed) -> Result<Response, Problem> {
    let Some(target) = target else {
        let otherwise = "the route delivers, or is being tried out, or an operator has paused it";
        return change(&view, "probe", &route, |routes| routes.probe_now(&route), otherwise).await;
    };
    let otherwise = "the target is not paused any more, or is being tried out, or an operator has paused its route";
    let change_target = |routes: &Forwarder| routes.probe_target_now(&route, &target);
    changed(&view, "probe", &route, &format!("target {target} of route {route}"), change_target, otherwise).await
}

/// Pauses a route in this process.
pub(crate) async fn pause_route(view: View, Operation(asked): Operation<Paused>) -> Result<Response, Problem> {
    let app = view.app.clone();
    run_to_completion(&app, paused(view, asked)).await
}

async fn paused(view: View, Paused { route, reason }: Paused) -> Result<Response, Problem> {
    let reason = reason.trim();
    if reason.is_empty() || reason.chars().count() > REASON {
        let wrong =
            format!("the reason is missing or too long; say in 1 to {REASON} characters why the route is paused");
        return Err(Problem::bad(wrong));
    }
    let reason = format!("{reason} (by {})", view.user.name);
    change(&view, "pause", &route, |routes| routes.pause(&route, &reason), "the route sends nothing").await
}

/// Resumes a route that was paused in this process.
pub(crate) async fn resume_route(view: View, Operation(named): Operation<Named>) -> Result<Response, Problem> {
    let app = view.app.clone();
    run_to_completion(&app, resumed(view, named)).await
}

async fn resumed(view: View, Named { route }: Named) -> Result<Response, Problem> {
    change(&view, "resume", &route, |routes| routes.resume(&route), "no operator has paused the route").await
}

/// Changes a route, and records it with the operator. `otherwise` is the reason if nothing was changed.
async fn change(
    view: &View,
    action: &'static str,
    route: &str,
    change: impl FnOnce(&Forwarder) -> bool,
    otherwise: &str,
) -> Result<Response, Problem> {
    changed(view, action, route, &format!("route {route}"), change, otherwise).await
}

/// As [`change`], where the record names a subject of its own.
async fn changed(
    view: &View,
    action: &'static str,
    route: &str,
    subject: &str,
    change: impl FnOnce(&Forwarder) -> bool,
    otherwise: &str,
) -> Result<Response, Problem> {
    let routes = view.source.routes.as_ref();
    let routes = routes.ok_or_else(|| Problem::not_found("this process does not route the events of this source"))?;
    if !routes.status().iter().any(|status| status.route == route) {
        return Err(Problem::not_found("there is no route of that name"));
    }
    let audit = Audit::begin(view, action, subject).await?;
    if !change(routes) {
        audit.refused(None, otherwise).await;
        return Err(Problem::refused(StatusCode::CONFLICT, format!("nothing was changed: {otherwise}")));
    }
    audit.end(None, &Ok(())).await;
    Ok(Redirect::to("routes").into_response())
}
