use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use pillarbox_engine::observe::Health;
use pillarbox_engine::run::Outbox;

use crate::Metrics;
use crate::backlog::BacklogReader;
use crate::status::{Status, problems};

/// The type of a page for Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The pages of an outbox. Its routers fit into a router with any state.
#[derive(Debug, Clone)]
pub struct Pages {
    outbox: Outbox,
    backlog: Arc<BacklogReader>,
    metrics: Option<Metrics>,
}

impl Pages {
    /// The pages of this outbox, without metrics.
    #[must_use]
    pub fn new(outbox: Outbox) -> Self {
        let backlog = Arc::new(BacklogReader::new(outbox.clone()));
        Self { outbox, backlog, metrics: None }
    }

    /// Adds `/metrics`.
    #[must_use]
    pub fn metrics(self, metrics: Metrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Routes `/health/live` and `/health/ready`. A failing probe names its [problems](pillarbox_engine::observe::Problem), but no node, no
    /// database and no event.
    pub fn probes<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let (live, ready) = (self.clone(), self.clone());
        Router::new()
            .route("/health/live", get(async move || live.probe("alive", Health::is_alive)))
            .route("/health/ready", get(async move || ready.probe("ready", Health::is_ready)))
    }

    /// All pages. For a listener that only your own network reaches.
    ///
    /// `/status` asks the database at most once in five seconds, however often it is asked for, and waits two seconds at most.
    pub fn router<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let pages = self.clone();
        let router = self.probes().route("/status", get(async move || pages.status().await));
        match &self.metrics {
            Some(metrics) => {
                let metrics = metrics.clone();
                let page = async move || ([(header::CONTENT_TYPE, PROMETHEUS)], metrics.render());
                router.route("/metrics", get(page))
            }
            None => router,
        }
    }

    fn probe(&self, word: &str, is_well: fn(&Health) -> bool) -> Response {
        self.upkeep();
        let health = self.outbox.health();
        if is_well(&health) {
            return fresh(format!("{word}\n"));
        }
        let problems = problems(&health).join("; ");
        (StatusCode::SERVICE_UNAVAILABLE, fresh(format!("not {word}: {problems}\n"))).into_response()
    }

    async fn status(&self) -> Response {
        self.upkeep();
        let reading = self.backlog.read().await;
        fresh(Json(Status::of(&self.outbox, reading)))
    }

    fn upkeep(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.run_upkeep();
        }
    }
}

/// An answer that no proxy keeps.
pub fn fresh(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], body).into_response()
}
