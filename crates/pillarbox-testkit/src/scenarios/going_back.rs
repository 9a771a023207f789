//! The database goes back to an earlier state under a running node, and gives numbers again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::Outbox;
use tokio::sync::Semaphore;

use super::setting::settled;
use crate::events::keyed;
use crate::run::Outcome;
use crate::{Harness, Recorder};

/// So that the next renewal is near.
const LEASE: Duration = Duration::from_secs(6);
const KEYS: usize = 3;

pub(super) async fn rows_lost_and_numbered_again_are_delivered_on_a_single_node<H: Harness>(db: &H) -> Outcome {
    let recorder = Lost::recorder();
    let outbox = Outbox::single_node(db.store()).lease(LEASE).poll_interval(POLL, POLL).handle_all(recorder.handler());
    going_back(db, recorder, outbox.start().await?, false).await
}

pub(super) async fn rows_lost_and_numbered_again_are_delivered_on_many_nodes<H: Harness>(db: &H) -> Outcome {
    let recorder = Lost::recorder();
    let outbox = Outbox::multi_node(db.store()).lease(LEASE).poll_interval(POLL, POLL).handle_all(recorder.handler());
    going_back(db, recorder, outbox.start().await?, false).await
}

pub(super) async fn rows_lost_and_numbered_again_are_delivered_in_the_order_of_keys<H: Harness>(db: &H) -> Outcome {
    let recorder = Lost::recorder();
    let outbox = Outbox::partitioned(db.store()).lease(LEASE).poll_interval(POLL, POLL).handle_all(recorder.handler());
    going_back(db, recorder, outbox.start().await?, true).await
}

pub(super) async fn rows_lost_and_numbered_again_are_delivered_in_order<H: Harness>(db: &H) -> Outcome {
    let recorder = Lost::recorder();
    let outbox = Outbox::ordered(db.store()).lease(LEASE).poll_interval(POLL, POLL).handle_all(recorder.handler());
    going_back(db, recorder, outbox.start().await?, true).await
}

const POLL: Duration = Duration::from_millis(20);

/// A handler that lets pass as many events as it is told to.
struct Lost {
    recorder: Recorder,
    gate: Arc<Semaphore>,
}

impl Lost {
    fn recorder() -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let passes = Arc::clone(&gate);
        let recorder = Recorder::around(move |_: Delivery| {
            let gate = Arc::clone(&passes);
            async move { gate.acquire_owned().await.map(tokio::sync::OwnedSemaphorePermit::forget) }
        });
        Self { recorder, gate }
    }

    fn handler(&self) -> Recorder {
        self.recorder.clone()
    }
}

fn of_keys(count: usize) -> Result<Vec<Envelope>, BoxError> {
    (0..count).map(|index| Ok(keyed(&format!("key-{}", index % KEYS))?)).collect()
}

/// Events are delivered, others run or wait in memory; all are lost, and new ones get their numbers. Each of these is delivered,
/// and none is DONE without a call; where keys keep their order, in that order.
async fn going_back<H: Harness>(db: &H, lost: Lost, outbox: Outbox, in_order: bool) -> Outcome {
    let Lost { recorder, gate } = lost;
    let delivered = of_keys(60)?;
    db.write(delivered.clone()).await?;
    gate.add_permits(delivered.len());
    settled(&*db.store()).await?;
    db.write(of_keys(60)?).await?;
    recorder.wait_for_calls(delivered.len() + 1).await;

    db.go_back().await?;
    let new = of_keys(150)?;
    let seqs = db.write(new.clone()).await?;
    assert_eq!(seqs.first(), Some(&1), "numbers are given again");
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    settled(&*db.store()).await?;
    outbox.shutdown().await;

    let mut order: HashMap<usize, Vec<usize>> = HashMap::new();
    for call in recorder.calls() {
        if let Some(index) = new.iter().position(|event| *event.id() == call.id) {
            let of_key = order.entry(if in_order { index % KEYS } else { 0 }).or_default();
            // What was under way when the lease was lost is delivered again; only the first time is in its place.
            if !of_key.contains(&index) {
                of_key.push(index);
            }
        }
    }
    assert_eq!(order.values().map(Vec::len).sum::<usize>(), new.len(), "every new event was delivered");
    let sorted = order.values().all(|of_key| of_key.is_sorted());
    assert!(sorted || !in_order, "{order:?}");
    for event in &new {
        assert_eq!(db.columns(event.id().as_str()).await?.map(|row| row.status), Some(1), "{}", event.id());
    }
    Ok(())
}
