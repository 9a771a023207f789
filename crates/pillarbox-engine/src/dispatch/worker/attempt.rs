//! The calls of a handler and of what runs around it.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use pillarbox_core::handle::{BatchHandler, BoxFuture, DeliveringNode, Delivery, HandlerError, Outcome};
use tokio::time::timeout;

use super::Worker;
use crate::handlers::{Registered, Target, UnroutableReason, guarded};
use crate::observe::Slot;
use crate::queue::Item;
use crate::settle::AttemptEnd;

impl Worker {
    /// Calls the handler of one event, with the interceptors around it.
    pub(super) async fn attempt(
        &self,
        item: &Item,
        found: Result<&Registered, UnroutableReason>,
        slot: &Slot,
    ) -> AttemptEnd {
        match found.map(|registered| &registered.target) {
            Err(why) => AttemptEnd::Unroutable(why),
            Ok(Target::One(handler)) => {
                let limit = self.limit(found.ok());
                let delivery = self.delivery(item);
                let (ran, before) = self.before(item, &delivery, limit, slot).await;
                let kept = (ran > 0).then(|| delivery.clone());
                let items = std::slice::from_ref(item);
                let attempt = match (before, handler.transactional()) {
                    (Err(error), _) => AttemptEnd::Ended(Err(error)),
                    (Ok(()), None) => match self.handling(items, limit, slot, || handler.handle(delivery)).await {
                        Ok(result) => AttemptEnd::Ended(result),
                        Err(broken) => broken.into(),
                    },
                    (Ok(()), Some(handler)) => {
                        Box::pin(self.in_transaction(handler, item, delivery, limit, slot)).await
                    }
                };
                if let Some(delivery) = kept {
                    self.after(item, ran, &delivery, &attempt, limit, slot).await;
                }
                attempt
            }
            Ok(Target::Batch { handler, .. }) => {
                let items = std::slice::from_ref(item);
                let attempts = Box::pin(self.attempt_batch(&**handler, items, found.ok(), slot)).await;
                let unanswered =
                    || AttemptEnd::Ended(Err(HandlerError::interrupted("the batch handler was not called")));
                attempts.into_iter().next().unwrap_or_else(unanswered)
            }
        }
    }

