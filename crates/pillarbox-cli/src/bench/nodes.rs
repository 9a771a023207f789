use std::sync::Arc;
use std::time::Duration;

use pillarbox::error::StartError;
use pillarbox::run::{Config, OutboxBuilder, kind};
use pillarbox::{Delivery, Outbox, Store};
use tokio::time::{Instant, sleep};

use super::calls::Calls;
use super::lab::Lab;
use crate::args::ModeArg;
use crate::failure::Failure;

/// The outboxes of a run, all in this process, each over connections of its own.
#[derive(Debug)]
pub(crate) struct Nodes {
    stores: Vec<Arc<dyn Store>>,
    outboxes: Vec<Outbox>,
    /// Whether the first store is the lab's, which goes on using it.
    shared: bool,
}

/// How the nodes of a run differ from the defaults.
#[derive(Debug, Clone)]
pub(crate) struct NodeSettings {
    pub(crate) mode: ModeArg,
    pub(crate) config: Config,
}

impl From<ModeArg> for NodeSettings {
    fn from(mode: ModeArg) -> Self {
        Self { mode, config: Config::default() }
    }
}

impl Nodes {
    /// Connects so many nodes to the database; none of them runs yet.
    pub(crate) async fn open(lab: &dyn Lab, nodes: u8) -> Result<Self, Failure> {
        let shared = lab.shares_its_store();
        let mut stores = Vec::new();
        for number in 0..nodes {
            stores.push(if shared && number == 0 { lab.store() } else { lab.another_store().await? });
        }
        Ok(Self { stores, outboxes: Vec::new(), shared })
    }

    /// Starts all of them, with a handler that only notes that it was called.
    pub(crate) async fn start(&mut self, calls: &Arc<Calls>, settings: &NodeSettings) -> Result<(), Failure> {
        for store in &self.stores {
            self.outboxes.push(start(Arc::clone(store), calls, settings).await?);
        }
        Ok(())
    }

    /// The node in whose process the events are written, once it was started.
    pub(crate) fn first(&self) -> Option<&Outbox> {
        self.outboxes.first()
    }

    /// Events that were recorded as DONE.
    pub(crate) fn done(&self) -> u64 {
        self.outboxes.iter().map(|outbox| outbox.stats().done).sum()
    }

    /// Waits until that many events were recorded as DONE, asking the process rather than the database so that the waiting
    /// costs the measurement nothing.
    pub(crate) async fn wait_until_done(&self, events: u64) -> Result<(), Failure> {
        const LOOK_AGAIN: Duration = Duration::from_millis(2);
        const NO_PROGRESS: Duration = Duration::from_secs(60);
        let (mut done, mut moved) = (0, Instant::now());
        while done < events {
            sleep(LOOK_AGAIN).await;
            let now = self.done();
            if now > done {
                (done, moved) = (now, Instant::now());
            } else if moved.elapsed() > NO_PROGRESS {
                return Err(Failure::Stalled { done, events, seconds: NO_PROGRESS.as_secs() });
            }
        }
        Ok(())
    }

    /// Stops those that run, and closes the connections of all.
    pub(crate) async fn stop(self) {
        for outbox in &self.outboxes {
            outbox.shutdown().await;
        }
        for store in self.stores.iter().skip(self.shared.into()) {
            store.close().await;
        }
    }
}

async fn start(store: Arc<dyn Store>, calls: &Arc<Calls>, settings: &NodeSettings) -> Result<Outbox, StartError> {
    match settings.mode {
        ModeArg::SingleNode => launch(Outbox::single_node(store), calls, settings).await,
        ModeArg::MultiNode => launch(Outbox::multi_node(store), calls, settings).await,
        ModeArg::Partitioned => launch(Outbox::partitioned(store), calls, settings).await,
        ModeArg::Ordered => launch(Outbox::ordered(store), calls, settings).await,
    }
}

async fn launch<K: kind::Deliverer>(
    builder: OutboxBuilder<K>,
    calls: &Arc<Calls>,
    settings: &NodeSettings,
) -> Result<Outbox, StartError> {
    let calls = Arc::clone(calls);
    let handler = move |delivery: Delivery| std::future::ready(calls.note(&delivery));
    builder.config(settings.config.clone()).handle_all(handler).start().await
}
