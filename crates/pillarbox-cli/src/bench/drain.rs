use std::sync::Arc;

use pillarbox::{Outbox, Store};

use super::figures::{DrainFigures, Figures};
use super::lab::{Lab, Yardstick};
use super::load::{Calls, Load, wait_until_done};
use crate::args::DrainArgs;
use crate::failure::Failure;
use crate::report::per_second;

/// A backlog that was written while no outbox ran, delivered with all defaults by handlers that do nothing.
pub(crate) async fn run(lab: &dyn Lab, load: &Load, args: &DrainArgs) -> Result<Figures, Failure> {
    lab.clear().await?;
    let yardstick = Yardstick::before(lab).await?;
    lab.add_bystanders(args.done, args.delayed, &load.payload).await?;
    if args.blocked > 0 {
        load.block(lab, args.blocked).await?;
    }
    let filled = load.fill(lab).await?;
    tracing::info!(rows_per_s = per_second(load.events.into(), filled.as_secs_f64()), "the backlog is written");
    lab.rest().await?;
    let mut stores = vec![lab.store()];
    for _ in 1..args.nodes {
        stores.push(lab.another_store().await?);
    }
    let calls = Calls::new(load);
    let started = lab.now().await?;
    let mut outboxes = Vec::new();
    let drained = async {
        for store in &stores {
            outboxes.push(calls.start_outbox(Arc::clone(store), args.mode, args.delete_done).await?);
        }
        wait_until_done(&outboxes, load.events).await?;
        lab.now().await
    }
    .await;
    stop(&outboxes, &stores[1..]).await;
    let ended = drained?;
    let rows = lab.count().await?;
    let yardstick = yardstick.after(lab).await?;
    // A row that is gone does not say when.
    let seconds = seconds_between(started, if args.delete_done { ended } else { rows.last_done_at });
    let figures = Figures::new("drain", lab, load, seconds, yardstick);
    let figures =
        if args.delete_done { figures.removed(&calls, &rows) } else { figures.delivered(calls.duplicates(), &rows) };
    Ok(figures.with_drain(DrainFigures::new(args, load, &calls)))
}

async fn stop(outboxes: &[Outbox], stores: &[Arc<dyn Store>]) {
    for outbox in outboxes {
        outbox.shutdown().await;
    }
    for store in stores {
        store.close().await;
    }
}

/// Seconds between two readings of the database's clock.
#[expect(clippy::cast_precision_loss, reason = "a run takes less than 2^52 microseconds")]
pub(crate) fn seconds_between(start: i64, end: i64) -> f64 {
    end.saturating_sub(start).max(0) as f64 / 1e6
}
