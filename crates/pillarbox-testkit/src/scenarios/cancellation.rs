use std::time::Duration;

use pillarbox_core::error::{BoxError, StoreError};
use pillarbox_core::ownership::{Epochs, Fence, NodeId, NodeMode, Partitions};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::{DeadFilter, FetchedRow, Purge, Purgeable, RowId, Store};
use tokio::time::{sleep, timeout};

use super::setting::{SOON, drained, eager, write_guarded};
use crate::drop_after::drop_after;
use crate::events::{HOUR, all, claimed, event, events, first_attempt, seq_of, settle_held};
use crate::nodes::{self, TICK, owner, peer, rebalance, rebalancer};
use crate::rows::rows_at;
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder, done_at};

/// The number of tries before the test gives up on reaching a future's end, or on dropping it before.
const MOST_TRIES: usize = 2000;
/// It depends on timing how often a future waits, so one that came to its end is not the last one yet.
const ENDS: usize = 5;

/// The tries of a future that is dropped one wait later each time that it was dropped.
#[derive(Default)]
struct Tries {
    ended: usize,
    dropped: usize,
}

impl Tries {
    fn count(&mut self, ended: bool) {
        if ended {
            self.ended += 1;
        } else {
            self.dropped += 1;
        }
    }

    /// True until it has come to its end some times, and was dropped: on a busy machine an answer may be there before anybody waits
    /// for it, and in memory nothing waits.
    fn go_on<H: Harness>(&self) -> Result<bool, BoxError> {
        let Self { ended, dropped } = self;
        if *ended >= ENDS && (*dropped > 0 || !H::CAPABILITIES.sql) {
            return Ok(false);
        }
        if ended + dropped == MOST_TRIES {
            return Err(format!("it came to its end {ended} times, and was dropped {dropped} times").into());
        }
        Ok(true)
    }
}

/// Begin, write and commit, dropped at each of their awaits: every event is in the table with all of its batch and
/// delivered once, or it never existed; and the connections are as good as new.
pub(super) async fn a_write_dropped_at_any_await_is_whole_or_absent<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.start().await?;
    let mut batches = Vec::new();
    let mut tries = Tries::default();
    while tries.go_on::<H>()? {
        let batch = events(3)?;
        let ended = drop_after(tries.dropped, write_guarded(db, &outbox, &batch)).await;
        tries.count(ended.is_some());
        batches.push((batch, ended.is_some()));
        ended.transpose()?;
    }

    let mut committed = Vec::new();
    // A commit that was dropped may still be under way in the database; a whole write behind it ends the wait.
    db.write(vec![event()?]).await?;
    drained(db, &outbox).await?;
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
    db.observed(&committed, last.collect()).await?.check()?;
    Ok(())
}

/// Each call of a node, dropped at each of its awaits: others are not held up by it, and what it changed it changed as a
/// whole.
pub(super) async fn a_store_call_dropped_at_any_await_leaves_no_lock<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let node = owner(&*store).await?;
    let prepare = async || {
        let seqs = db.write(events(4)?).await?;
        let verdicts = done_at(&*store, &seqs).await?;
        Ok::<_, BoxError>((seqs, verdicts, nodes::stranger()?))
    };
    let calls = async |(_, verdicts, stranger): &(Vec<i64>, Vec<Verdict>, NodeId)| {
        store.fetch(&all()).await?;
        store.join(stranger, NodeMode::SingleNode, HOUR).await?;
        store.acquire(stranger).await?;
        store.renew(stranger, HOUR, None, None).await?;
        store.settle(&node, Fence::Table, verdicts).await?;
        store.leave(stranger).await
    };
    let others = async |(seqs, verdicts, stranger): (Vec<i64>, Vec<Verdict>, NodeId)| {
        other.leave(&stranger).await?;
        other.renew(&node, HOUR, None, None).await?;
        let mut refused = other.settle(&node, Fence::Table, &verdicts).await?;
        refused.sort_unstable();
        assert!(refused.is_empty() || refused == seqs, "half of a settle was recorded: {refused:?} of {seqs:?}");
        assert_eq!(store.counts().await?.pending(), 0);
        Ok(())
    };
    dropped_at_each_await::<H, _, _>(prepare, calls, others).await
}

