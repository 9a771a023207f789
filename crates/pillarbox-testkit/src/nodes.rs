use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{Acquired, Epochs, Holding, NodeId, NodeMode, NodeName, Partitions, Rebalanced};
use pillarbox_core::store::Store;

use crate::events::HOUR;

/// Longer than any database's clock needs to move on, so that who joins after it has joined later.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// A node that has not joined.
pub(crate) fn stranger() -> Result<NodeId, BoxError> {
    Ok(NodeId::incarnate(&NodeName::new("test")?, Stamp::system()))
}

/// A node with a lease that outlasts every test.
async fn joined(store: &dyn Store, mode: NodeMode) -> Result<NodeId, BoxError> {
    let node = stranger()?;
    store.join(&node, mode, HOUR).await?;
    Ok(node)
}

/// A node that can own the table.
pub(crate) async fn member(store: &dyn Store) -> Result<NodeId, BoxError> {
    joined(store, NodeMode::SingleNode).await
}

/// One of several nodes that deliver side by side, each the rows it holds.
pub(crate) async fn peer(store: &dyn Store) -> Result<NodeId, BoxError> {
    joined(store, NodeMode::MultiNode).await
}

/// One of several nodes that share the partitions.
pub(crate) async fn rebalancer(store: &dyn Store) -> Result<NodeId, BoxError> {
    joined(store, NodeMode::Partitioned).await
}

/// Lets a registered node give `give` and take the partitions that are free for it, and returns those that it owns and should
/// own. It asks for the epochs of the given partitions before, and may take some by that already.
pub(crate) async fn rebalance(store: &dyn Store, node: &NodeId, give: Partitions) -> Result<Holding, BoxError> {
    let before = rebalance_by_epoch(store, node, &Epochs::none()).await?;
    if give.is_empty() {
        return Ok(before);
    }
    let after = rebalance_by_epoch(store, node, &before.epochs.of(give)).await?;
    let (gained, unclean) = (before.gained.union(after.gained), before.unclean.union(after.unclean));
    Ok(Holding { gained, unclean, ..after })
}

/// The same in one call, by a node that knows the epochs of what it gives.
pub(crate) async fn rebalance_by_epoch(store: &dyn Store, node: &NodeId, give: &Epochs) -> Result<Holding, BoxError> {
    match store.rebalance(node, give).await? {
        Rebalanced::Member(holding) => Ok(holding),
        Rebalanced::Lost => Err(format!("node {node} should be registered").into()),
    }
}

/// A member that owns the partitions.
pub(crate) async fn owner(store: &dyn Store) -> Result<NodeId, BoxError> {
    let node = member(store).await?;
    match store.acquire(&node).await? {
        Acquired::Owner { .. } => Ok(node),
        other => Err(format!("the node should have become the owner, not {other:?}").into()),
    }
}
