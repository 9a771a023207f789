use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::Partitions;
use pillarbox_core::row::Change;
use pillarbox_core::store::PartitionBacklog;
use tokio::time::sleep;

use crate::Harness;
use crate::events::{HOUR, keyed, keyed_each, row_at, seq_of, settle_all};
use crate::nodes::{TICK, owner, rebalance, rebalancer};
use crate::run::{Db, Outcome};

/// Pending rows count whatever their due time, and whether or not their partition is known; the fullest partition is one that is
/// known. A partition is unowned until a node has taken it, and from when its owner gives it, leaves or is evicted.
pub(in crate::conformance) async fn partitions_counts_what_is_pending_and_who_owns_what<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    assert_eq!(store.partitions().await?, PartitionBacklog { unowned: 256, pending: 0, most_pending: 0 });
    let node = owner(&*store).await?;
    assert_eq!(store.partitions().await?.unowned, 0);

    // Six of one partition and four of another; two of the latter end, and more have no partition.
    let mut written = keyed_each(&["order-1"; 6])?;
    written.extend(keyed_each(&["order-2"; 6])?);
    let seqs = db.write(written).await?;
    for id in ["1", "2", "3", "4", "5", "6", "7"] {
        db.insert_three_columns(id, "test.event", "{}").await?;
    }
    let retry = |delay| Change::Retry { attempts: 1, delay, error: None };
    settle_all(&*store, &node, &seqs[..2], &retry(HOUR)).await?;
    settle_all(&*store, &node, &seqs[2..3], &retry(Duration::ZERO)).await?;
    settle_all(&*store, &node, &seqs[10..11], &Change::Done).await?;
    settle_all(&*store, &node, &seqs[11..], &Change::Dead { attempts: 1, error: "no".to_owned() }).await?;
    let backlog = store.partitions().await?;
    assert_eq!(backlog, PartitionBacklog { unowned: 0, pending: 17, most_pending: 6 });
    let late = Envelope::builder("test.late").key("order-2").payload_json("{}").deliver_after(HOUR).build()?;
    db.write(vec![keyed("order-1")?, late]).await?;
    settle_all(&*store, &node, &seqs[4..5], &Change::Remove).await?;
    store.assign_partitions(&[(row_at(&*store, seq_of(db, "1").await?).await?, 33)]).await?;
    let backlog = store.partitions().await?;
    assert_eq!((backlog.pending, backlog.most_pending), (18, 7));

    store.leave(&node).await?;
    assert_eq!(store.partitions().await?.unowned, 256);
    let first = rebalancer(&*store).await?;
    sleep(TICK).await;
    let second = rebalancer(&*store).await?;
    rebalance(&*store, &first, Partitions::NONE).await?;
    assert_eq!(store.partitions().await?.unowned, 128);
    rebalance(&*store, &second, Partitions::NONE).await?;
    assert_eq!(store.partitions().await?.unowned, 0);
    store.leave(&first).await?;
    rebalance(&*store, &second, Partitions::NONE).await?;
    let third = rebalancer(&*store).await?;
    rebalance(&*store, &second, (128..=200).collect()).await?;
    assert_eq!(store.partitions().await?.unowned, 73, "given, and not taken yet");
    db.expire(&second).await?;
    store.reclaim(&third, false).await?;
    assert_eq!(store.partitions().await?.unowned, 256, "evicted");
    Ok(())
}

pub(in crate::conformance) async fn partition_owners_names_the_owner_of_each<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert_eq!(store.partition_owners().await?, []);
    let first = rebalancer(&*store).await?;
    sleep(TICK).await;
    let second = rebalancer(&*store).await?;
    rebalance(&*store, &first, Partitions::NONE).await?;
    rebalance(&*store, &second, Partitions::NONE).await?;
    let owners = store.partition_owners().await?;
    assert_eq!(owners.iter().map(|(partition, _)| *partition).collect::<Vec<_>>(), Vec::from_iter(0..=255));
    for node in [&first, &second] {
        assert_eq!(owners.iter().filter(|(_, owner)| owner == node).count(), 128, "{node}");
    }
    store.leave(&first).await?;
    let left = store.partition_owners().await?;
    assert!(left.len() == 128 && left.iter().all(|(_, owner)| *owner == second), "{left:?}");
    Ok(())
}
