use pillarbox_core::error::BoxError;
use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{Acquired, Mode, NodeId, NodeName};
use pillarbox_core::store::Store;

use crate::events::HOUR;

/// A node that has not joined.
pub(crate) fn stranger() -> Result<NodeId, BoxError> {
    Ok(NodeId::incarnate(&NodeName::new("test")?, Stamp::system()))
}

/// A node with a lease that outlasts every test.
pub(crate) async fn member(store: &dyn Store) -> Result<NodeId, BoxError> {
    let node = stranger()?;
    store.join(&node, Mode::SingleNode, HOUR).await?;
    Ok(node)
}

/// One of several nodes that deliver side by side, each the rows it holds.
pub(crate) async fn peer(store: &dyn Store) -> Result<NodeId, BoxError> {
    let node = stranger()?;
    store.join(&node, Mode::MultiNode, HOUR).await?;
    Ok(node)
}

/// A member that owns the partitions.
pub(crate) async fn owner(store: &dyn Store) -> Result<NodeId, BoxError> {
    let node = member(store).await?;
    match store.acquire(&node).await? {
        Acquired::Owner { .. } => Ok(node),
        other => Err(format!("the node should have become the owner, not {other:?}").into()),
    }
}
