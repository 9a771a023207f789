use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use pillarbox::error::StartError;
use pillarbox::handle::{Events, on_batch, on_type};
use pillarbox::run::Config;
use pillarbox::{Delivery, HandlerError, Outbox, Store};
use tokio::time::{Instant, sleep};

use super::calls::Calls;
use super::lab::BenchDb;
use super::passing::BrokerTarget;
use crate::failure::Failure;
use pillarbox_program::arguments::ModeArg;
use pillarbox_program::failure::Failure as Common;

/// The outboxes of a run, all in this process, each over connections of its own.
#[derive(Debug)]
pub(crate) struct Nodes {
    stores: Vec<Arc<dyn Store>>,
    outboxes: Vec<Outbox>,
    /// True if the first store is the lab's, which goes on using it.
    shared: bool,
}

/// The mode and the settings of a run's nodes.
#[derive(Clone)]
pub(crate) struct NodeSettings {
    pub(crate) mode: ModeArg,
    pub(crate) config: Config,
    pub(crate) work: Work,
}

/// The work of a run's handlers, beside noting their calls.
#[derive(Clone)]
pub(crate) enum Work {
    Nothing,
    /// A row, in a transaction of the handler's own.
    Row(Arc<dyn BenchDb>),
    /// A row, in the transaction in which the event becomes DONE.
    RowInTransaction(Arc<dyn BenchDb>),
    /// A message to a broker.
    Message(BrokerTarget),
}

impl From<ModeArg> for NodeSettings {
    fn from(mode: ModeArg) -> Self {
        Self { mode, config: Config::default(), work: Work::Nothing }
    }
}

impl NodeSettings {
    /// Lets a node look at the table every so many milliseconds, whether it finds something or not.
    pub(crate) fn look_every(&mut self, milliseconds: u16) {
        let every = Duration::from_millis(milliseconds.into());
        (self.config.claim.min_interval, self.config.claim.max_interval) = (every, every);
    }
}

impl Nodes {
    /// Connects nodes to the database, without starting any. The first belongs to the process that writes, unless all are
    /// `elsewhere`.
    pub(crate) async fn open(lab: &dyn BenchDb, nodes: u8, elsewhere: bool) -> Result<Self, Failure> {
        let shared = lab.shares_its_store() && !elsewhere;
        let mut stores = Vec::new();
        for number in 0..nodes {
            stores.push(if shared && number == 0 { lab.store() } else { lab.another_store().await? });
        }
        Ok(Self { stores, outboxes: Vec::new(), shared })
    }

    /// A node on a store without a database.
    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        Self { stores: vec![store], outboxes: Vec::new(), shared: false }
    }

    /// Starts all of them.
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

    /// Waits until that many events were recorded as DONE, asking the process rather than the database, so that waiting
    /// does not disturb the measurement.
    pub(crate) async fn wait_until_done(&self, events: u64) -> Result<(), Failure> {
        wait_until(|| self.done(), events).await
    }

    /// Waits until that many events of `calls` have been called, while others are delivered as well.
    pub(crate) async fn wait_until_called(&self, calls: &Calls, events: u64) -> Result<(), Failure> {
        // Adding up the calls takes time, and cannot succeed before as many events of any kind are done.
        self.wait_until_done(events).await?;
        wait_until(|| calls.called(), events).await
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

async fn wait_until(reached: impl Fn() -> u64, events: u64) -> Result<(), Failure> {
    const LOOK_AGAIN: Duration = Duration::from_millis(2);
    const NO_PROGRESS: Duration = Duration::from_secs(60);
    let (mut done, mut moved) = (reached(), Instant::now());
    while done < events {
        sleep(LOOK_AGAIN).await;
        let now = reached();
        if now > done {
            (done, moved) = (now, Instant::now());
        } else if moved.elapsed() > NO_PROGRESS {
            return Err(Common::Stalled { done, events, seconds: NO_PROGRESS.as_secs() }.into());
        }
    }
    Ok(())
}

async fn start(store: Arc<dyn Store>, calls: &Arc<Calls>, settings: &NodeSettings) -> Result<Outbox, StartError> {
    let calls = Arc::clone(calls);
    let handler = match settings.work.clone() {
        Work::Nothing => on_type(Events::Others, move |delivery: Delivery| ready(calls.note(&delivery))),
        Work::Row(lab) => on_type(Events::Others, move |delivery: Delivery| {
            let (lab, calls) = (Arc::clone(&lab), Arc::clone(&calls));
            async move {
                lab.transact(true, Vec::new()).await.map_err(HandlerError::retryable)?;
                calls.note(&delivery)
            }
        }),
        Work::RowInTransaction(lab) => lab.handler_in_transaction(calls),
        Work::Message(broker) => on_batch(Events::Others, broker.batch, broker.forwarder(&calls)?).for_any_name(),
    };
    Outbox::builder(settings.mode).store(store).config(settings.config.clone()).handler(handler).start().await
}
