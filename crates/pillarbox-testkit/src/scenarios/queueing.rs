use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use pillarbox_core::handle::Delivery;
use pillarbox_core::run::{ClaimConfig, Config, DispatchConfig, Outbox, SettleConfig};
use pillarbox_core::write::Finish;
use tokio::sync::Semaphore;

use super::setting::{delivered_once, eager, first_delivered, unpolled, write};
use crate::events::{event, events};
use crate::invariants::i7_memory_is_bounded;
use crate::run::Outcome;
use crate::{Harness, Recorder};

/// Commits keep succeeding while nobody takes events off the hot queue; what does not fit comes from the table.
pub(super) async fn a_full_hot_queue_loses_nothing_and_doubles_nothing<H: Harness>(db: &H) -> Outcome {
    let gate = Arc::new(Semaphore::new(1));
    let recorder = Recorder::around(through(&gate));
    let outbox = unpolled(db, &recorder).workers(2).hot_capacity(5).start().await?;
    let first = first_delivered(db, &outbox, &recorder).await?;
    gate.forget_permits(1);
    let mut events = events(200)?;
    for batch in events.chunks(20) {
        let written = write(db, &outbox, batch).await?;
        outbox.committed(written);
    }
    // What a batch brings beyond the queue's capacity is dropped at once, whatever the cold path has taken by then.
    assert!(outbox.stats().hot_dropped > 0, "{:?}", outbox.stats());
    gate.close();
    events.push(first);
    recorder.wait_for_ends(events.len()).await;
    delivered_once(db, &outbox, &recorder, &events).await
}

/// Thousands of rows wait before the outbox starts; it never holds more of them than it was given room for.
pub(super) async fn a_backlog_far_beyond_memory_is_drained_in_bounded_memory<H: Harness>(db: &H) -> Outcome {
    let events = events(3000)?;
    for batch in events.chunks(1000) {
        db.write(batch.to_vec()).await?;
    }
    let config = Config {
        claim: ClaimConfig { batch: 50, ..ClaimConfig::default() },
        dispatch: DispatchConfig { workers: 3, hot_capacity: 10, cold_capacity: 100, ..DispatchConfig::default() },
        settle: SettleConfig { batch: 20, ..SettleConfig::default() },
        ..Config::default()
    };
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(db.store()).config(config.clone()).handle_all(recorder.clone()).start().await?;
    for count in (0..=events.len()).step_by(25) {
        recorder.wait_for_calls(count).await;
        i7_memory_is_bounded(&outbox.stats(), &config)?;
    }
    delivered_once(db, &outbox, &recorder, &events).await
}

/// Eight writers commit as fast as they can and report it at once, late or never, while the cold path reads all the
/// time. An event that both paths had would be called twice.
pub(super) async fn reporting_and_polling_race_without_a_second_call<H: Harness>(db: &H) -> Outcome {
    const WRITERS: usize = 8;
    const ROUNDS: usize = 120;
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.hot_capacity(50).start().await?;
    let writer = async |writer: usize| -> Result<Vec<_>, pillarbox_core::error::BoxError> {
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            let batch = events(1 + (writer + round) % 7)?;
            match round % 4 {
                0 => drop(write(db, &outbox, &batch).await?),
                1 => outbox.committed(write(db, &outbox, &batch).await?),
                2 => {
                    let written = write(db, &outbox, &batch).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    outbox.committed(written);
                }
                _ => {
                    let mut guarded = outbox.begin(db.source()).await?;
                    outbox.write_all(&mut guarded, batch.clone()).await?;
                    guarded.commit().await?;
                }
            }
            if round % 10 == 0 {
                let mut rolled_back = db.begin().await?;
                outbox.write(&mut rolled_back, event()?).await?;
                rolled_back.rollback().await?;
            }
            all.extend(batch);
        }
        Ok(all)
    };
    let events = try_join_all((0..WRITERS).map(writer)).await?.concat();
    assert!(events.len() > 3000);
    recorder.wait_for_ends(events.len()).await;
    let stats = outbox.stats();
    assert!(stats.hot > 0 && stats.cold > 0, "both paths took part: {stats:?}");
    delivered_once(db, &outbox, &recorder, &events).await
}

/// A handler that waits until the gate is closed for good.
fn through(gate: &Arc<Semaphore>) -> impl Fn(Delivery) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + use<> {
    let gate = Arc::clone(gate);
    move |_| {
        let gate = Arc::clone(&gate);
        Box::pin(async move { drop(gate.acquire().await) })
    }
}
