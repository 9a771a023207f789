//! The pages, a file for each.

pub(crate) mod audit;
pub(crate) mod dead;
pub(crate) mod doctor;
pub(crate) mod event;
pub(crate) mod events;
pub(crate) mod job;
pub(crate) mod keys;
pub(crate) mod nodes;
pub(crate) mod overview;
pub(crate) mod pauses;
pub(crate) mod reasons;
pub(crate) mod routes;
pub(crate) mod settings;

use std::future::Future;
use std::time::Duration;

use axum::extract::{OriginalUri, Query};
use axum::response::{IntoResponse as _, Redirect, Response};
use pillarbox_core::error::StoreError;
use serde::Deserialize;
use tokio::time::timeout;

use crate::problem::Problem;

/// The time that the database may take for a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The answer of the database, if it comes in time.
pub(crate) async fn answer<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, Problem> {
    match timeout(PAGE_TIMEOUT, asked).await {
        Ok(answer) => Ok(answer?),
        Err(_elapsed) => {
            Err(Problem::unavailable("the database did not answer within ten seconds; narrow the filter, or try again"))
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Go {
    source: String,
    page: String,
}

/// Leads to a page of another source, as the switch in the head asks for.
pub(crate) async fn go(Query(Go { source, page }): Query<Go>) -> Response {
    let is_plain =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_plain(&source) || !is_plain(&page) {
        return Problem::not_found("there is no such page").into_response();
    }
    Redirect::to(&format!("s/{source}/{page}")).into_response()
}

/// Leads to the first page of a source.
pub(crate) async fn of_source(uri: OriginalUri) -> Response {
    let is_folder = uri.path().ends_with('/');
    let name = uri.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Redirect::to(&if is_folder { "overview".to_owned() } else { format!("{name}/overview") }).into_response()
}
