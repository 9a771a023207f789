use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};
use pillarbox_engine::observe::buckets;

/// A recorder for Prometheus: with the names that the documentation has, and with buckets for durations and for batches.
pub(super) fn prometheus() -> Result<PrometheusBuilder, BuildError> {
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
        let recorder = prometheus().expect("buckets").build_recorder();
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
