use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Fence, NodeId, Partitions};
use pillarbox_core::row::Change;
use pillarbox_core::store::Store;
use tokio::time::sleep;

use crate::Harness;
use crate::events::{
    Draft, HOUR, columns, each_kind, first_attempt, keyed_each, row_at, rows, seq_of, settle, verdict,
};
use crate::nodes::{TICK, rebalance, rebalancer, stranger};
use crate::run::{Db, Outcome};

/// If nodes share the partitions, only the owner of a row's partition settles or begins it: not the owner of others, not a node
/// that gave it away, left or was evicted, and no node while the row has no partition.
pub(super) async fn settle_refuses_a_row_of_a_partition_that_is_not_owned<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    // Partitions 33, 22 and 123 are in the first half, 159, 189 and 159 in the second.
    let written = keyed_each(&["order-1", "order-2", "user-456", "order-123", "payment:0", "order-2"])?;
    let seqs = db.write(written.clone()).await?;
    db.insert_three_columns("unstamped", "test.event", "{}").await?;
    let unstamped = seq_of(db, "unstamped").await?;
    let every: Vec<i64> = seqs.iter().copied().chain([unstamped]).collect();
    let (firsts, seconds) = ([seqs[0], seqs[2], seqs[4]], [seqs[1], seqs[3], seqs[5]]);
    let before = rows(db, &written).await?;

    let first = rebalancer(&*store).await?;
    sleep(TICK).await;
    let second = rebalancer(&*store).await?;
    for node in [&first, &second, &stranger()?] {
        refuses(&*store, node, &every, "it owns nothing yet").await?;
    }
    rebalance(&*store, &first, Partitions::NONE).await?;
    rebalance(&*store, &second, Partitions::NONE).await?;
    refuses(&*store, &first, &seconds, "the other half").await?;
    refuses(&*store, &second, &firsts, "the other half").await?;
    for node in [&first, &second] {
        refuses(&*store, node, &[unstamped], "it has no partition").await?;
    }
    assert_eq!(rows(db, &written).await?, before, "no refused verdict changes a row");

    // Beside each other in one call: what is the node's own is recorded, the rest comes back.
    let both = [verdict(seqs[0], 0, Change::Done), verdict(seqs[1], 0, Change::Done)];
    assert_eq!(settle(&*store, &first, Fence::Partition, &both).await?, [seqs[1]]);
    let later = Change::Retry { attempts: 1, delay: HOUR, error: None };
    let both = [verdict(seqs[2], 0, later.clone()), verdict(seqs[3], 0, later), verdict(unstamped, 0, Change::Done)];
    assert_eq!(settle(&*store, &first, Fence::Partition, &both).await?, [seqs[3], unstamped]);
    store.assign_partitions(&[(row_at(&*store, unstamped).await?, 0)]).await?;
    assert!(settle(&*store, &first, Fence::Partition, &[verdict(unstamped, 0, Change::Done)]).await?.is_empty());

    // Away from the one from the moment it is given, and the other's once that has taken it.
    assert!(store.begin_attempt(&first, Fence::Partition, &first_attempt(&*store, seqs[4]).await?).await?);
    let third = rebalancer(&*store).await?;
    let surplus = (86..=127).collect();
    rebalance(&*store, &first, surplus).await?;
    refuses(&*store, &first, &seqs[4..5], "it was given away").await?;
    refuses(&*store, &second, &seqs[4..5], "it was not given to this one").await?;
    assert_eq!(rebalance(&*store, &second, Partitions::NONE).await?.gained, surplus);
    refuses(&*store, &first, &seqs[4..5], "another node has taken it").await?;
    assert!(settle(&*store, &second, Fence::Partition, &[verdict(seqs[4], 0, Change::Done)]).await?.is_empty());
    assert_eq!(columns(db, &written[4]).await?.locked_by, None);

    // Nor of one that left, or died and was evicted, whoever takes it then.
    store.leave(&second).await?;
    refuses(&*store, &second, &seqs[1..2], "it left").await?;
    rebalance(&*store, &third, Partitions::NONE).await?;
    assert!(settle(&*store, &third, Fence::Partition, &[verdict(seqs[1], 0, Change::Done)]).await?.is_empty());
    db.expire(&third).await?;
    rebalance(&*store, &first, Partitions::NONE).await?;
    refuses(&*store, &third, &seqs[3..4], "it was evicted").await?;
    assert!(settle(&*store, &first, Fence::Partition, &[verdict(seqs[3], 0, Change::Remove)]).await?.is_empty());
    assert_eq!(db.columns(written[3].id().as_str()).await?, None);
    let last = columns(db, &written[5]).await?;
    assert_eq!((last.status, last.attempts, last.locked_by), (0, 0, None));
    Ok(())
}

/// Verdicts of every kind on `seqs` come back, alone and together, and no attempt begins.
async fn refuses(store: &dyn Store, node: &NodeId, seqs: &[i64], why: &str) -> Result<(), BoxError> {
    let changes = each_kind();
    for change in &changes {
        let verdicts: Vec<Draft> = seqs.iter().map(|seq| verdict(*seq, 0, change.clone())).collect();
        assert_eq!(settle(store, node, Fence::Partition, &verdicts).await?, seqs, "{change:?}: {why}");
    }
    let mixed: Vec<Draft> =
        seqs.iter().zip(changes.iter().cycle()).map(|(seq, change)| verdict(*seq, 0, change.clone())).collect();
    assert_eq!(settle(store, node, Fence::Partition, &mixed).await?.len(), seqs.len(), "{why}");
    for seq in seqs {
        assert!(!store.begin_attempt(node, Fence::Partition, &first_attempt(store, *seq).await?).await?, "{why}");
    }
    Ok(())
}
