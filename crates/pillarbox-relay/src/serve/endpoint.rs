use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use pillarbox_axum::Metrics;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connections::{Limits, answer};
use super::pages::Probe;
use super::{Reports, pages};

/// The interval at which measurements are put into their buckets, which bounds the memory they take.
const UPKEEP: Duration = Duration::from_secs(5);

/// The endpoint could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve at http://{address}: {problem}; choose another address or port")]
pub struct ServeError {
    pub(super) address: SocketAddr,
    pub(super) problem: String,
}

/// An address at which a process tells how it is: `/health/live`, `/health/ready`, `/status` and `/metrics`. It is open, and
/// nobody is answered yet.
#[derive(Debug)]
pub struct Endpoint(Option<(TcpListener, Metrics)>);

/// Answers until it is closed.
#[derive(Debug)]
pub struct Serving {
    pub(super) stop: CancellationToken,
    pub(super) tasks: JoinSet<()>,
}

impl Endpoint {
    /// Opens the address, if there is one, and begins to measure: an outbox makes the handles of its metrics when it starts.
    ///
    /// # Errors
    /// When the address is taken, or the process measures for another endpoint already.
    pub async fn open(address: Option<SocketAddr>) -> Result<Self, ServeError> {
        let Some(address) = address else { return Ok(Self(None)) };
        let failed = |problem: String| ServeError { address, problem };
        let listener = TcpListener::bind(address).await.map_err(|error| failed(error.to_string()))?;
        let metrics = Metrics::install().map_err(|error| failed(error.to_string()))?;
        Ok(Self(Some((listener, metrics))))
    }

    /// Answers from now on, with what `reports` says at each time.
    #[must_use = "it answers until it is closed or dropped"]
    pub fn serve(self, reports: Reports) -> Serving {
        let stop = CancellationToken::new();
        let Some((listener, metrics)) = self.0 else { return Serving { stop, tasks: JoinSet::new() } };
        let probe = |probe| {
            let reports = Arc::clone(&reports);
            get(move || std::future::ready(pages::probe(probe, reports().sources.as_deref())))
        };
        let (live, ready) = (probe(Probe::Live), probe(Probe::Ready));
        let render = metrics.clone();
        let router = Router::new()
            .route("/health/live", live)
            .route("/health/ready", ready)
            .route("/status", get(move || std::future::ready(pages::status(reports()))))
            .route("/metrics", get(move || std::future::ready(render.render())));
        let mut tasks = JoinSet::new();
        tasks.spawn(answer(listener, router, Limits::default(), stop.clone()));
        let upkeep = stop.clone();
        tasks.spawn(async move {
            let for_ever = async {
                loop {
                    tokio::time::sleep(UPKEEP).await;
                    metrics.run_upkeep();
                }
            };
            upkeep.run_until_cancelled(for_ever).await;
        });
        Serving { stop, tasks }
    }
}

impl Serving {
    /// Accepts no request any more. Requests under way are waited for a moment only.
    pub async fn close(mut self) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ended = tokio::time::timeout(Duration::from_secs(1), ended).await;
    }
}
