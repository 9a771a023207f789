use std::future::Future;

use axum::response::Response;

use crate::app::App;
use crate::problem::Problem;

/// Makes a change that an operator has asked for. It is completed and recorded though the operator disconnects.
pub(super) async fn run_to_completion(
    app: &App,
    change: impl Future<Output = Result<Response, Problem>> + Send + 'static,
) -> Result<Response, Problem> {
    app.jobs.run_to_completion(change).await.unwrap_or_else(|| {
        Err(Problem::unavailable("the console is ending; look at the audit for the outcome of the change"))
    })
}
