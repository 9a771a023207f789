use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use pillarbox_routes::Forwarder;
use serde::Deserialize;

use super::audit::Audit;
use super::operation::Operation;
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct Named {
    route: String,
}

/// Lets a paused route be tried out now.
pub(crate) async fn probe(view: View, Operation(Named { route }): Operation<Named>) -> Result<Response, Problem> {
    change(
        &view,
        "probe",
        &route,
        |routes| routes.probe_now(&route),
        "the route is open, or is being tried out, or an operator has paused it",
    )
    .await
}

/// Pauses a route in this process.
pub(crate) async fn pause_route(view: View, Operation(Named { route }): Operation<Named>) -> Result<Response, Problem> {
    let reason = format!("by {}", view.user.name);
    change(&view, "pause", &route, |routes| routes.pause(&route, &reason), "the route sends nothing").await
}

/// Resumes a route that was paused in this process.
pub(crate) async fn resume_route(
    view: View,
    Operation(Named { route }): Operation<Named>,
) -> Result<Response, Problem> {
    change(&view, "resume", &route, |routes| routes.resume(&route), "no operator has paused the route").await
}

/// Changes a route, and records who did. `otherwise` says why nothing was changed.
async fn change(
    view: &View,
    action: &'static str,
    route: &str,
    change: impl FnOnce(&Forwarder) -> bool,
    otherwise: &str,
) -> Result<Response, Problem> {
    let routes = view.source.routes.as_ref();
    let routes = routes.ok_or_else(|| Problem::not_found("this process does not route the events of this source"))?;
    if !routes.status().iter().any(|status| status.route == route) {
        return Err(Problem::not_found("there is no route of that name"));
    }
    let audit = Audit::begin(view, action, &format!("route {route}")).await?;
    let outcome = if change(routes) { Ok(()) } else { Err(otherwise.to_owned()) };
    audit.end(None, &outcome).await;
    outcome.map_err(|problem| Problem::refused(StatusCode::CONFLICT, format!("nothing was changed: {problem}")))?;
    Ok(Redirect::to("routes").into_response())
}
