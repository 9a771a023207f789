use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};

/// Upper bounds of durations, in seconds: from an event handled from memory to a handler that takes a minute.
const SECONDS: [f64; 19] =
    [5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// Upper bounds of batches. Zero is a bound of its own: the answer to most looks of an idle outbox.
const ROWS: [f64; 11] = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 2000.0, 5000.0, 10_000.0];
/// The histograms of batches, by the end of their names.
const OF_ROWS: [&str; 3] = ["claim.rows", "settle.batch", "publish.messages"];

/// What to record metrics with for Prometheus: with the names that the documentation has, and with buckets for durations and for
/// batches.
///
/// # Errors
/// None that depends on the caller.
pub fn prometheus() -> Result<PrometheusBuilder, BuildError> {
    let mut builder = PrometheusBuilder::new().with_recommended_naming(true).set_buckets(&SECONDS)?;
    for name in OF_ROWS {
        builder = builder.set_buckets_for_metric(Matcher::Suffix(name.to_owned()), &ROWS)?;
    }
    Ok(builder)
}
