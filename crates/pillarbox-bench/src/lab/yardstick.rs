use std::time::Duration;

use super::{BATCH, BenchDb};
use crate::failure::Failure;

/// Rows of the yardstick's table.
pub(crate) const ROWS: i64 = 100_000;

/// The yardstick of a run: measured before and after it, because machines get warm and databases slow down.
#[derive(Debug)]
pub(crate) struct Yardstick {
    before: f64,
    time: Duration,
}

impl Yardstick {
    /// Measures before a run of this many events.
    pub(crate) async fn before(lab: &dyn BenchDb, events: u32) -> Result<Self, Failure> {
        let time = time(events);
        lab.rest().await?;
        Ok(Self { before: lab.yardstick(time).await?, time })
    }

    /// Measures after the run and returns the mean of both.
    pub(crate) async fn after(self, lab: &dyn BenchDb) -> Result<f64, Failure> {
        lab.rest().await?;
        Ok(f64::midpoint(self.before, lab.yardstick(self.time).await?))
    }
}

/// The time to measure for: long enough for a stable figure, and less beside very short runs, whose ratio means
/// nothing.
fn time(events: u32) -> Duration {
    let beside = Duration::from_micros(30) * events;
    beside.clamp(Duration::from_millis(50), Duration::from_millis(1500))
}

/// The ids of the yardstick's statements, without end: each takes the next [`BATCH`].
pub(crate) fn ids() -> impl Iterator<Item = Vec<i64>> {
    let starts = (1..=ROWS).step_by(BATCH).cycle();
    starts.map(|first| (first..).take(BATCH).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yardstick_takes_its_time_beside_a_run_that_does() {
        let times = [1, 10_000, 50_000, 10_000_000].map(|events| time(events).as_millis());
        assert_eq!(times, [50, 300, 1500, 1500]);
    }
}
