use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use pillarbox_axum::{Paused, fresh};
use pillarbox_routes::RouteStatus;
use serde::Serialize;

use crate::report::{ConfigurationReport, Report, SourceReport};

/// `/status`. Its keys are a contract.
#[derive(Debug, Serialize)]
struct Status {
    /// True once it delivers: at first it asks the databases and brokers.
    started: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<ConfigurationReport>,
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
    problems: Vec<String>,
    /// Workers that are in a call, which hands a batch to a broker.
    busy_workers: usize,
    oldest_call_seconds: Option<f64>,
    routes: Vec<RouteStatus>,
    paused: Vec<Paused>,
}

/// All there is to tell.
pub(super) fn status(Report { configuration, sources }: Report) -> Response {
    let source = |report: SourceReport| SourceStatus {
        source: report.name,
        database: report.address,
        table: report.table,
        alive: report.health.is_alive(),
        ready: report.health.is_ready(),
        health: report.health.to_string(),
        problems: report.health.problems(),
        busy_workers: report.health.outbox().map_or(0, |health| health.busy_workers),
        oldest_call_seconds: report.health.outbox().and_then(|health| health.oldest_call).map(|age| age.as_secs_f64()),
        routes: report.routes,
        paused: report.paused.into_iter().map(Paused::from).collect(),
    };
    let started = sources.is_some();
    let sources = sources.unwrap_or_default().into_iter().map(source).collect();
    fresh(Json(Status { started, configuration, sources }))
}

/// The question of a probe.
#[derive(Debug, Clone, Copy)]
pub(super) enum Probe {
    Live,
    Ready,
}

/// The answer to a probe: 200 if every source is well, else 503, with a line for each.
pub(super) fn probe(probe: Probe, reports: Option<&[SourceReport]>) -> Response {
    let status = |is_well: bool| if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let Some(reports) = reports else {
        return fresh((status(matches!(probe, Probe::Live)), "starting\n"));
    };
    let is_well = |report: &SourceReport| match probe {
        Probe::Live => report.health.is_alive(),
        Probe::Ready => report.health.is_ready(),
    };
    let lines: String = reports.iter().map(|report| format!("{}: {}\n", report.name, report.health)).collect();
    fresh((status(reports.iter().all(is_well)), lines))
}
