use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Epochs, NodeId, Partitions, Rebalanced, Renewal};
use pillarbox_core::store::{NodeStatus, Store};

use crate::Harness;
use crate::events::HOUR;
use crate::nodes::{member, rebalance, rebalancer};
use crate::run::{Db, Outcome};

/// The registered node as the store lists it.
async fn status(store: &dyn Store, node: &NodeId) -> Result<NodeStatus, BoxError> {
    let found = store.nodes().await?.into_iter().find(|status| status.node == *node);
    found.ok_or_else(|| format!("node {node} is not registered").into())
}

/// Though its lease would run for an hour: what it owned is free as of a node that died, and it is told so.
pub(super) async fn evict_removes_a_node_that_did_not_renew<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let dead = rebalancer(&*store).await?;
    rebalance(&*store, &dead, Partitions::NONE).await?;
    let heir = rebalancer(&*store).await?;
    let seen = status(&*store, &dead).await?;
    assert_eq!(seen.lease, Some(HOUR), "a node says how long its lease is");
    assert!(seen.lease_left.is_some_and(|left| left > HOUR / 2), "{seen:?}");

    assert!(store.evict(&seen).await?);
    assert!(!store.evict(&seen).await?, "it is gone already");
    assert_eq!(store.rebalance(&dead, &Epochs::none()).await?, Rebalanced::Lost);
    assert_eq!(store.renew(&dead, HOUR, None, None).await?, Renewal::Lost);
    let all = rebalance(&*store, &heir, Partitions::NONE).await?;
    assert_eq!((all.gained, all.unclean), (Partitions::ALL, Partitions::ALL));
    Ok(())
}

/// A renewal since it was seen keeps it, and all that it owns. So does joining anew under its own name.
pub(super) async fn evict_spares_a_node_that_renewed<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = rebalancer(&*store).await?;
    rebalance(&*store, &node, Partitions::NONE).await?;
    let seen = status(&*store, &node).await?;
    assert!(matches!(store.renew(&node, HOUR * 2, None, None).await?, Renewal::Renewed { .. }));
    let renewed = status(&*store, &node).await?;
    assert!(renewed.expires_at != seen.expires_at && renewed.lease == Some(HOUR * 2), "{renewed:?} after {seen:?}");
    assert!(!store.evict(&seen).await?);
    assert!(matches!(store.renew(&node, HOUR, None, None).await?, Renewal::Renewed { .. }));
    let keeps = rebalance(&*store, &node, Partitions::NONE).await?;
    assert_eq!((keeps.owned, keeps.gained), (Partitions::ALL, Partitions::NONE));

    // Another node's times name nobody else.
    store.leave(&node).await?;
    let other = member(&*store).await?;
    let mixed = NodeStatus { node: other.clone(), ..seen };
    assert!(!store.evict(&mixed).await?);
    assert!(matches!(store.renew(&other, HOUR, None, None).await?, Renewal::Renewed { .. }));
    Ok(())
}
