use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::Random;
use crate::handle::{BatchHandler, BoxFuture, Delivery, HandlerError, Router, Target, Unroutable};
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
            let Some(verdicts) = self.abandon.run_until_cancelled(self.deliver(item)).await else { return };
            // Settling holds back: with too many verdicts waiting to be recorded, no further event is begun.
            for verdict in verdicts {
                if self.verdicts.send(verdict).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Handles an event, and where its handler takes batches, what waits right behind it for the same handler.
    async fn deliver(&self, item: Item) -> Verdicts {
        match self.router.find(&item.row.aggregate_type, &item.row.event_type) {
            None => Verdicts::one(self.verdict(&item.row, Attempt::Unroutable)),
            Some(Target::One(handler)) => {
                let handling = guarded(|| handler.handle(self.delivery(&item)));
                let attempt = match handling.await {
                    Ok(result) => Attempt::Ended(result),
                    Err(panic) => Attempt::Panicked(panic),
                };
                Verdicts::one(self.verdict(&item.row, attempt))
            }
            Some(Target::Batch { handler, max }) => {
                let row = Arc::clone(&item.row);
                let same =
                    |other: &Row| other.event_type == row.event_type && other.aggregate_type == row.aggregate_type;
                let mut items = vec![item];
                items.extend(self.lanes.pop_more(max - 1, same));
                self.deliver_batch(&**handler, &items).await
            }
        }
    }

    async fn deliver_batch(&self, handler: &dyn BatchHandler, items: &[Item]) -> Verdicts {
        let handling = guarded(|| handler.handle(items.iter().map(|item| self.delivery(item)).collect()));
        let (mut answers, panic) = match handling.await {
            Ok(answers) => (answers.into_iter(), None),
            Err(panic) => (Vec::new().into_iter(), Some(panic)),
        };
        let answered = answers.len();
        let verdicts = items.iter().map(|item| {
            let attempt = match (answers.next(), &panic) {
                (Some(result), _) => Attempt::Ended(result),
                (None, Some(panic)) => Attempt::Panicked(panic.clone()),
                (None, None) => {
                    let problem = format!("the batch handler answered for {answered} of {} events", items.len());
                    Attempt::Ended(Err(HandlerError::retryable(problem)))
                }
            };
            self.verdict(&item.row, attempt)
        });
        Verdicts { first: None, rest: verdicts.collect::<Vec<_>>().into_iter() }
    }

    fn delivery(&self, item: &Item) -> Delivery {
        Delivery::new(Arc::clone(&item.row), item.path, self.node.clone(), self.lost.clone())
    }

    fn verdict(&self, row: &Row, attempt: Attempt) -> Verdict {
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

/// The verdicts of one turn; of a single event without an allocation.
#[derive(Debug)]
struct Verdicts {
    first: Option<Verdict>,
    rest: std::vec::IntoIter<Verdict>,
}

impl Verdicts {
    fn one(verdict: Verdict) -> Self {
        Self { first: Some(verdict), rest: Vec::new().into_iter() }
    }
}

impl Iterator for Verdicts {
    type Item = Verdict;

    fn next(&mut self) -> Option<Verdict> {
        self.first.take().or_else(|| self.rest.next())
    }
}

/// Calls a handler and waits for it; a panic, of the call or of its future, comes back as what it said.
///
/// A panic unwinds through the handler's own state only: the future is dropped and never polled again.
async fn guarded<'a, T>(call: impl FnOnce() -> BoxFuture<'a, T>) -> Result<T, String> {
    AssertUnwindSafe(async { call().await }).catch_unwind().await.map_err(|panic| message(&*panic))
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
