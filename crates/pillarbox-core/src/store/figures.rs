use std::time::Duration;

use serde_json::{Value, json};

/// The figures of a node, as it writes them into its row with each renewal of its lease.
///
/// The counts go on since its outbox was started, so that two readings and the time between two renewals make a rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFigures {
    /// Events that it delivered.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Events that it gave up.
    pub dead: u64,
    /// The median time from the commit of an event to the end of its call, since the renewal before; for one with a due time from when it was
    /// read. `None` without any.
    pub latency_p50: Option<Duration>,
    /// The 99th percentile of that time.
    pub latency_p99: Option<Duration>,
    /// Handler calls that run.
    pub busy: u32,
    /// Events that wait in its memory.
    pub queued: u64,
}

impl NodeFigures {
    /// The text of the column `figures`: a JSON object, below 255 bytes. Latencies are microseconds.
    #[must_use]
    pub fn column(&self) -> String {
        let Self { delivered, failed, dead, latency_p50, latency_p99, busy, queued } = self;
        let micros = |time: &Option<Duration>| time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        json!({
            "delivered": delivered, "failed": failed, "dead": dead, "busy": busy, "queued": queued,
            "p50": micros(latency_p50), "p99": micros(latency_p99),
        })
        .to_string()
    }

    /// The figures in a column; `None` if there are none, as in the row of a release before, or no such text.
    #[must_use]
    pub fn of(column: Option<&str>) -> Option<Self> {
        let figures: Value = serde_json::from_str(column?).ok()?;
        let count = |name| figures.get(name).and_then(Value::as_u64);
        let time = |name| count(name).map(Duration::from_micros);
        Some(Self {
            delivered: count("delivered")?,
            failed: count("failed")?,
            dead: count("dead")?,
            latency_p50: time("p50"),
            latency_p99: time("p99"),
            busy: u32::try_from(count("busy")?).ok()?,
            queued: count("queued")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_tells_the_figures_and_fits() {
        let most = NodeFigures {
            delivered: u64::MAX,
            failed: u64::MAX,
            dead: u64::MAX,
            latency_p50: Some(Duration::from_micros(u64::MAX)),
            latency_p99: Some(Duration::from_micros(u64::MAX)),
            busy: u32::MAX,
            queued: u64::MAX,
        };
        for figures in [NodeFigures::default(), most] {
            let column = figures.column();
            assert!(column.len() < 255, "{column}");
            assert_eq!(NodeFigures::of(Some(&column)), Some(figures));
        }
    }

    #[test]
    fn a_column_of_another_form_tells_none() {
        for column in [None, Some(""), Some("{}"), Some("[1]"), Some("{\"delivered\":-1}")] {
            assert_eq!(NodeFigures::of(column), None, "{column:?}");
        }
    }
}
