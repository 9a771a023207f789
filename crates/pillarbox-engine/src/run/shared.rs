use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::event::{Envelope, Stamp};
use pillarbox_core::store::Store;
use pillarbox_core::write::{NewRow, OpenTransactions, RowMaker, Writer, WriterHooks, WriterParts};
use tracing::Span;

use super::Config;
use crate::follow::Followed;
use crate::handlers::{Contexts, FanOut, LimitedHandlers, Router};
use crate::observe::{Calls, Counters, Meters, MetricsFactory, Telemetry};
use crate::queue::{HotPath, Intake};

/// The state that the writing and the delivering side share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) stamp: Arc<Stamp>,
    /// The parts that are its own.
    pub(super) writing: Arc<WriterParts>,
    pub(super) writer: Writer,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) limits: Arc<LimitedHandlers>,
    pub(crate) intake: Arc<Intake>,
    pub(super) followed: Arc<Followed>,
    pub(super) open: Arc<OpenTransactions>,
    pub(super) lease: Duration,
    /// The span in which every task of it runs.
    pub(super) span: Span,
}

/// The steps that events go through on their way into the table.
#[derive(Debug, Default)]
pub(super) struct Writing {
    pub(super) hooks: WriterHooks,
    pub(super) contexts: Contexts,
    pub(super) fan_out: FanOut,
}

/// Makes rows of events as this outbox is set up.
struct Rows {
    contexts: Contexts,
    fan_out: FanOut,
    telemetry: Arc<Telemetry>,
}

impl RowMaker for Rows {
    fn rows(&self, mut events: Vec<Envelope>) -> Vec<NewRow> {
        self.contexts.capture(&mut events);
        self.fan_out.rows(events)
    }

    fn inserted(&self, took: Duration, rows: Option<usize>) {
        self.telemetry.meters.write.record(took, rows);
    }
}

impl Shared {
    pub(super) fn new(
        store: Arc<dyn Store>,
        stamp: Arc<Stamp>,
        writing: Writing,
        hot_path: HotPath,
        config: &Config,
        router: &Router,
        span: Span,
    ) -> Self {
        let metrics_factory = MetricsFactory::new(&config.metrics.prefix, store.info());
        let meters = Meters::new(&metrics_factory, router.event_types(), Arc::clone(&stamp));
        let counters = Counters::new(&metrics_factory);
        let limits = Arc::new(LimitedHandlers::new(router, &metrics_factory));
        let (capacity, wakes_others) = (config.dispatch.hot_capacity, config.wake_up.enabled);
        let calls = Calls::new(config.dispatch.slow_after, meters.abandoned.clone());
        let telemetry = Arc::new(Telemetry::new(counters, meters, calls));
        let intake = Intake::new(hot_path, capacity, wakes_others, Arc::clone(&stamp), Arc::clone(&telemetry));
        let (intake, open) = (Arc::new(intake), Arc::<OpenTransactions>::default());
        let Writing { hooks, contexts, fan_out } = writing;
        let writing = Arc::new(WriterParts {
            store: Arc::clone(&store),
            stamp: Arc::clone(&stamp),
            hooks,
            rows: Box::new(Rows { contexts, fan_out, telemetry: Arc::clone(&telemetry) }),
            sink: Arc::<Intake>::clone(&intake),
            open: Arc::clone(&open),
        });
        Self {
            store,
            stamp,
            writer: Writer::new(Arc::clone(&writing)),
            writing,
            telemetry,
            limits,
            intake,
            followed: Arc::new(Followed::new(config.settle.delete_done)),
            open,
            lease: config.ownership.lease,
            span,
        }
    }
}
