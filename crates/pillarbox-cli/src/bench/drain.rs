use super::figures::Figures;
use super::lab::{Lab, Yardstick};
use super::load::{Calls, Load, wait_until_done};
use crate::failure::Failure;
use crate::report::per_second;

/// A backlog that was written while no outbox ran, delivered with all defaults by a handler that does nothing.
pub(crate) async fn run(lab: &dyn Lab, load: &Load) -> Result<Figures, Failure> {
    lab.clear().await?;
    let yardstick = Yardstick::before(lab).await?;
    let filled = load.fill(lab).await?;
    tracing::info!(rows_per_s = per_second(load.events.into(), filled.as_secs_f64()), "the backlog is written");
    lab.rest().await?;
    let calls = Calls::new(load.events);
    let started = lab.now().await?;
    let outbox = calls.start_outbox(lab).await?;
    let drained = wait_until_done(&outbox, load.events).await;
    outbox.shutdown().await;
    drained?;
    let rows = lab.count().await?;
    let yardstick = yardstick.after(lab).await?;
    let seconds = seconds_between(started, rows.last_done_at);
    Ok(Figures::new("drain", lab, load, seconds, yardstick).delivered(calls.duplicates(), &rows))
}

/// Seconds between two readings of the database's clock.
#[expect(clippy::cast_precision_loss, reason = "a run takes less than 2^52 microseconds")]
pub(crate) fn seconds_between(start: i64, end: i64) -> f64 {
    end.saturating_sub(start).max(0) as f64 / 1e6
}
