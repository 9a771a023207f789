use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::{FutureExt as _, poll};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Suspects;
use crate::claim::Gate;
use crate::clock::Random;
use crate::handle::{
    BatchHandler, BoxFuture, Deliverer, Delivery, Failure, Fallback, HandlerError, Homeless, Interceptors, Outcome,
    Registered, Router, Target, Unroutable,
};
use crate::observe::Meters;
use crate::ownership::{Fence, Mode, Past, Tenure};
use crate::queue::{Feed, Intake, Item};
use crate::retry::{ExponentialBackoff, Retry, RetryPolicy};
use crate::settle::{Attempt, Change, Decision, Rules, Verdict, clean_error, decide};
use crate::store::{BegunAttempt, Row};

/// What all workers of a term share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) feed: Feed,
    pub(crate) intake: Arc<Intake>,
    pub(crate) router: Arc<Router>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) policy: Arc<dyn RetryPolicy>,
    pub(crate) max_attempts: u32,
    pub(crate) unroutable: Unroutable,
    pub(crate) interceptors: Interceptors,
    pub(crate) tenure: Tenure,
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) suspects: Arc<Suspects>,
    pub(crate) gate: Gate,
    pub(crate) meters: Arc<Meters>,
    /// Cancelled when the term ends: an event that waits in its place for another attempt waits no longer.
    pub(crate) ending: CancellationToken,
    /// Who delivers, until it may no longer: handlers are told.
    pub(crate) deliverer: Arc<Deliverer>,
    /// Cancelled when time is up: running handlers are dropped.
    pub(crate) abandon: CancellationToken,
}

impl Worker {
    /// Handles events until the lanes are closed and empty.
    pub(crate) async fn run(self: Arc<Self>) {
        while let Some(item) = self.feed.pop().await {
            let mut delivering = pin!(async {
                match self.tenure.mode {
                    Mode::Ordered => self.deliver_in_place(item).await,
                    _ => Some(self.deliver(item).await),
                }
            });
            // A handler that ends at once needs no waiting to be arranged, which costs several locks.
            let delivered = match poll!(delivering.as_mut()) {
                Poll::Ready(delivered) => Some(delivered),
                Poll::Pending => self.abandon.run_until_cancelled(delivering).await,
            };
            let Some(Some(verdicts)) = delivered else { return };
            // Settling holds back: with too many verdicts waiting to be recorded, no further event is begun.
            for verdict in verdicts {
                // Before the verdict is recorded: from then on the table tells what may follow.
                if !self.ended(verdict.seq, Some(&verdict.change)) || !self.stands(&verdict) {
                    continue;
                }
                if self.verdicts.send(verdict).await.is_err() {
                    return;
                }
            }
        }
    }

    /// An event has been decided about; whether that still counts. What was waiting behind one that failed is left to the
    /// table.
    fn ended(&self, seq: i64, change: Option<&Change>) -> bool {
        let ended = self.feed.ended(seq, change);
        self.intake.registry.release(ended.dropped);
        if ended.revoked {
            self.intake.registry.release([seq]);
        }
        !ended.revoked
    }

    /// Whether a verdict is worth recording. A handler that fails because it was told to stop has not failed: the next
    /// owner delivers the event.
    fn stands(&self, verdict: &Verdict) -> bool {
        verdict.change == Change::Done || !self.deliverer.lost.is_cancelled()
    }

    /// Handles an event, and where its handler takes batches, what waits right behind it for the same handler.
    async fn deliver(&self, item: Item) -> Verdicts {
        if item.past != Past::Clean {
            return self.deliver_suspect(item).await;
        }
        // In order, each event is called alone: the next may begin only when this one's fate is known.
        let alone = self.tenure.mode == Mode::Ordered;
        let found = self.router.find(&item.row);
        match found.map(|registered| &registered.target) {
            Ok(Target::Batch { handler, max }) if !alone => {
                let own = found.ok();
                let lane = handler.lane(&self.delivery(&item));
                let same = |other: &Item| {
                    other.past == Past::Clean
                        && self
                            .router
                            .find(&other.row)
                            .ok()
                            .zip(own)
                            .is_some_and(|(other, own)| std::ptr::eq(other, own))
                        && handler.lane(&self.delivery(other)) == lane
                };
                let mut items = vec![item];
                items.extend(self.feed.pop_more(max - 1, same));
                let attempts = self.attempt_batch(&**handler, &items).await;
                let mut verdicts = Vec::with_capacity(items.len());
                for (item, attempt) in items.iter().zip(attempts) {
                    verdicts.extend(self.verdict(item, found.ok(), attempt).await);
                }
                Verdicts { first: None, rest: verdicts.into_iter() }
            }
            _ => Verdicts::of(self.verdict(&item, found.ok(), self.attempt(&item, found).await).await),
        }
    }

