use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::poll_fn;
use pillarbox_core::ownership::{Mode, NodeId};
use pillarbox_core::store::{Fetch, Store as _};
use pillarbox_core::write::{Begin, insert};

use crate::scratch::{Scratch, done, event, owner, pending, write};

/// Polls a future whenever it is woken, up to so many times, and drops it unless it is finished by then.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => {
                if left == 0 {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_dropped_anywhere_changes_all_or_nothing_and_leaves_the_writer_free() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = owner(&store).await;
    let (mut finished, mut dropped) = (0, 0);
    for polls in 1.. {
        let seqs = write(&store, 3).await;
        let verdicts: Vec<_> = seqs.iter().copied().map(done).collect();
        let settled = dropped_after(polls, store.settle(&node, &verdicts)).await;
        // The next writer finds no open transaction, and an effect that is whole.
        store.renew(&node, Duration::from_secs(60)).await.expect("the writer is free");
        let left = pending(&store).await.len();
        assert!(left == 0 || left == 3, "{left} rows of 3 are left after {polls} polls");
        match settled {
            Some(refused) => {
                assert_eq!((refused.expect("settles"), left), (Vec::new(), 0));
                finished += 1;
            }
            None => dropped += 1,
        }
        store.settle(&node, &verdicts).await.expect("settles what is left");
        if finished == 20 {
            break;
        }
    }
    assert!(dropped > 3, "the call was dropped at {dropped} places");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_begin_or_commit_dropped_anywhere_leaves_no_open_transaction() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let mut dropped = (0, 0);
    for polls in 0..30 {
        let begun = dropped_after(polls % 8, Begin::begin(store.writer())).await;
        dropped.0 += usize::from(begun.is_none());
        drop(begun);
        let mut tx = Begin::begin(store.writer()).await.expect("no transaction is open");
        let seq = insert(&store, &mut tx, vec![event("1")]).await.expect("inserts")[0];
        let committed = dropped_after(polls % 8, tx.commit()).await;
        dropped.1 += usize::from(committed.is_none());
        write(&store, 1).await;
        let there = pending(&store).await.iter().any(|row| row.seq == seq);
        assert!(committed.is_none() || there, "what was committed is there");
        sqlx::query("DELETE FROM outbox_event").execute(store.writer()).await.expect("deletes");
    }
    assert!(dropped.0 > 3 && dropped.1 > 3, "{dropped:?} were dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_and_joins_may_be_dropped_anywhere() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    write(&store, 2_000).await;
    let fetch = Fetch { above: 0, exclude: Vec::new(), limit: 2_000 };
    for polls in 0..20 {
        let node = NodeId::from_stored(&format!("node-{polls}"));
        let _ = dropped_after(polls, store.fetch(&fetch)).await;
        let _ = dropped_after(polls, store.join(&node, Mode::SingleNode, Duration::from_secs(60))).await;
        let _ = dropped_after(polls, store.acquire(&node)).await;
        assert_eq!(store.fetch(&fetch).await.expect("a reader is free").rows.len(), 2_000);
        store.leave(&node).await.expect("the writer is free");
    }
}
