use std::fmt;
use std::sync::Arc;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use pillarbox_engine::observe::buckets;

/// The metrics of this process, as a page for Prometheus. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Source);

#[derive(Clone)]
enum Source {
    Installed(PrometheusHandle),
    Own(Arc<dyn Fn() -> String + Send + Sync>),
}

/// The recorder of metrics could not be installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "metrics cannot be recorded: {0}; install one recorder in a process, and give `Metrics::rendered_by` that of your service if it has one"
)]
pub struct MetricsError(BuildError);

impl From<BuildError> for MetricsError {
    fn from(error: BuildError) -> Self {
        Self(error)
    }
}

impl Metrics {
    /// Installs the recorder of this process, with the names and buckets that the documentation of the metrics has. To be called before
    /// an outbox starts, which makes the handles of its metrics then.
    ///
    /// # Errors
    /// The process has a recorder already.
    pub fn install() -> Result<Self, MetricsError> {
        Ok(Self(Source::Installed(builder()?.install_recorder()?)))
    }

    /// The page of a recorder that the service has installed itself.
    pub fn rendered_by(page: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Source::Own(Arc::new(page)))
    }

    /// The page as it is now.
    #[must_use]
    pub fn render(&self) -> String {
        match &self.0 {
            Source::Installed(handle) => handle.render(),
            Source::Own(page) => page(),
        }
    }

    /// Puts measurements into their buckets, which bounds the memory that they take. Every request to a page of a router does so;
    /// a process that nobody asks calls it every few seconds.
    pub fn run_upkeep(&self) {
        if let Source::Installed(handle) = &self.0 {
            handle.run_upkeep();
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// A recorder for Prometheus: with the names that the documentation has, and with buckets for durations and for batches.
fn builder() -> Result<PrometheusBuilder, BuildError> {
    let mut builder = PrometheusBuilder::new().with_recommended_naming(true).set_buckets(&buckets::SECONDS)?;
    for name in buckets::OF_ROWS {
        builder = builder.set_buckets_for_metric(Matcher::Suffix(name.to_owned()), &buckets::ROWS)?;
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_documented_names_and_buckets() {
        let recorder = builder().expect("buckets").build_recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::describe_gauge!("pillarbox.lag.oldest", metrics::Unit::Seconds, "The lag.");
            metrics::gauge!("pillarbox.lag.oldest").set(1.5);
            metrics::counter!("pillarbox.enqueue.hot.dropped", "table" => "outbox_event").increment(2);
            metrics::describe_histogram!("pillarbox.claim.duration", metrics::Unit::Seconds, "The claim.");
            metrics::histogram!("pillarbox.claim.duration").record(0.002);
            metrics::histogram!("pillarbox.claim.rows").record(0);
            metrics::histogram!("pillarbox.route.publish.messages").record(200);
        });
        let page = recorder.handle().render();
        for line in [
            "pillarbox_lag_oldest_seconds 1.5",
            "pillarbox_enqueue_hot_dropped_total{table=\"outbox_event\"} 2",
            "pillarbox_claim_duration_seconds_bucket{le=\"0.0025\"} 1",
            "pillarbox_claim_duration_seconds_bucket{le=\"0.001\"} 0",
            "pillarbox_claim_rows_bucket{le=\"0\"} 1",
            "pillarbox_route_publish_messages_bucket{le=\"300\"} 1",
        ] {
            assert!(page.lines().any(|found| found.trim_end() == line), "{line} in:\n{page}");
        }
    }
}