    /// Handles an event that its last node may have died of. The attempt is announced in the table first; if an announced
    /// one never ended, it counts.
    async fn deliver_suspect(&self, item: Item) -> Verdicts {
        let crashed = item.past == Past::Crashed;
        let attempts = item.row.attempts.saturating_add(u32::from(crashed));
        let error = crashed.then(|| format!("the process ended during attempt {attempts}"));
        let found = self.router.find(&item.row);
        let max_attempts = self.rules(found.ok()).max_attempts;
        // No fallback: should it be what ended the process, it would end every further one.
        if let Some(error) = error.as_ref().filter(|_| attempts >= max_attempts) {
            let change = Change::Dead { attempts, error: clean_error(error) };
            return Verdicts::one(Verdict { seq: item.row.seq, expected_attempts: item.row.attempts, change });
        }
        // Rows that have been through a crash run one at a time, so that no innocent one shares the next with its cause.
        let _alone = if attempts > 0 { Some(self.suspects.alone.lock().await) } else { None };
        let announced = BegunAttempt { seq: item.row.seq, expected_attempts: item.row.attempts, attempts, error };
        if !self.suspects.announce(&self.tenure, &announced, &*self.random).await {
            self.ended(item.row.seq, None);
            return Verdicts::none();
        }
        let row = Arc::new(Row { attempts, ..Row::clone(&item.row) });
        let item = Item { row, ..item };
        Verdicts::of(self.verdict(&item, found.ok(), self.attempt(&item, found).await).await)
    }

    /// Handles an event and, if it has to be tried again, keeps it and the ones behind it waiting, so that none overtakes
    /// it. What it failed of is recorded meanwhile. `None` if the term ends first, and with it this worker.
    async fn deliver_in_place(&self, mut item: Item) -> Option<Verdicts> {
        loop {
            let mut verdicts = self.deliver(Item { row: Arc::clone(&item.row), ..item }).await;
            let Some(verdict) = verdicts.next() else { return Some(verdicts) };
            let Change::Retry { attempts, delay, error } = verdict.change else { return Some(Verdicts::one(verdict)) };
            if let Some(error) = error.filter(|_| attempts > verdict.expected_attempts) {
                let hold = Verdict { change: Change::Hold { attempts, error }, ..verdict };
                if self.stands(&hold) {
                    self.verdicts.send(hold).await.ok()?;
                }
            }
            if item.past != Past::Clean {
                // While it waits it is not being attempted: a crash now would not be its doing.
                self.suspects.withdraw(&self.tenure, &[verdict.seq]).await;
            }
            let row = Arc::new(Row { attempts, ..Row::clone(&item.row) });
            self.ending.run_until_cancelled(tokio::time::sleep(delay)).await?;
            item = Item { row, since: Instant::now(), past: Past::Clean, ..item };
        }
    }

    /// Calls the handler of one event, with the interceptors around it.
    async fn attempt(&self, item: &Item, found: Result<&Registered, Homeless>) -> Attempt {
        match found.map(|registered| &registered.target) {
            Err(why) => Attempt::Unroutable(why),
            Ok(Target::One(handler)) => {
                let delivery = self.delivery(item);
                let (ran, before) = self.interceptors.before(&delivery).await;
                let kept = (ran > 0).then(|| delivery.clone());
                let attempt = match before {
                    Err(error) => Attempt::Ended(Err(error)),
                    Ok(()) => match self.handling(std::slice::from_ref(item), || handler.handle(delivery)).await {
                        Ok(result) => Attempt::Ended(result),
                        Err(panic) => Attempt::Panicked(panic),
                    },
                };
                self.after(ran, kept.as_ref(), &attempt).await;
                attempt
            }
            Ok(Target::Batch { handler, .. }) => {
                let attempts = self.attempt_batch(&**handler, std::slice::from_ref(item)).await;
                let unanswered = || Attempt::Ended(Err(HandlerError::interrupted("the batch handler was not called")));
                attempts.into_iter().next().unwrap_or_else(unanswered)
            }
        }
    }