/// Makes a call again and again and drops it each time one await later, until it has come to its end some times. Each time
/// the call is `prepared`, and `others` must get through after it.
async fn dropped_at_each_await<H: Harness, P, T>(
    prepare: impl AsyncFn() -> Result<P, BoxError>,
    call: impl AsyncFn(&P) -> Result<T, StoreError>,
    others: impl AsyncFn(P) -> Outcome,
) -> Outcome {
    let mut tries = Tries::default();
    while tries.go_on::<H>()? {
        let prepared = prepare().await?;
        let ended = drop_after(tries.dropped, call(&prepared)).await;
        tries.count(ended.transpose()?.is_some());
        // A busy server notices late that the connection is gone; a lock that is held for good is held for longer.
        timeout(4 * SOON, others(prepared)).await.map_err(|_| "a dropped call holds a lock")??;
    }
    Ok(())
}

/// The one value that all pending rows have in `locked_by`, read by one statement; an error if they differ.
async fn one_holder(store: &dyn Store, rows: usize) -> Result<Option<String>, BoxError> {
    let fetched = store.fetch(&all()).await?;
    let holder = |row: &FetchedRow| match row {
        FetchedRow::Row(row) => row.locked_by.as_deref().map(str::to_owned),
        FetchedRow::Broken(_) => Some("nobody: the row is broken".to_owned()),
    };
    let mut holders: Vec<_> = fetched.rows.iter().map(holder).collect();
    assert_eq!(holders.len(), rows);
    holders.dedup();
    match &mut holders[..] {
        [holder] => Ok(holder.take()),
        _ => Err(format!("half of the rows were changed: {holders:?}").into()),
    }
}

/// The calls about rows of nodes that claim them: after each of them others change the same rows and evict nodes.
pub(super) async fn a_claim_dropped_at_any_await_leaves_no_lock<H: Harness>(db: &Db<H>) -> Outcome {
    const ROWS: usize = 4;
    let (store, other) = (db.store(), db.connect().await?);
    let node = peer(&*store).await?;
    let seqs = db.write(events(ROWS)?).await?;
    let rows: Vec<RowId> = rows_at(&*store, &seqs).await?;
    // A claim passes over rows that a dropped call is still changing.
    let hold = async |node: &NodeId| {
        while claimed(&*other, node, &all()).await?.len() < ROWS {
            sleep(TICK).await;
        }
        Ok::<_, BoxError>(())
    };
    let claim = async || hold(&node).await;
    // It takes the locks that each of these calls takes, and leaves rows that nobody holds.
    let free = async |()| {
        other.release(&node, &rows).await?;
        other.reclaim(&node, true).await?;
        Ok::<_, BoxError>(())
    };
    let free_all = async |()| {
        one_holder(&*other, ROWS).await?;
        free(()).await
    };
    let nothing = async || Ok::<_, BoxError>(());

    dropped_at_each_await::<H, _, _>(nothing, async |()| store.claim(&node, &all()).await, &free_all).await?;
    dropped_at_each_await::<H, _, _>(claim, async |()| store.release(&node, &rows).await, &free_all).await?;
    let attempt = first_attempt(&*store, seqs[0]).await?;
    let begin = async |(): &()| store.begin_attempt(&node, Fence::Row, &attempt).await;
    dropped_at_each_await::<H, _, _>(claim, begin, &free).await?;
    let died = async || {
        let ghost = peer(&*other).await?;
        hold(&ghost).await?;
        db.expire(&ghost).await?;
        Ok::<_, BoxError>(ghost)
    };
    let others = async |ghost: NodeId| {
        let holder = one_holder(&*other, ROWS).await?.unwrap_or_default();
        assert!(holder == "?" || holder == ghost.as_str(), "held by `{holder}`");
        free(()).await?;
        assert_eq!(one_holder(&*other, ROWS).await?.as_deref(), Some("?"), "all of them are free");
        Ok(())
    };
    dropped_at_each_await::<H, _, _>(died, async |_ghost: &NodeId| store.reclaim(&node, true).await, others).await
}

