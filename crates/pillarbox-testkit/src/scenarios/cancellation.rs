use pillarbox_core::ownership::Fence;
use pillarbox_core::settle::{Change, Verdict};
use tokio::time::timeout;

use super::setting::{SOON, eager, settled};
use crate::drop_after::drop_after;
use crate::events::{all, event, events, refused};
use crate::invariants::Observed;
use crate::nodes::{self, owner};
use crate::run::Outcome;
use crate::{Harness, Recorder};

/// How often a future may wait before the test gives up on reaching its end.
const MOST_WAITS: usize = 200;

/// Begin, write and commit, dropped at each of their awaits: every event is in the table with all of its batch and
/// delivered once, or it never existed; and the connections are as good as new.
pub(super) async fn a_write_dropped_at_any_await_is_whole_or_absent<H: Harness>(db: &H) -> Outcome {
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.start().await?;
    let mut batches = Vec::new();
    let mut finished = 0;
    for waits in 0..MOST_WAITS {
        let batch = events(3)?;
        let write = async {
            let mut guarded = outbox.begin(db.source()).await?;
            outbox.write_all(&mut guarded, batch.clone()).await?;
            guarded.commit().await?;
            Ok::<_, pillarbox_core::error::BoxError>(())
        };
        let ended = drop_after(waits, write).await;
        batches.push((batch, ended.is_some()));
        ended.transpose()?;
        finished += usize::from(batches.last().is_some_and(|(_, ended)| *ended));
        // It depends on timing how often a future waits, so one that came to its end is not the last one yet.
        if finished == 5 {
            break;
        }
    }
    assert_eq!(finished, 5, "no write came to its end");

    let mut committed = Vec::new();
    // A commit that was dropped may still be under way in the database; a whole write behind it ends the wait.
    db.write(vec![event()?]).await?;
    settled(&*db.store()).await?;
    outbox.shutdown().await;
    for (batch, ended) in batches {
        let mut present = 0;
        for event in &batch {
            present += usize::from(db.columns(event.id().as_str()).await?.is_some());
        }
        assert!(present == 0 || present == batch.len(), "{present} of a batch of {}", batch.len());
        assert!(!ended || present == batch.len(), "a write that ended well is there");
        if present > 0 {
            committed.extend(batch);
        }
    }
    for event in &committed {
        assert_eq!(recorder.calls_of(event.id()).len(), 1, "calls for event {}", event.id());
    }
    assert_eq!(recorder.calls().len(), committed.len() + 1);
    let last = recorder.calls().into_iter().filter(|call| committed.iter().any(|event| *event.id() == call.id));
    Observed::read(db, &committed, last.collect()).await?.check()?;
    Ok(())
}

/// Each call of a node, dropped at each of its awaits: others are not held up by it, and what it changed it changed as a
/// whole.
pub(super) async fn a_store_call_dropped_at_any_await_leaves_no_lock<H: Harness>(db: &H) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let node = owner(&*store).await?;
    let mut finished = 0;
    for waits in 0..MOST_WAITS {
        let written = events(4)?;
        let seqs = db.write(written.clone()).await?;
        let verdict = |seq: &i64| Verdict { seq: *seq, expected_attempts: 0, change: Change::Done };
        let verdicts: Vec<_> = seqs.iter().map(verdict).collect();
        let stranger = nodes::stranger()?;
        let calls = async {
            store.fetch(&all()).await?;
            store.join(&stranger, pillarbox_core::ownership::Mode::SingleNode, crate::events::HOUR).await?;
            store.acquire(&stranger).await?;
            store.renew(&stranger, crate::events::HOUR).await?;
            store.settle(&node, Fence::Table, &verdicts).await?;
            store.leave(&stranger).await?;
            Ok::<_, pillarbox_core::error::StoreError>(())
        };
        let ended = drop_after(waits, calls).await.transpose()?;
        let meanwhile = async {
            other.leave(&stranger).await?;
            other.renew(&node, crate::events::HOUR).await?;
            refused(&*other, &node, &verdicts).await
        };
        let refused = timeout(SOON, meanwhile).await.map_err(|_| "a dropped call holds a lock")??;
        assert!(refused.is_empty() || refused == seqs, "half of a settle was recorded: {refused:?} of {seqs:?}");
        assert_eq!(store.counts().await?.pending(), 0);
        finished += usize::from(ended.is_some());
        if finished == 5 {
            break;
        }
    }
    assert_eq!(finished, 5, "no sequence of calls came to its end");
    other.close().await;
    Ok(())
}
