use std::sync::Arc;
use std::time::Duration;

use pillarbox::Outbox;

use crate::calls::Calls;
use crate::failure::Failure;
use crate::figures::LossCount;
use crate::lab::{BenchDb, Rows, seconds_between};
use crate::load::Load;
use crate::meter::{Measured, Meter, Progress};
use crate::nodes::{NodeSettings, Nodes};
use crate::waiting::Waiting;
use crate::writers::Writers;
use pillarbox_program::progress::bar;
use pillarbox_program::stopwatch::Latency;

/// The time that the seconds of a run measure.
pub(super) const SECONDS: &str = "from the first write to the last done_at, by the database's clock";

/// Writers at work, each transaction one event, while nodes deliver the events.
pub(super) struct Beside<'a> {
    pub(super) lab: &'a Arc<dyn BenchDb>,
    pub(super) load: &'a Load,
    pub(super) writers: u16,
    /// Events per second; flat out without it.
    pub(super) rate: Option<u32>,
    pub(super) nodes: u8,
    pub(super) settings: NodeSettings,
    pub(super) path: Path,
    /// True if another process waits for the delivery of each event.
    pub(super) waited_for: bool,
    /// True if a transaction that does nothing holds a snapshot open from the beginning to the end.
    pub(super) snapshot_held: bool,
}

/// The way in which a node learns of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// The node is in the process of the writers, and the guard notifies it of each commit.
    Memory,
    /// The node is in the process of the writers, and is not notified.
    Table,
    /// The node is in another process, which is `woken` by commits or not.
    Elsewhere { woken: bool },
}

/// The result of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) calls: Arc<Calls>,
    pub(super) rows: Rows,
    pub(super) fate: LossCount,
    pub(super) measured: Measured,
    /// The time from commit to the answer in the process that waits.
    pub(super) delivered: Latency,
    /// From the first write to the last `done_at`, by the database's clock.
    pub(super) seconds: f64,
    /// The time that the writers took.
    pub(super) writing: Duration,
    /// Events delivered by then.
    pub(super) done_by_then: u64,
}

impl Beside<'_> {
    pub(super) async fn run(&self) -> Result<Outcome, Failure> {
        let Self { lab, load, .. } = self;
        lab.clear().await?;
        lab.rest().await?;
        let snapshot = if self.snapshot_held { Some(lab.hold_snapshot().await?) } else { None };
        let calls = Calls::new(load);
        let elsewhere = matches!(self.path, Path::Elsewhere { .. });
        let mut nodes = Nodes::open(&***lab, self.nodes, elsewhere).await?;
        let store = if self.waited_for { Some(lab.another_store().await?) } else { None };
        let waiting = match &store {
            Some(store) => Some(Waiting::start(Arc::clone(store), load).await?),
            None => None,
        };
        let mut meter = Meter::start(&***lab, load.events, bar(load.events.into(), "delivered")).await?;
        let ran = self.write_and_deliver(&calls, waiting.as_ref(), &mut nodes, &mut meter).await;
        nodes.stop().await;
        if let (Some(waiting), Some(store)) = (&waiting, store) {
            waiting.stop().await;
            store.close().await;
        }
        let (started, writing, done_by_then) = ran?;
        let measured = meter.finish().await?;
        drop(snapshot);
        let rows = lab.count().await?;
        let fate = LossCount::delivered(load, &calls, &rows, false);
        let seconds = seconds_between(started, rows.last_done_at);
        let delivered = waiting.map_or_else(Latency::default, |waiting| waiting.stopwatch.latency());
        Ok(Outcome { calls, rows, fate, measured, delivered, seconds, writing, done_by_then })
    }

    async fn write_and_deliver(
        &self,
        calls: &Arc<Calls>,
        waiting: Option<&Arc<Waiting>>,
        nodes: &mut Nodes,
        meter: &mut Meter<'_>,
    ) -> Result<(i64, Duration, u64), Failure> {
        let mut settings = self.settings.clone();
        settings.config.wake_up.enabled = self.path == Path::Elsewhere { woken: true };
        nodes.start(calls, &settings).await?;
        let nodes = &*nodes;
        let writer = self.writing_outbox(nodes).await?;
        let started = self.lab.now().await?;
        let mut writers = Writers::new(self.lab, self.load, self.writers);
        writers.guard.clone_from(&writer);
        writers.calls = Some(Arc::clone(calls));
        writers.rate = self.rate;
        writers.waiting = waiting.cloned();
        let progress = || Progress { written: writers.written(), done: nodes.done() };
        let work = async {
            let writing = writers.run().await?;
            let done_by_then = nodes.done();
            nodes.wait_until_done(self.load.events.into()).await?;
            Ok::<_, Failure>((writing, done_by_then))
        };
        let ran = meter.watch(progress, work).await;
        if let (Path::Elsewhere { .. }, Some(writer)) = (self.path, writer) {
            writer.shutdown().await;
        }
        let (writing, done_by_then) = ran?;
        Ok((started, writing, done_by_then))
    }

    /// The outbox whose guard the writers use.
    async fn writing_outbox(&self, nodes: &Nodes) -> Result<Option<Outbox>, Failure> {
        Ok(match self.path {
            Path::Memory => nodes.first().cloned(),
            Path::Table | Path::Elsewhere { woken: false } => None,
            Path::Elsewhere { woken: true } => Some(Outbox::writer_only(self.lab.store()).wake_up(true).start().await?),
        })
    }
}

/// The same writers on an empty table without any outbox running: half of the events before a run, and half after it,
/// so that a slow machine slows both.
#[derive(Debug, Default)]
pub(super) struct Alone {
    events: u64,
    time: Duration,
}

impl Alone {
    pub(super) async fn write_half(
        &mut self,
        lab: &Arc<dyn BenchDb>,
        load: &Load,
        writers: u16,
    ) -> Result<(), Failure> {
        lab.clear().await?;
        lab.rest().await?;
        let half = load.of_events(load.events.div_ceil(2));
        self.time += Writers::new(lab, &half, writers).run().await?;
        self.events += u64::from(half.events);
        Ok(())
    }

    pub(super) fn per_s(&self) -> f64 {
        pillarbox_program::report::per_second(self.events, self.time.as_secs_f64())
    }
}