/// Calls of operators, and the call that writes partitions into rows of other programs: each changes all of its rows or none, and
/// others can do the same to them after it.
pub(super) async fn an_operators_call_dropped_at_any_await_leaves_no_lock<H: Harness>(db: &Db<H>) -> Outcome {
    const ROWS: usize = 3;
    let (store, other) = (db.store(), db.connect().await?);
    let node = peer(&*store).await?;
    let dead = async || {
        let seqs = db.write(events(ROWS)?).await?;
        claimed(&*store, &node, &all()).await?;
        let dead = Change::Dead { attempts: 1, error: "a test".into() };
        settle_held(&*store, &node, &seqs, &dead).await?;
        Ok::<_, BoxError>(seqs)
    };
    let whole = |changed: usize| {
        assert!(changed == 0 || changed == ROWS, "half of it was done: {changed} of {ROWS} rows");
    };

    let replay = async |seqs: Vec<i64>| {
        whole(other.replay(&seqs).await?.len());
        // A claim leaves out what the server has locked still for the call that was dropped; how long, a busy machine decides.
        for _ in 0..300 {
            claimed(&*other, &node, &all()).await?;
            if settle_held(&*other, &node, &seqs, &Change::Remove).await.is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err("the rows are locked for good, or were not replayed".into())
    };
    dropped_at_each_await::<H, _, _>(dead, async |seqs| store.replay(seqs).await, replay).await?;
    let discard = async |seqs: Vec<i64>| {
        whole(other.discard(&seqs).await?.len());
        Ok(())
    };
    dropped_at_each_await::<H, _, _>(dead, async |seqs| store.discard(seqs).await, discard).await?;
    let old = Purge::new(Purgeable::Dead, Duration::ZERO, 10_000);
    let purge = async |_seqs| {
        whole(usize::try_from(other.purge(&old).await?.removed)?);
        // A purge passes over rows that the dropped one is still deleting.
        while other.count_dead(&DeadFilter::default()).await? > 0 {
            sleep(TICK).await;
            other.purge(&old).await?;
        }
        Ok(())
    };
    dropped_at_each_await::<H, _, _>(dead, async |_| store.purge(&old).await, purge).await?;

    let ids = ["first", "second"];
    let mut assigned = Vec::new();
    for (id, partition) in ids.into_iter().zip([7, 9]) {
        db.insert_three_columns(id, "test.event", "{}").await?;
        assigned.push((rows_at(&*store, &[seq_of(db, id).await?]).await?.remove(0), partition));
    }
    let unstamp = async || {
        for id in ids {
            db.set_partition(id, 256).await?;
        }
        Ok::<_, BoxError>(())
    };
    let assign = async |()| {
        other.assign_partitions(&assigned).await?;
        let mut partitions = Vec::new();
        for id in ids {
            partitions.push(db.columns(id).await?.and_then(|row| row.partition));
        }
        assert_eq!(partitions, [Some(7), Some(9)]);
        Ok(())
    };
    dropped_at_each_await::<H, _, _>(unstamp, async |()| store.assign_partitions(&assigned).await, assign).await
}

/// A node that gives half of its partitions away has given them or has not, and another can take them.
pub(super) async fn a_rebalance_dropped_at_any_await_leaves_no_lock<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let node = rebalancer(&*store).await?;
    let half: Partitions = (128..=255).collect();
    let prepare = async || {
        let held = rebalance(&*other, &node, Partitions::NONE).await?;
        assert_eq!(held.owned, Partitions::ALL, "it is alone");
        sleep(TICK).await;
        Ok::<_, BoxError>((rebalancer(&*other).await?, held.epochs.of(half)))
    };
    let take = async |(second, _): (NodeId, Epochs)| {
        let taken = rebalance(&*other, &second, Partitions::NONE).await?.owned;
        assert!(taken == half || taken == Partitions::NONE, "half of them were given: {taken:?}");
        Ok(other.leave(&second).await?)
    };
    dropped_at_each_await::<H, _, _>(prepare, async |(_, give)| store.rebalance(&node, give).await, take).await
}
