use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use pillarbox_core::observe::Health;
use pillarbox_routes::RouteStatus;
use serde::Serialize;

use crate::relay::SourceReport;

/// `/status`. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Status {
    sources: Vec<SourceStatus>,
}

#[derive(Debug, Serialize)]
struct SourceStatus {
    source: String,
    database: String,
    table: String,
    alive: bool,
    ready: bool,
    health: String,
    routes: Vec<RouteStatus>,
}

/// All there is to tell.
pub(super) fn status(reports: Vec<SourceReport>) -> Response {
    let source = |report: SourceReport| SourceStatus {
        source: report.name,
        database: report.address,
        table: report.table,
        alive: report.health.is_alive(),
        ready: report.health.is_ready(),
        health: report.health.to_string(),
        routes: report.routes,
    };
    Json(Status { sources: reports.into_iter().map(source).collect() }).into_response()
}

/// The answer to a probe: 200 if every source is well, else 503, with a line for each.
pub(super) fn probe(reports: &[SourceReport], is_well: impl Fn(&Health) -> bool) -> Response {
    let status = if reports.iter().all(|report| is_well(&report.health)) {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let lines: String = reports.iter().map(|report| format!("{}: {}\n", report.name, report.health)).collect();
    (status, lines).into_response()
}
