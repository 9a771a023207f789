use std::time::Duration;

use super::{BATCH, Lab};
use crate::failure::Failure;

/// Rows of the yardstick's table.
pub(crate) const ROWS: i64 = 100_000;

/// The yardstick of a run: measured on both sides of it, because machines get warm and databases get tired.
#[derive(Debug)]
pub(crate) struct Yardstick {
    before: f64,
}

impl Yardstick {
    const TIME: Duration = Duration::from_millis(1500);

    /// Measures before the run.
    pub(crate) async fn before(lab: &dyn Lab) -> Result<Self, Failure> {
        lab.rest().await?;
        Ok(Self { before: lab.yardstick(Self::TIME).await? })
    }

    /// Measures after the run and returns the mean of both.
    pub(crate) async fn after(self, lab: &dyn Lab) -> Result<f64, Failure> {
        lab.rest().await?;
        Ok(f64::midpoint(self.before, lab.yardstick(Self::TIME).await?))
    }
}

/// The ids of the yardstick's statements, for ever: each the next [`BATCH`] in a row.
pub(crate) fn ids() -> impl Iterator<Item = Vec<i64>> {
    let starts = (1..=ROWS).step_by(BATCH).cycle();
    starts.map(|first| (first..).take(BATCH).collect())
}