    /// Calls a batch handler with the events whose interceptors let them pass, and finds an attempt for each.
    pub(super) async fn attempt_batch(
        &self,
        handler: &dyn BatchHandler,
        items: &[Item],
        registered: Option<&Registered>,
        slot: &Slot,
    ) -> Vec<AttemptEnd> {
        let limit = self.limit(registered);
        let mut passed = Vec::with_capacity(items.len());
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            let delivery = self.delivery(item);
            let (ran, before) = self.before(item, &delivery, limit, slot).await;
            let kept = (ran > 0).then(|| delivery.clone());
            if before.is_ok() {
                passed.push(delivery);
            }
            entries.push((item, kept, ran, before));
        }
        let asked = passed.len();
        let (mut answers, broken) = if asked == 0 {
            (Vec::new().into_iter(), None)
        } else {
            match self.handling(items, limit, slot, || handler.handle(passed)).await {
                Ok(answers) => (answers.into_iter(), None),
                Err(broken) => (Vec::new().into_iter(), Some(broken)),
            }
        };
        let answered = answers.len();
        let mut attempts = Vec::with_capacity(items.len());
        for (item, kept, ran, before) in entries {
            let attempt = match before.map(|()| answers.next()) {
                Err(error) => AttemptEnd::Ended(Err(error)),
                Ok(Some(result)) => AttemptEnd::Ended(result),
                Ok(None) => match &broken {
                    Some(broken) => broken.clone().into(),
                    None => {
                        let problem = format!("the batch handler answered for {answered} of {asked} events");
                        AttemptEnd::Ended(Err(HandlerError::interrupted(problem)))
                    }
                },
            };
            if let Some(delivery) = kept {
                self.after(item, ran, &delivery, &attempt, limit, slot).await;
            }
            attempts.push(attempt);
        }
        attempts
    }

    /// Calls a handler with `items`: guarded, limited, measured, in a span, and in the contexts they were written in. Every handler is
    /// called through here.
    pub(super) async fn handling<'a, T: Send>(
        &self,
        items: &[Item],
        limit: Option<Duration>,
        slot: &Slot,
        call: impl FnOnce() -> BoxFuture<'a, T> + Send,
    ) -> Result<T, Broken> {
        let headers = items.iter().map(|item| item.row.event.headers());
        // Each future is pinned: one that is passed on by value is copied, with all that it holds.
        let called = pin!(guarded(call));
        let called = pin!(self.interceptors.contexts.around(headers, || span(items), called));
        let called = pin!(limited("the handler", items, limit, slot, called));
        let Some(first) = items.first() else { return called.await };
        let waited = items.iter().map(|item| (&*item.row, item.path, item.since));
        self.telemetry.meters.handling(&first.row, waited, called).await
    }

    /// The time limit of a call of this handler, or of what belongs to it.
    pub(super) fn limit(&self, registered: Option<&Registered>) -> Option<Duration> {
        registered.and_then(|registered| registered.timeout).unwrap_or(self.handler_timeout)
    }

    /// Runs the interceptors; returns how many ran to their end, and the failure that stopped them.
    async fn before(
        &self,
        item: &Item,
        delivery: &Delivery,
        limit: Option<Duration>,
        slot: &Slot,
    ) -> (usize, Result<(), HandlerError>) {
        if self.interceptors.is_empty() {
            return (0, Ok(()));
        }
        let ran = AtomicUsize::new(0);
        let before = async { Ok(self.interceptors.before(delivery, &ran).await) };
        let before = limited("an interceptor", std::slice::from_ref(item), limit, slot, before).await;
        let ran = ran.load(Ordering::Relaxed);
        (ran, before.unwrap_or_else(|broken| Err(HandlerError::interrupted(broken.to_string()))))
    }

    /// Runs what is left of the interceptors; the delivery was kept for them if any ran.
    async fn after(
        &self,
        item: &Item,
        ran: usize,
        delivery: &Delivery,
        attempt: &AttemptEnd,
        limit: Option<Duration>,
        slot: &Slot,
    ) {
        let after = async {
            match attempt {
                AttemptEnd::Ended(ended) => self.interceptors.after(ran, delivery, ended.as_ref()).await,
                AttemptEnd::Recorded => self.interceptors.after(ran, delivery, Ok(&Outcome::Done)).await,
                AttemptEnd::Panicked(panic) => {
                    let error = HandlerError::retryable(format!("the handler panicked: {panic}"));
                    self.interceptors.after(ran, delivery, Err(&error)).await;
                }
                AttemptEnd::CommitUncertain(error) => {
                    let error = HandlerError::interrupted(error.clone());
                    self.interceptors.after(ran, delivery, Err(&error)).await;
                }
                AttemptEnd::NotBegun => {
                    let error =
                        HandlerError::interrupted("the right to deliver the event ended before its handler was called");
                    self.interceptors.after(ran, delivery, Err(&error)).await;
                }
                AttemptEnd::Unroutable(_) => {}
            }
            Ok(())
        };
        if let Err(broken) = limited("an interceptor", std::slice::from_ref(item), limit, slot, after).await {
            self.interceptors.failed_after(delivery, &broken.to_string());
        }
    }

    pub(super) fn delivery(&self, item: &Item) -> Delivery {
        Delivery::new(Arc::clone(&item.row), item.path, Arc::clone(self.deliverer(item))).with_queued_at(item.since)
    }

    pub(super) fn deliverer<'a>(&'a self, item: &'a Item) -> &'a Arc<DeliveringNode> {
        item.deliverer.as_ref().unwrap_or(&self.node)
    }
}

/// The span of a handler call. Of a batch it names the first event and how many there are.
fn span(items: &[Item]) -> tracing::Span {
    let Some(Item { row, path, .. }) = items.first() else { return tracing::Span::none() };
    tracing::debug_span!(
        "handle",
        event_id = row.event.id().as_str(),
        event_type = row.event.event_type(),
        attempt = row.attempts.saturating_add(1),
        path = path.name(),
        events = items.len(),
    )
}

/// The reason why a call gave no answer.
#[derive(Debug, Clone)]
pub(super) enum Broken {
    /// It panicked, with this message.
    Panicked(String),
    /// It ran for too long, and was dropped.
    TimedOut { what: &'static str, limit: Duration },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(panic) => write!(f, "the handler panicked: {panic}"),
            Self::TimedOut { what, limit } => {
                write!(f, "{what} timed out: it had not ended after {limit:?} and was dropped")
            }
        }
    }
}

impl From<Broken> for AttemptEnd {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Panicked(panic) => Self::Panicked(panic),
            timed_out @ Broken::TimedOut { .. } => Self::Ended(Err(HandlerError::interrupted(timed_out.to_string()))),
        }
    }
}

/// Waits for a call of the user's code, which stands in `slot` meanwhile, for as long as it may take. One that ends at once
/// needs no timer.
pub(super) async fn limited<T>(
    what: &'static str,
    items: &[Item],
    limit: Option<Duration>,
    slot: &Slot,
    call: impl Future<Output = Result<T, String>>,
) -> Result<T, Broken> {
    let running = items.first().map(|first| slot.begin(&first.row, items.len()));
    let mut call = pin!(call);
    let answer = match poll!(call.as_mut()) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            if let Some(running) = &running {
                running.waits();
            }
            match limit {
                None => call.await,
                Some(limit) => match timeout(limit, call).await {
                    Ok(answer) => answer,
                    Err(_elapsed) => return Err(Broken::TimedOut { what, limit }),
                },
            }
        }
    };
    answer.map_err(Broken::Panicked)
}
