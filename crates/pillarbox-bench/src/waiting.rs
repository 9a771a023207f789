use std::sync::Arc;
use std::time::Duration;

use pillarbox::event::EventId;
use pillarbox::{Outbox, Store};
use tokio::time::Instant;

use super::load::Load;
use crate::failure::Failure;
use pillarbox_program::stopwatch::Stopwatch;

/// No event takes this long; one that does is an error of the run.
const LIMIT: Duration = Duration::from_secs(60);

/// A process that delivers nothing and waits for the delivery of each event from its commit on.
#[derive(Debug)]
pub(crate) struct Waiting {
    outbox: Outbox,
    pub(crate) stopwatch: Stopwatch,
}

impl Waiting {
    /// Starts it on a store of its own.
    pub(crate) async fn start(store: Arc<dyn Store>, load: &Load) -> Result<Arc<Self>, Failure> {
        let outbox = Outbox::writer_only(store).start().await?;
        Ok(Arc::new(Self { outbox, stopwatch: Stopwatch::new(load.events as usize) }))
    }

    /// Waits for an event whose commit returned at `committed`.
    pub(crate) async fn wait(self: Arc<Self>, number: u32, id: EventId, committed: Instant) -> Result<(), Failure> {
        self.stopwatch.committed(number as usize, committed);
        self.outbox.delivered(id).within(LIMIT).await.map_err(Failure::during("wait for a delivery"))?;
        self.stopwatch.handled(number as usize, Instant::now());
        Ok(())
    }

    /// Stops it.
    pub(crate) async fn stop(&self) {
        self.outbox.shutdown().await;
    }
}
