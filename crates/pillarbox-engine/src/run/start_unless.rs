use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::Outbox;

/// The time that a start may take to end once nobody waits for it any more.
const START_GRACE: Duration = Duration::from_secs(5);

/// Waits for an outbox to start, unless `stop` is ready before it has: `None` then. `starting` is what `start` of a builder returns.
///
/// A start that is dropped half-way may leave a node behind that has joined and owns partitions, for as long as its lease lasts. This one ends
/// within five seconds, and gives its lease back, as long as the database answers by then.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// use std::time::Duration;
///
/// use pillarbox_core::handle::Delivery;
/// use pillarbox_engine::run::{Outbox, start_unless};
/// use pillarbox_memory::MemoryStore;
///
/// # async fn receipt(_: Delivery) {}
/// let starting = Outbox::single_node(MemoryStore::new()).handle_all(receipt).start();
/// let Some(outbox) = start_unless(starting, tokio::time::sleep(Duration::from_secs(10))).await? else {
///     return Err("it has not started within ten seconds".into());
/// };
/// outbox.shutdown().await;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// # })?;
/// # Ok::<(), pillarbox_core::error::BoxError>(())
/// ```
///
/// # Errors
/// The errors of the start.
pub async fn start_unless<E>(
    starting: impl Future<Output = Result<Outbox, E>>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Outbox>, E> {
    let mut starting = pin!(starting);
    tokio::select! {
        biased;
        started = &mut starting => return started.map(Some),
        () = stop => {}
    }
    if let Ok(Ok(outbox)) = timeout(START_GRACE, starting).await {
        outbox.shutdown_within(Duration::ZERO).await;
    }
    Ok(None)
}
