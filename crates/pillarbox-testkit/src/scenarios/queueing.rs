use std::time::Duration;

use futures_util::future::try_join_all;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::write::Finish;
use pillarbox_engine::run::{ClaimConfig, Config, DispatchConfig, Outbox, SettleConfig};

use super::setting::{delivered_once, eager, first_delivered, settled, unpolled, write, write_guarded};
use crate::events::{event, events};
use crate::invariants::i7_memory_is_bounded;
use crate::recorder::gated;
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder};

/// Commits keep succeeding while nobody takes events off the hot queue; what does not fit comes from the table.
pub(super) async fn a_full_hot_queue_loses_nothing_and_doubles_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, gate) = gated();
    gate.add_permits(1);
    let outbox = unpolled(db, &recorder).workers(2).hot_capacity(5).start().await?;
    let first = first_delivered(db, &outbox, &recorder).await?;
    let mut events = events(200)?;
    for batch in events.chunks(20) {
        let written = write(db, &outbox, batch).await?;
        outbox.notify_committed(written);
    }
    // What a batch brings beyond the queue's capacity is dropped at once, whatever the cold path has taken by then.
    assert!(outbox.stats().hot_dropped > 0, "{:?}", outbox.stats());
    gate.close();
    events.push(first);
    recorder.wait_for_ends(events.len()).await;
    delivered_once(db, &outbox, &recorder, &events).await
}

/// Thousands of rows wait before the outbox starts; it never holds more of them than it was given room for.
pub(super) async fn a_backlog_far_beyond_memory_is_drained_in_bounded_memory<H: Harness>(db: &Db<H>) -> Outcome {
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

/// Events of some 100 kB, more than half of it headers: eight times the memory.
pub(super) const LARGE: usize = 80;

/// Payloads of many times the memory that is there for them come through, from the table and from memory.
pub(super) async fn large_payloads<H: Harness>(db: &Db<H>, mode: NodeMode, keys: usize) -> Outcome {
    const MEMORY: usize = 1 << 20;
    let large = |event: usize| {
        let payload = format!("\"{}\"", "x".repeat(40_000 + event));
        let builder =
            Envelope::builder("test.large").key(format!("key-{}", event % keys)).header("h", "x".repeat(60_000));
        builder.payload_json(payload).build()
    };
    let mut events = (0..60).map(large).collect::<Result<Vec<_>, _>>()?;
    for batch in events.chunks(20) {
        db.write(batch.to_vec()).await?;
    }
    let (recorder, gate) = gated();
    let dispatch = DispatchConfig { workers: 2, payload_memory: MEMORY, ..DispatchConfig::default() };
    let config = Config { dispatch, ..Config::default() };
    let (store, handler) = (db.store(), recorder.clone());
    let outbox = Outbox::builder(mode).store(store).config(config.clone()).handle_all(handler).start().await?;
    recorder.wait_for_calls(2).await;
    let hot = (60..LARGE).map(large).collect::<Result<Vec<_>, _>>()?;
    let written = write(db, &outbox, &hot).await?;
    outbox.notify_committed(written);
    events.extend(hot);
    let most = MEMORY + 3 * 100_100;
    for ended in 1..=events.len() {
        assert!(outbox.stats().content_bytes <= most, "{:?}", outbox.stats());
        i7_memory_is_bounded(&outbox.stats(), &config)?;
        gate.add_permits(1);
        recorder.wait_for_ends(ended).await;
    }
    settled(&*db.store()).await?;
    assert_eq!(outbox.stats().content_bytes, 0, "nothing is counted that is over");
    delivered_once(db, &outbox, &recorder, &events).await
}

/// Eight writers commit as fast as they can and report it at once, late or never, while the cold path reads all the
/// time. An event that both paths had would be called twice.
pub(super) async fn reporting_and_polling_race_without_a_second_call<H: Harness>(db: &Db<H>) -> Outcome {
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
                1 => outbox.notify_committed(write(db, &outbox, &batch).await?),
                2 => {
                    let written = write(db, &outbox, &batch).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    outbox.notify_committed(written);
                }
                _ => write_guarded(db, &outbox, &batch).await?,
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
