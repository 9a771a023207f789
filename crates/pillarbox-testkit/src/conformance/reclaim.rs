use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::{CRASHED, DIED, Fence, NodeId, Reclaimed, begun_by};
use pillarbox_core::row::Change;
use pillarbox_core::store::Store;
use tokio::time::sleep;

use crate::Harness;
use crate::events::{HOUR, all, claimed, delayed, events, first_attempt, holders, settle_held};
use crate::nodes::{peer, stranger};
use crate::run::{Db, Outcome};

/// As soon as a node's lease has ended, the next node that asks frees its rows, with and without a due time, and marks
/// them by what is known of their last attempt. The dead node is out of the register, and nothing is freed twice.
pub(super) async fn reclaim_frees_the_rows_of_a_dead_node_at_once<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [dead, heir] = [peer(&*store).await?, peer(&*store).await?];
    let rows = hold_three(db, &*store, &dead).await?;
    db.expire(&dead).await?;
    let reclaimed = store.reclaim(&heir, false).await?;
    assert_eq!((reclaimed.registered, reclaimed.freed), (true, 3));
    assert_eq!(holders(db, &rows).await?, [Some(DIED), Some(CRASHED), Some(DIED)].map(owned));
    let members: Vec<_> = store.nodes().await?.into_iter().map(|status| status.node).collect();
    assert_eq!(members, std::slice::from_ref(&heir), "the dead node was evicted");

    for thorough in [false, true] {
        assert_eq!(store.reclaim(&heir, thorough).await?.freed, 0, "they are free already");
    }
    let taken = claimed(&*store, &heir, &all()).await?;
    assert_eq!(taken.len(), 3, "all of them are there to be claimed");
    assert!(settle_held(&*store, &dead, &taken, &Change::Done).await.is_err());
    settle_held(&*store, &heir, &taken, &Change::Done).await?;
    Ok(())
}

/// Nothing is taken from a node whose lease runs, even while another one's rows are freed, and however thorough.
pub(super) async fn reclaim_leaves_the_rows_of_living_nodes_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [living, dead, asking] = [peer(&*store).await?, peer(&*store).await?, peer(&*store).await?];
    let kept = hold_three(db, &*store, &living).await?;
    let freed = hold_three(db, &*store, &dead).await?;
    let own = hold_three(db, &*store, &asking).await?;
    let before = [holders(db, &kept).await?, holders(db, &own).await?];
    assert_eq!(store.reclaim(&asking, true).await?.freed, 0, "all three are alive");
    db.expire(&dead).await?;
    for (thorough, count) in [(false, 3), (true, 0)] {
        assert_eq!(store.reclaim(&asking, thorough).await?.freed, count, "thorough: {thorough}");
        assert_eq!([holders(db, &kept).await?, holders(db, &own).await?], before);
    }
    assert_eq!(holders(db, &freed).await?, [Some(DIED), Some(CRASHED), Some(DIED)].map(owned));
    assert_eq!(before[0][1], Some(begun_by(&living)), "an attempt that runs is not taken for a crashed one");
    Ok(())
}

/// A row that a dead node held is released late, and claimed by a living node, while it is being looked at: it stays that
/// node's.
pub(super) async fn reclaim_leaves_a_row_that_was_claimed_meanwhile<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [dead, living, asking] = [peer(&*store).await?, peer(&*store).await?, peer(&*store).await?];
    let rows = hold_three(db, &*store, &dead).await?;
    db.forget(&dead).await?;
    let claim = format!("UPDATE {} SET locked_by = '{living}' WHERE event_id = '{}'", db.table("event"), rows[0].id());
    let held = db.hold(&claim).await?;
    let reclaim = async { Ok::<_, BoxError>(store.reclaim(&asking, true).await?) };
    let release = async {
        while db.waiting().await? == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        held.release().await
    };
    let (reclaimed, released) = tokio::join!(reclaim, release);
    released?;
    assert_eq!(reclaimed?.freed, 2, "the others");
    assert_eq!(holders(db, &rows).await?, [Some(living.as_str()), Some(CRASHED), Some(DIED)].map(owned));
    Ok(())
}

/// Rows that name a node which nobody knows, such as those it committed after it was evicted, are found by the
/// thorough look, and only by that, since it reads every pending row.
pub(super) async fn reclaim_finds_rows_of_nodes_long_gone_when_thorough<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [gone, heir] = [peer(&*store).await?, peer(&*store).await?];
    let rows = hold_three(db, &*store, &gone).await?;
    db.forget(&gone).await?;
    assert_eq!(store.reclaim(&heir, false).await?.freed, 0, "no node was evicted");
    assert_eq!(store.reclaim(&heir, true).await?.freed, 3);
    assert_eq!(holders(db, &rows).await?, [Some(DIED), Some(CRASHED), Some(DIED)].map(owned));
    assert_eq!(claimed(&*store, &heir, &all()).await?.len(), 3);
    Ok(())
}

/// The answer says whether the asking node is registered, and how long it is until the next lease of the others ends.
pub(super) async fn reclaim_says_whether_the_node_is_registered_and_when_to_look_again<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    let expected = Reclaimed { registered: false, freed: 0, next_expiry: None };
    assert_eq!(store.reclaim(&stranger()?, false).await?, expected, "nobody is there");
    let node = peer(&*store).await?;
    let alone = store.reclaim(&node, true).await?;
    assert_eq!(alone, Reclaimed { registered: true, ..expected }, "its own lease is not one to wait for");

    let [sooner, later] = [peer(&*store).await?, peer(&*store).await?];
    store.renew(&sooner, HOUR * 3, None, None).await?;
    store.renew(&later, HOUR * 9, None, None).await?;
    let next = store.reclaim(&node, false).await?.next_expiry;
    assert!(next.is_some_and(|wait| wait > HOUR * 2 && wait <= HOUR * 3), "{next:?}");
    store.leave(&sooner).await?;
    let next = store.reclaim(&node, false).await?.next_expiry;
    assert!(next.is_some_and(|wait| wait > HOUR * 8 && wait <= HOUR * 9), "{next:?}");

    let rows = hold_three(db, &*store, &node).await?;
    db.expire(&node).await?;
    let lost = store.reclaim(&node, false).await?;
    assert_eq!((lost.registered, lost.freed), (false, 3), "a lease that has ended is not spared for asking");
    assert_eq!(holders(db, &rows).await?, [Some(DIED), Some(CRASHED), Some(DIED)].map(owned));
    Ok(())
}

/// Lets `node` claim three rows: a plain one, one with an attempt begun, and one with a due time. All other rows that are
/// due must be held.
async fn hold_three<H: Harness>(db: &Db<H>, store: &dyn Store, node: &NodeId) -> Result<Vec<Envelope>, BoxError> {
    let mut rows = events(2)?;
    let mut seqs = db.write(rows.clone()).await?;
    rows.push(delayed()?);
    seqs.extend(db.write(rows[2..].to_vec()).await?);
    db.make_due(rows[2].id().as_str()).await?;
    assert_eq!(claimed(store, node, &all()).await?, seqs);
    assert!(store.begin_attempt(node, Fence::Row, &first_attempt(store, seqs[1]).await?).await?);
    Ok(rows)
}

fn owned(mark: Option<&str>) -> Option<String> {
    mark.map(str::to_owned)
}
