use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use pillarbox_core::store::AuditedAction;
use serde::Deserialize;

use super::operation::Operation;
use crate::pages::answer;
use crate::problem::Problem;
use crate::view::View;

#[derive(Deserialize)]
pub(crate) struct Probed {
    route: String,
}

/// Lets a paused route be tried out now.
pub(crate) async fn probe(view: View, Operation(Probed { route }): Operation<Probed>) -> Result<Response, Problem> {
    let routes = view.source.routes.as_ref();
    let routes = routes.ok_or_else(|| Problem::not_found("this process does not route the events of this source"))?;
    if !routes.status().iter().any(|status| status.route == route) {
        return Err(Problem::refused(StatusCode::NOT_FOUND, "there is no route of that name"));
    }
    let store = view.store()?;
    let entry =
        answer(store.record_action(&AuditedAction::new(&view.user.name, "probe", &format!("route {route}")))).await?;
    let outcome = if routes.probe_now(&route) { "done" } else { "it is not paused, or is being tried out" };
    answer(store.end_action(entry, None, outcome)).await?;
    Ok(Redirect::to("routes").into_response())
}
