//! Upper bounds of the histograms' buckets, for recorders that need them, as that of Prometheus does. Without buckets it makes
//! summaries, which no alert and no dashboard of Pillarbox can use.
//!
//! This is all that a program does to show the metrics under the names that `docs/metrics.md`, the alerts and the dashboard use:
//!
//! ```
//! use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};
//! use pillarbox_engine::observe::buckets;
//!
//! fn prometheus() -> Result<PrometheusBuilder, BuildError> {
//!     // `_seconds` and `_total` at the end of the names, and `_bucket` of the durations.
//!     let mut builder = PrometheusBuilder::new().with_recommended_naming(true).set_buckets(&buckets::SECONDS)?;
//!     for name in buckets::OF_ROWS {
//!         builder = builder.set_buckets_for_metric(Matcher::Suffix(name.to_owned()), &buckets::ROWS)?;
//!     }
//!     Ok(builder)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Before the outbox is started: it makes the handles of its metrics then.
//! let metrics = prometheus()?.install_recorder()?;
//! # metrics::describe_gauge!("pillarbox.lag.oldest", metrics::Unit::Seconds, "The lag.");
//! # metrics::gauge!("pillarbox.lag.oldest").set(1.5);
//! # metrics::counter!("pillarbox.dispatch.dead").increment(1);
//! # metrics::histogram!("pillarbox.settle.batch").record(200);
//! let page = metrics.render();
//! # for line in [
//! #     "pillarbox_lag_oldest_seconds 1.5",
//! #     "pillarbox_dispatch_dead_total 1",
//! #     "pillarbox_settle_batch_bucket{le=\"300\"} 1",
//! # ] {
//! #     assert!(page.lines().any(|found| found == line), "{line} in:\n{page}");
//! # }
//! # Ok(())
//! # }
//! ```

/// Of durations, in seconds: from an event handled from memory to a handler that takes five minutes.
pub const SECONDS: [f64; 21] = [
    5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

/// Of numbers of rows and messages. Zero is a bound of its own: the answer to most polls of an idle outbox.
pub const ROWS: [f64; 11] = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 2000.0, 5000.0, 10_000.0];

/// The histograms of rows and messages, by the ends of their names; all others are of durations.
pub const OF_ROWS: [&str; 4] = ["write.rows", "claim.rows", "settle.batch", "route.publish.messages"];
