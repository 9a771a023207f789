use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::Random;
use crate::handle::{Delivery, Router, Unroutable};
use crate::ownership::NodeId;
use crate::queue::{Item, Lanes};
use crate::retry::{ExponentialBackoff, RetryPolicy};
use crate::settle::{Attempt, Change, Rules, Verdict, decide};
use crate::store::Row;

/// What all workers of a term share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) router: Arc<Router>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) policy: Arc<dyn RetryPolicy>,
    pub(crate) max_attempts: u32,
    pub(crate) unroutable: Unroutable,
    pub(crate) node: NodeId,
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    /// Cancelled when this node may no longer deliver: handlers are told.
    pub(crate) lost: CancellationToken,
    /// Cancelled when time is up: running handlers are dropped.
    pub(crate) abandon: CancellationToken,
}

impl Worker {
    /// Handles events until the lanes are closed and empty.
    pub(crate) async fn run(self: Arc<Self>) {
        while let Some(item) = self.lanes.pop().await {
            let Some(verdict) = self.abandon.run_until_cancelled(self.deliver(&item)).await else { return };
            // Settling holds back: with too many verdicts waiting to be recorded, no further event is begun.
            if self.verdicts.send(verdict).await.is_err() {
                return;
            }
        }
    }

    async fn deliver(&self, item: &Item) -> Verdict {
        let row = &item.row;
        let attempt = match self.router.find(&row.aggregate_type, &row.event_type) {
            None => Attempt::Unroutable,
            Some(handler) => {
                let delivery = Delivery::new(Arc::clone(row), item.path, self.node.clone(), self.lost.clone());
                // A panic unwinds through the handler's own state only: the future is dropped and never polled again.
                let handling = AssertUnwindSafe(async { handler.handle(delivery).await }).catch_unwind();
                match handling.await {
                    Ok(result) => Attempt::Ended(result),
                    Err(panic) => Attempt::Panicked(message(&*panic)),
                }
            }
        };
        Verdict { seq: row.seq, expected_attempts: row.attempts, change: self.decide(row, attempt) }
    }

    /// Decides about the row. The policy and the error's text are the user's code: one that panics must not cost the
    /// worker, or the row would be held for ever.
    fn decide(&self, row: &Row, attempt: Attempt) -> Change {
        let fallback = ExponentialBackoff::default();
        let rules = |policy| Rules {
            max_attempts: self.max_attempts,
            policy,
            unroutable: self.unroutable,
            random: &*self.random,
        };
        catch_unwind(AssertUnwindSafe(|| decide(row, attempt, &rules(&*self.policy)))).unwrap_or_else(|panic| {
            let attempt = Attempt::Panicked(format!("{} (in a retry policy or an error's text)", message(&*panic)));
            decide(row, attempt, &rules(&fallback))
        })
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
