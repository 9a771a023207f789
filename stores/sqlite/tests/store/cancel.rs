use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::poll_fn;
use pillarbox_core::ownership::{Epochs, Fence, NodeId, NodeMode, Partitions, Rebalanced};
use pillarbox_core::store::{Admin as _, Fetch, Store as _};
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

/// Counts a call that has ended well, or was dropped.
fn count<T, E: std::fmt::Debug>(call: Option<Result<T, E>>, ended: &mut usize, dropped: &mut usize) {
    match call {
        Some(result) => {
            result.map(drop).expect("it ends well");
            *ended += 1;
        }
        None => *dropped += 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_dropped_anywhere_changes_all_or_nothing_and_leaves_the_writer_free() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = owner(&store).await;
    let (mut finished, mut dropped) = (0, 0);
    for polls in 1.. {
        let seqs = write(&store, 3).await;
        let verdicts: Vec<_> = done(&store, &seqs).await;
        let settled = dropped_after(polls, store.settle(&node, Fence::Table, &verdicts)).await;
        // The next writer finds no open transaction, and an effect that is whole.
        store.renew(&node, Duration::from_secs(60), None, None).await.expect("the writer is free");
        let left = pending(&store).await.len();
        assert!(left == 0 || left == 3, "{left} rows of 3 are left after {polls} polls");
        match settled {
            Some(refused) => {
                assert_eq!((refused.expect("settles"), left), (Vec::new(), 0));
                finished += 1;
            }
            None => dropped += 1,
        }
        store.settle(&node, Fence::Table, &verdicts).await.expect("settles what is left");
        if finished == 20 {
            break;
        }
    }
    // Each statement is a place, unless its answer is there by the time of the next poll.
    assert!(dropped > 1, "the call was dropped at {dropped} places");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_begin_or_commit_dropped_anywhere_leaves_no_open_transaction() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let (mut dropped, mut ended) = ((0, 0), (0, 0));
    // On a busy machine an answer is often there by the next poll, and nothing is dropped: then it takes more rounds.
    for (round, polls) in (1..=7).cycle().take(1000).enumerate() {
        if round >= 30 && [dropped.0, dropped.1, ended.0, ended.1].iter().all(|times| *times > 3) {
            break;
        }
        let begun = dropped_after(polls, Begin::begin(store.writer())).await;
        count(begun, &mut ended.0, &mut dropped.0);
        let mut tx = Begin::begin(store.writer()).await.expect("no transaction is open");
        let seq = insert(&store, &mut tx, vec![event("1")]).await.expect("inserts")[0];
        let committed = dropped_after(polls, tx.commit()).await;
        write(&store, 1).await;
        let there = pending(&store).await.iter().any(|row| row.seq == seq);
        assert!(committed.is_none() || there, "what was committed is there");
        count(committed, &mut ended.1, &mut dropped.1);
        sqlx::query("DELETE FROM outbox_event").execute(store.writer()).await.expect("deletes");
    }
    assert!(dropped.0 > 3 && dropped.1 > 3, "{dropped:?} were dropped");
    assert!(ended.0 > 3 && ended.1 > 3, "{ended:?} ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_dropped_anywhere_takes_all_or_nothing_and_can_be_claimed_again() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = NodeId::from_stored("peer-1");
    store.join(&node, NodeMode::MultiNode, Duration::from_secs(60)).await.expect("joins");
    let fetch = Fetch::new(10);
    let (mut finished, mut dropped, mut lost) = (0, 0, 0);
    for polls in 1.. {
        let seqs = write(&store, 3).await;
        let claimed = dropped_after(polls, store.claim(&node, &fetch)).await;
        store.renew(&node, Duration::from_secs(60), None, None).await.expect("the writer is free");
        let held = pending(&store).await.iter().filter(|row| row.locked_by.as_deref() == Some("peer-1")).count();
        assert!(held == 0 || held == 3, "{held} rows of 3 are held after {polls} polls");
        match claimed {
            Some(claimed) => {
                assert_eq!((claimed.expect("claims").rows.len(), held), (3, 3));
                finished += 1;
            }
            None => (dropped, lost) = (dropped + 1, lost + usize::from(held == 3)),
        }
        // Whether or not the answer was lost, the node gets the rows when it asks again.
        assert_eq!(store.claim(&node, &fetch).await.expect("claims").rows.len(), 3);
        let verdicts: Vec<_> = done(&store, &seqs).await;
        assert_eq!(store.settle(&node, Fence::Row, &verdicts).await.expect("settles"), Vec::<i64>::new());
        if finished == 20 {
            break;
        }
    }
    assert!(dropped > 3, "the call was dropped at {dropped} places, {lost} times after its effect");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reclaim_dropped_anywhere_frees_all_or_nothing() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = NodeId::from_stored("peer-1");
    store.join(&node, NodeMode::MultiNode, Duration::from_secs(60)).await.expect("joins");
    let fetch = Fetch::new(10);
    write(&store, 3).await;
    let (mut finished, mut dropped) = (0, 0);
    for polls in 1.. {
        let dead = NodeId::from_stored(&format!("dead-{polls}"));
        store.join(&dead, NodeMode::MultiNode, Duration::ZERO).await.expect("joins");
        assert_eq!(store.claim(&dead, &fetch).await.expect("claims").rows.len(), 3);
        let reclaimed = dropped_after(polls, store.reclaim(&node, false)).await;
        store.renew(&node, Duration::from_secs(60), None, None).await.expect("the writer is free");
        let freed = pending(&store).await.iter().filter(|row| row.locked_by.as_deref() == Some("?")).count();
        let cleared = store.nodes().await.expect("lists").len() == 1;
        assert!(freed == if cleared { 3 } else { 0 }, "{freed} rows are free after {polls} polls, {cleared}");
        match reclaimed {
            Some(reclaimed) => {
                assert_eq!((reclaimed.expect("reclaims").freed, freed), (3, 3));
                finished += 1;
            }
            None => dropped += 1,
        }
        store.reclaim(&node, false).await.expect("frees what is left");
        if finished == 20 {
            break;
        }
    }
    assert!(dropped > 3, "the call was dropped at {dropped} places");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebalance_dropped_anywhere_gives_and_takes_all_or_nothing() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = NodeId::from_stored("peer-1");
    store.join(&node, NodeMode::Partitioned, Duration::from_secs(60)).await.expect("joins");
    let (mut finished, mut dropped) = (0, 0);
    for polls in 1.. {
        let dead = NodeId::from_stored(&format!("dead-{polls}"));
        let free = "UPDATE outbox_partition SET node_id = NULL";
        sqlx::query(free).execute(store.writer()).await.expect("frees");
        store.join(&dead, NodeMode::Partitioned, Duration::ZERO).await.expect("joins");
        let rebalanced = dropped_after(polls, store.rebalance(&node, &Epochs::none())).await;
        store.renew(&node, Duration::from_secs(60), None, None).await.expect("the writer is free");
        let nodes = store.nodes().await.expect("lists");
        let owned = nodes.iter().find(|status| status.node == node).expect("is registered").partitions;
        // The node that died is evicted and its half is taken, or neither.
        assert_eq!(owned, if nodes.len() == 1 { 256 } else { 0 }, "after {polls} polls");
        match rebalanced {
            Some(rebalanced) => {
                assert!(
                    matches!(rebalanced.expect("rebalances"), Rebalanced::Member(holding) if holding.owned == Partitions::ALL)
                );
                finished += 1;
            }
            None => dropped += 1,
        }
        store.rebalance(&node, &Epochs::none()).await.expect("evicts what is left");
        if finished == 20 {
            break;
        }
    }
    assert!(dropped > 3, "the call was dropped at {dropped} places");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_and_joins_may_be_dropped_anywhere() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    write(&store, 2_000).await;
    let fetch = Fetch::new(2_000);
    let (mut ended, mut dropped) = ([0; 3], [0; 3]);
    for polls in 1..=20 {
        let node = NodeId::from_stored(&format!("node-{polls}"));
        count(dropped_after(polls, store.fetch(&fetch)).await, &mut ended[0], &mut dropped[0]);
        let joining = store.join(&node, NodeMode::SingleNode, Duration::from_secs(60));
        count(dropped_after(polls, joining).await, &mut ended[1], &mut dropped[1]);
        count(dropped_after(polls, store.acquire(&node)).await, &mut ended[2], &mut dropped[2]);
        assert_eq!(store.fetch(&fetch).await.expect("a reader is free").rows.len(), 2_000);
        store.leave(&node).await.expect("the writer is free");
    }
    assert!(ended.iter().chain(&dropped).all(|calls| *calls > 0), "{ended:?} ended, {dropped:?} were dropped");
}