    /// Calls a batch handler with the events whose interceptors let them pass, and finds an attempt for each.
    async fn attempt_batch(&self, handler: &dyn BatchHandler, items: &[Item]) -> Vec<Attempt> {
        let mut passed = Vec::with_capacity(items.len());
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            let delivery = self.delivery(item);
            let (ran, before) = self.interceptors.before(&delivery).await;
            let kept = (ran > 0).then(|| delivery.clone());
            if before.is_ok() {
                passed.push(delivery);
            }
            entries.push((kept, ran, before));
        }
        let asked = passed.len();
        let (mut answers, panic) = if asked == 0 {
            (Vec::new().into_iter(), None)
        } else {
            match self.handling(items, || handler.handle(passed)).await {
                Ok(answers) => (answers.into_iter(), None),
                Err(panic) => (Vec::new().into_iter(), Some(panic)),
            }
        };
        let answered = answers.len();
        let mut attempts = Vec::with_capacity(items.len());
        for (kept, ran, before) in entries {
            let attempt = match before.map(|()| answers.next()) {
                Err(error) => Attempt::Ended(Err(error)),
                Ok(Some(result)) => Attempt::Ended(result),
                Ok(None) => match &panic {
                    Some(panic) => Attempt::Panicked(panic.clone()),
                    None => {
                        let problem = format!("the batch handler answered for {answered} of {asked} events");
                        Attempt::Ended(Err(HandlerError::interrupted(problem)))
                    }
                },
            };
            self.after(ran, kept.as_ref(), &attempt).await;
            attempts.push(attempt);
        }
        attempts
    }

    /// Calls a handler with `items`: guarded, measured, in a span, and in the contexts they were written in. Whatever
    /// handles events is called through here.
    async fn handling<'a, T: Send>(
        &self,
        items: &[Item],
        call: impl FnOnce() -> BoxFuture<'a, T> + Send,
    ) -> Result<T, String> {
        let headers = items.iter().map(|item| &item.row.headers);
        let called = self.interceptors.contexts.around(headers, || span(items), guarded(call));
        self.meters.handling(items, called).await
    }

    /// Runs what is left of the interceptors; the delivery was kept for them if any ran.
    async fn after(&self, ran: usize, delivery: Option<&Delivery>, attempt: &Attempt) {
        let Some(delivery) = delivery else { return };
        match attempt {
            Attempt::Ended(ended) => self.interceptors.after(ran, delivery, ended.as_ref()).await,
            Attempt::Panicked(panic) => {
                let error = HandlerError::retryable(format!("the handler panicked: {panic}"));
                self.interceptors.after(ran, delivery, Err(&error)).await;
            }
            Attempt::Unroutable(_) => {}
        }
    }

    fn delivery(&self, item: &Item) -> Delivery {
        Delivery::new(Arc::clone(&item.row), item.path, Arc::clone(&self.deliverer))
    }

    /// What becomes of an event after an attempt, or of its fallback if it would be given up; `None` if it is left in the table.
    async fn verdict(&self, item: &Item, registered: Option<&Registered>, attempt: Attempt) -> Option<Verdict> {
        if self.leaves(item, &attempt) {
            self.leave(item.row.seq);
            return None;
        }
        Some(self.decided(item, registered, attempt).await)
    }

    /// Whether an event that was put off is one of those that are held back in the table anyway, or is left to other nodes from
    /// now on: then its row need not change. One that its last node may have died of is marked as begun, and has to be recorded.
    fn leaves(&self, item: &Item, attempt: &Attempt) -> bool {
        let Attempt::Ended(Err(error)) = attempt else { return false };
        if item.past != Past::Clean || !error.is_deferred() {
            return false;
        }
        self.gate.holds(&item.row.event_type)
            || (self.tenure.fence() == Fence::Row && error.elsewhere().is_some_and(|delay| self.shun(item, delay)))
    }

    /// Leaves an event to other nodes for so long, if there is room to remember that.
    fn shun(&self, item: &Item, delay: Duration) -> bool {
        self.intake.registry.shun(item.row.seq, Instant::now(), delay)
    }

    /// Forgets an event, and what waits behind it: the table has all of it, and is read again from there.
    fn leave(&self, seq: i64) {
        let ended = self.feed.left(seq);
        let others = !ended.dropped.is_empty();
        self.intake.registry.release(ended.dropped);
        if self.tenure.fence() == Fence::Row {
            // Other nodes may reach what this one does not.
            return self.intake.hand_back(seq);
        }
        self.intake.registry.release([seq]);
        if others {
            self.intake.lookout.wake_for(seq);
        }
    }

    async fn decided(&self, item: &Item, registered: Option<&Registered>, attempt: Attempt) -> Verdict {
        let row = &item.row;
        let verdict = |expected_attempts, change| Verdict { seq: row.seq, expected_attempts, change };
        let Decision { change, given_up } = self.decide(row, registered, attempt);
        let fallback = registered.and_then(|registered| self.router.fallback(registered));
        let (Change::Dead { attempts, error }, Some(reason), Some(fallback)) = (&change, given_up, fallback) else {
            return verdict(row.attempts, change);
        };
        // A node that lost its lease gives nothing up: the next owner delivers the event.
        if self.deliverer.lost.is_cancelled() {
            return verdict(row.attempts, change);
        }
        let failure = Failure::new(*attempts, error.clone(), reason);
        let recovering = fall_back(fallback, self.delivery(item), failure);
        let spanned = || fallback_span(row);
        match self.interceptors.contexts.around(std::iter::once(&row.headers), spanned, recovering).await {
            Err(problem) => {
                let error = clean_error(&format!("{problem}; the handler had failed before: {error}"));
                verdict(row.attempts, Change::Dead { attempts: *attempts, error })
            }
            Ok(()) if *attempts == row.attempts => verdict(row.attempts, Change::Done),
            Ok(()) => {
                // DONE keeps the attempts that the row has, so the one that failed last is recorded before.
                let hold = verdict(row.attempts, Change::Hold { attempts: *attempts, error: error.clone() });
                self.feed.held(row.seq);
                // Nobody listens any more if the term is over, and then nobody hears of what follows either.
                let _told = self.verdicts.send(hold).await;
                verdict(*attempts, Change::Done)
            }
        }
    }

    /// What applies to the failures of a handler, or of none.
    fn rules<'a>(&'a self, registered: Option<&'a Registered>) -> Rules<'a> {
        let own = registered.map(|registered| &registered.retry);
        Rules {
            max_attempts: own.and_then(Retry::attempts).unwrap_or(self.max_attempts),
            policy: own.and_then(Retry::policy).unwrap_or(&*self.policy),
            errors: self.router.errors(registered),
            unroutable: self.unroutable,
            random: &*self.random,
        }
    }

    /// Decides about the row. The policy, the filter and the error's text are the user's code: one that panics must not
    /// cost the worker, or the row would be held for ever.
    fn decide(&self, row: &Row, registered: Option<&Registered>, attempt: Attempt) -> Decision {
        let rules = self.rules(registered);
        catch_unwind(AssertUnwindSafe(|| decide(row, attempt, &rules))).unwrap_or_else(|panic| {
            let attempt =
                Attempt::Panicked(format!("{} (in a retry policy, a filter or an error's text)", message(&*panic)));
            decide(row, attempt, &Rules { policy: &ExponentialBackoff::default(), ..rules })
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
        Self { first: Some(verdict), ..Self::none() }
    }

    fn of(verdict: Option<Verdict>) -> Self {
        Self { first: verdict, ..Self::none() }
    }

    fn none() -> Self {
        Self { first: None, rest: Vec::new().into_iter() }
    }
}

impl Iterator for Verdicts {
    type Item = Verdict;

    fn next(&mut self) -> Option<Verdict> {
        self.first.take().or_else(|| self.rest.next())
    }
}

/// The span of a handler call. Of a batch it names the first event and how many there are.
fn span(items: &[Item]) -> tracing::Span {
    let Some(Item { row, path, .. }) = items.first() else { return tracing::Span::none() };
    tracing::debug_span!(
        "handle",
        event_id = %row.event_id,
        event_type = &*row.event_type,
        attempt = row.attempts.saturating_add(1),
        path = path.name(),
        events = items.len(),
    )
}

fn fallback_span(row: &Row) -> tracing::Span {
    tracing::debug_span!("fallback", event_id = %row.event_id, event_type = &*row.event_type)
}

/// Calls a fallback; an error says why the event is DEAD all the same.
async fn fall_back(fallback: &dyn Fallback, delivery: Delivery, failure: Failure) -> Result<(), String> {
    let recovering = || -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            match fallback.recover(delivery, failure).await {
                Ok(Outcome::Done) => Ok(()),
                Ok(Outcome::Dead(reason)) => Err(format!("the fallback gave it up: {reason}")),
                Ok(Outcome::RetryAfter(_)) => {
                    Err("the fallback asked for another attempt, and there is none".to_owned())
                }
                Err(error) => Err(format!("the fallback failed: {}", error.text())),
            }
        })
    };
    guarded(recovering).await.unwrap_or_else(|panic| Err(format!("the fallback panicked: {panic}")))
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
