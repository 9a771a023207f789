use std::future::Future;

use axum::response::Response;

use crate::app::App;
use crate::problem::Problem;

/// Makes a change that an operator has asked for. Whoever asked may hang up: what has begun is seen through, and recorded.
pub(super) async fn see_through(
    app: &App,
    change: impl Future<Output = Result<Response, Problem>> + Send + 'static,
) -> Result<Response, Problem> {
    app.jobs.see_through(change).await.unwrap_or_else(|| {
        Err(Problem::unavailable("the console is ending; look at the audit for what has become of the change"))
    })
}
