use std::sync::Arc;

use crate::calls::Calls;
use crate::failure::Failure;
use crate::lab::{BenchDb, Rows, seconds_between};
use crate::load::Load;
use crate::meter::{Measured, Meter, Progress};
use crate::nodes::{NodeSettings, Nodes};
use pillarbox_program::progress::bar;

/// A backlog in the table, and the nodes that deliver it.
pub(super) struct Backlog<'a> {
    pub(super) lab: &'a dyn BenchDb,
    pub(super) load: &'a Load,
    pub(super) nodes: u8,
    pub(super) settings: &'a NodeSettings,
}

/// The result of a delivery.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) rows: Rows,
    pub(super) measured: Measured,
    /// From `start()` to the last `done_at`, or to the end where rows are deleted, by the database's clock.
    pub(super) seconds: f64,
}

impl Backlog<'_> {
    /// Starts the nodes and does `work`, which waits until everything is delivered. `written` counts the events that are
    /// written until then, with the backlog.
    pub(super) async fn deliver<T>(
        &self,
        calls: &Arc<Calls>,
        written: impl Fn() -> u64,
        work: impl AsyncFnOnce(&Nodes) -> Result<T, Failure>,
    ) -> Result<(Delivered, T), Failure> {
        let Self { lab, load, settings, .. } = *self;
        let mut nodes = Nodes::open(lab, self.nodes, false).await?;
        let mut meter = Meter::start(lab, load.events, bar(load.events.into(), "delivered")).await?;
        let delivered = async {
            let started = lab.now().await?;
            nodes.start(calls, settings).await?;
            let progress = || Progress { written: written(), done: nodes.done() };
            let worked = meter.watch(progress, work(&nodes)).await?;
            Ok::<_, Failure>((started, lab.now().await?, worked))
        }
        .await;
        nodes.stop().await;
        let (started, ended, worked) = delivered?;
        let measured = meter.finish().await?;
        let rows = lab.count().await?;
        // A deleted row has no `done_at`.
        let ended = if settings.config.settle.delete_done { ended } else { rows.last_done_at };
        Ok((Delivered { rows, measured, seconds: seconds_between(started, ended) }, worked))
    }
}
