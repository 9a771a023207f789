use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::{FutureExt as _, poll};
use pillarbox_core::clock::Random;
use pillarbox_core::handle::{
    BatchHandler, BoxFuture, DeliveringNode, Delivery, Failure, Fallback, HandlerError, OnDead, Outcome,
};
use pillarbox_core::ownership::{Mode, PriorAttempt};
use pillarbox_core::retry::{ExponentialBackoff, Retry, RetryPolicy};
use pillarbox_core::row::{Change, Status, Verdict};
use pillarbox_core::store::{BegunAttempt, Row};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{CrashTracker, Unknown};
use crate::handlers::{Interceptors, Registered, Router, Target, Unroutable, UnroutableReason};
use crate::observe::{Consequence, Failed, Slot, Telemetry, clean_error};
use crate::queue::{Charge, InFlight, Item};
use crate::settle::{Attempt, Decision, Rules, decide};
use crate::tenure::Tenure;
use crate::type_pause::TypePause;

/// The state that all workers of a term share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) router: Arc<Router>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) policy: Arc<dyn RetryPolicy>,
    pub(crate) max_attempts: u32,
    pub(crate) unroutable: Unroutable,
    pub(crate) unknown: Arc<Unknown>,
    /// The time limit of a call, for handlers that set none.
    pub(crate) handler_timeout: Option<Duration>,
    pub(crate) interceptors: Interceptors,
    pub(crate) tenure: Tenure,
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) crashes: Arc<CrashTracker>,
    pub(crate) type_pause: TypePause,
    /// Cancelled when the term ends: an event that waits in its place for another attempt waits no longer.
    pub(crate) ending: CancellationToken,
    /// The node that delivers, until it may no longer: handlers are told.
    pub(crate) deliverer: Arc<DeliveringNode>,
    /// Cancelled when time is up: running handlers are dropped.
    pub(crate) abandon: CancellationToken,
}

impl Worker {
    /// Handles events until the queue is closed and empty.
    pub(crate) async fn run(self: Arc<Self>, slot: Arc<Slot>) {
        while let Some(item) = self.in_flight.next().await {
            let mut delivering = pin!(async {
                match self.tenure.mode {
                    Mode::Ordered => self.deliver_in_place(item, &slot).await,
                    _ => Some(self.deliver(item, &slot).await),
                }
            });
            // A handler that ends at once needs no waiting to be arranged, which costs several locks.
            let delivered = match poll!(delivering.as_mut()) {
                Poll::Ready(delivered) => Some(delivered),
                Poll::Pending => self.abandon.run_until_cancelled(delivering).await,
            };
            let Some(Some(Delivered { verdicts, undecided, call })) = delivered else { return };
            for verdict in verdicts {
                if !self.hand_on(verdict).await {
                    return;
                }
            }
            for Undecided { item, registered, attempt } in undecided {
                let deciding = self.verdict(&item, registered, attempt, &slot);
                let Some(verdict) = self.abandon.run_until_cancelled(deciding).await else { return };
                if let Some(verdict) = verdict
                    && !self.hand_on(verdict).await
                {
                    return;
                }
            }
            drop(call);
        }
    }

    /// Hands a verdict on to be recorded; false if nobody records any more. Settling holds back: with too many verdicts waiting to be
    /// recorded, no further event is begun.
    async fn hand_on(&self, verdict: Verdict) -> bool {
        // Before the verdict is recorded: from then on the table tells what may follow.
        if !self.decided_about(verdict.row.seq, Some(&verdict.change)).await || !self.stands(&verdict) {
            return true;
        }
        self.verdicts.send(verdict).await.is_ok()
    }

    /// An event has been decided about; false if the verdict does not count, since its handler was told to stop.
    async fn decided_about(&self, seq: i64, change: Option<&Change>) -> bool {
        let counts = self.in_flight.decided(seq, change);
        if !counts {
            // The process lives, so the attempt has not crashed. Before the row is let go, for then it may be another node's.
            self.crashes.withdraw_if_announced(&self.tenure, seq).await;
            self.in_flight.let_go(seq);
        }
        counts
    }

    /// True if a verdict is worth recording. A handler that fails because it was told to stop has not failed: the next owner
    /// delivers the event.
    fn stands(&self, verdict: &Verdict) -> bool {
        verdict.change.status() == Status::Done || !self.deliverer.lost.is_cancelled()
    }

    /// Handles an event, and where its handler takes batches, what waits right behind it for the same handler.
    ///
    /// Rare paths are boxed, so that the future of the common one stays small: it is copied for every event.
    async fn deliver(&self, item: Item, slot: &Slot) -> Delivered<'_> {
        if item.past != PriorAttempt::Clean {
            return Box::pin(self.deliver_suspect(item, slot)).await.into();
        }
        // In order, each event is called alone: the next may begin only when this one's fate is known.
        let alone = self.tenure.mode == Mode::Ordered;
        let found = self.router.find(&item.row);
        if let Ok(Registered { target: Target::Batch { handler, max }, .. }) = found
            && !alone
        {
            return Box::pin(self.deliver_batch(item, found.ok(), &**handler, *max, slot)).await;
        }
        let attempt = self.attempt(&item, found, slot).await;
        self.verdict(&item, found.ok(), attempt, slot).await.into()
    }

    /// Handles an event together with up to `max - 1` others that wait for the same handler.
    async fn deliver_batch<'a>(
        &self,
        item: Item,
        registered: Option<&'a Registered>,
        handler: &dyn BatchHandler,
        max: usize,
        slot: &Slot,
    ) -> Delivered<'a> {
        // Events of one class have one handler and lane, unless there are more of those than classes.
        let lane = item.class.is_shared().then(|| handler.lane(&self.delivery(&item)));
        let is_same = |other: &Item| {
            let found = self.router.find(&other.row).ok().zip(registered);
            found.is_some_and(|(other, own)| std::ptr::eq(other, own))
                && Some(handler.lane(&self.delivery(other))) == lane
        };
        let same = |other: &Item| other.past == PriorAttempt::Clean && (lane.is_none() || is_same(other));
        let class = item.class;
        let mut items = vec![item];
        items.extend(self.in_flight.more(class, max - 1, same));
        let attempts = self.attempt_batch(handler, &items, registered, slot).await;
        let call = items.first_mut().and_then(|item| item.charge.take());
        let (mut done, mut undecided) = (Vec::with_capacity(items.len()), Vec::new());
        for (item, attempt) in items.into_iter().zip(attempts) {
            if let Attempt::Ended(Ok(Outcome::Done)) = attempt {
                done.push(is_done(&item));
            } else {
                undecided.push(Undecided { item, registered, attempt });
            }
        }
        let call = call.filter(|_| !undecided.is_empty());
        Delivered { verdicts: Verdicts::Many(done.into_iter()), undecided, call }
    }

    /// Handles an event that its last node may have died of. The attempt is announced in the table first; if an announced
    /// one never ended, it counts.
    async fn deliver_suspect(&self, item: Item, slot: &Slot) -> Option<Verdict> {
        let crashed = item.past == PriorAttempt::Crashed;
        let attempts = item.row.attempts.saturating_add(u32::from(crashed));
        let error = crashed.then(|| format!("the process ended during attempt {attempts}"));
        let found = self.router.find(&item.row);
        let max_attempts = self.rules(found.ok()).max_attempts;
        // No fallback: should it be what ended the process, it would end every further one.
        if let Some(error) = error.as_ref().filter(|_| attempts >= max_attempts) {
            let error = clean_error(error);
            let failed = Failed::new(&item.row, Some(attempts), None, error.clone());
            self.telemetry.failures.report(Consequence::Dead, failed);
            let change = Change::Dead { attempts, error };
            let verdict = Verdict { row: item.row.id(), expected: item.row.expected(), change };
            return Some(verdict);
        }
        // Rows that have been through a crash run one at a time, so that no innocent one shares the next with its cause.
        let _alone = if attempts > 0 { Some(self.crashes.alone.lock().await) } else { None };
        if let Some(error) = &error {
            let failed = Failed::new(&item.row, Some(attempts), Some(Duration::ZERO), error.clone());
            self.telemetry.failures.report(Consequence::Retried, failed);
        }
        let announced = BegunAttempt { row: item.row.id(), expected: item.row.expected(), attempts, error };
        if !self.crashes.announce(&self.tenure, &announced, &*self.random).await {
            self.decided_about(item.row.seq, None).await;
            return None;
        }
        let row = Arc::new(Row { attempts, ..Row::clone(&item.row) });
        let item = Item { row, ..item };
        if self.deliverer(&item).lost.is_cancelled() {
            // The right to deliver ended during the announcement, and another node may have the event by now. As if the handler had
            // stopped when it was told to: nothing is recorded.
            let change = Change::Retry { attempts, delay: Duration::ZERO, error: None };
            return Some(Verdict { row: item.row.id(), expected: item.row.expected(), change });
        }
        let attempt = self.attempt(&item, found, slot).await;
        self.verdict(&item, found.ok(), attempt, slot).await
    }

    /// Handles an event and, if it has to be tried again, keeps it and the ones behind it waiting, so that none overtakes
    /// it. What it failed of is recorded meanwhile. `None` if the term ends first, and with it this worker.
    async fn deliver_in_place(&self, mut item: Item, slot: &Slot) -> Option<Delivered<'_>> {
        loop {
            let (row, deliverer) = (Arc::clone(&item.row), item.deliverer.clone());
            let mut delivered = self.deliver(Item { row, charge: None, deliverer, ..item }, slot).await;
            let Some(verdict) = delivered.verdicts.next() else { return Some(delivered) };
            let Change::Retry { attempts, delay, error } = verdict.change else {
                return Some(Some(verdict).into());
            };
            if let Some(error) = error.filter(|_| attempts > verdict.expected.attempts) {
                let hold = Verdict { row: item.row.id(), change: Change::Hold { attempts, error }, ..verdict };
                if self.stands(&hold) {
                    self.verdicts.send(hold).await.ok()?;
                }
            }
            if item.past != PriorAttempt::Clean {
                // While it waits it is not being attempted: a crash now would not be its doing.
                self.crashes.withdraw(&self.tenure, &[item.row.id()]).await;
            }
            let row = Arc::new(Row { attempts, ..Row::clone(&item.row) });
            self.ending.run_until_cancelled(tokio::time::sleep(delay)).await?;
            if self.deliverer.lost.is_cancelled() {
                return None;
            }
            item = Item { row, since: Instant::now(), past: PriorAttempt::Clean, ..item };
        }
    }

    /// Calls the handler of one event, with the interceptors around it.
    async fn attempt(&self, item: &Item, found: Result<&Registered, UnroutableReason>, slot: &Slot) -> Attempt {
        match found.map(|registered| &registered.target) {
            Err(why) => Attempt::Unroutable(why),
            Ok(Target::One(handler)) => {
                let limit = self.limit(found.ok());
                let delivery = self.delivery(item);
                let (ran, before) = self.before(item, &delivery, limit, slot).await;
                let kept = (ran > 0).then(|| delivery.clone());
                let attempt = match before {
                    Err(error) => Attempt::Ended(Err(error)),
                    Ok(()) => {
                        let items = std::slice::from_ref(item);
                        match self.handling(items, limit, slot, || handler.handle(delivery)).await {
                            Ok(result) => Attempt::Ended(result),
                            Err(broken) => broken.into(),
                        }
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
                let unanswered = || Attempt::Ended(Err(HandlerError::interrupted("the batch handler was not called")));
                attempts.into_iter().next().unwrap_or_else(unanswered)
            }
        }
    }

    /// Calls a batch handler with the events whose interceptors let them pass, and finds an attempt for each.
    async fn attempt_batch(
        &self,
        handler: &dyn BatchHandler,
        items: &[Item],
        registered: Option<&Registered>,
        slot: &Slot,
    ) -> Vec<Attempt> {
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
                Err(error) => Attempt::Ended(Err(error)),
                Ok(Some(result)) => Attempt::Ended(result),
                Ok(None) => match &broken {
                    Some(broken) => broken.clone().into(),
                    None => {
                        let problem = format!("the batch handler answered for {answered} of {asked} events");
                        Attempt::Ended(Err(HandlerError::interrupted(problem)))
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
    async fn handling<'a, T: Send>(
        &self,
        items: &[Item],
        limit: Option<Duration>,
        slot: &Slot,
        call: impl FnOnce() -> BoxFuture<'a, T> + Send,
    ) -> Result<T, Broken> {
        let headers = items.iter().map(|item| &item.row.headers);
        // Each future is pinned: one that is passed on by value is copied, with all that it holds.
        let called = pin!(guarded(call));
        let called = pin!(self.interceptors.contexts.around(headers, || span(items), called));
        let called = pin!(limited("the handler", items, limit, slot, called));
        let Some(first) = items.first() else { return called.await };
        let waited = items.iter().map(|item| (item.path, item.since));
        self.telemetry.meters.handling(&first.row, waited, called).await
    }

    /// The time limit of a call of this handler, or of what belongs to it.
    fn limit(&self, registered: Option<&Registered>) -> Option<Duration> {
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
        attempt: &Attempt,
        limit: Option<Duration>,
        slot: &Slot,
    ) {
        let after = async {
            match attempt {
                Attempt::Ended(ended) => self.interceptors.after(ran, delivery, ended.as_ref()).await,
                Attempt::Panicked(panic) => {
                    let error = HandlerError::retryable(format!("the handler panicked: {panic}"));
                    self.interceptors.after(ran, delivery, Err(&error)).await;
                }
                Attempt::Unroutable(_) => {}
            }
            Ok(())
        };
        if let Err(broken) = limited("an interceptor", std::slice::from_ref(item), limit, slot, after).await {
            tracing::warn!(id = %delivery.id(), error = %broken, "an interceptor failed after the handler");
        }
    }

    fn delivery(&self, item: &Item) -> Delivery {
        Delivery::new(Arc::clone(&item.row), item.path, Arc::clone(self.deliverer(item))).with_queued_at(item.since)
    }

    fn deliverer<'a>(&'a self, item: &'a Item) -> &'a Arc<DeliveringNode> {
        item.deliverer.as_ref().unwrap_or(&self.deliverer)
    }

    /// Returns the verdict on an event after an attempt, or after its fallback if it would be given up; `None` if it is left in
    /// the table.
    async fn verdict(
        &self,
        item: &Item,
        registered: Option<&Registered>,
        attempt: Attempt,
        slot: &Slot,
    ) -> Option<Verdict> {
        if let Attempt::Ended(Ok(Outcome::Done)) = attempt {
            return Some(is_done(item));
        }
        if self.leaves(item, &attempt) {
            self.in_flight.leave(&item.row);
            return None;
        }
        let called = !is_unroutable(&attempt);
        let verdict = Box::pin(self.decided(item, registered, attempt, slot)).await;
        self.report(item, called, &verdict);
        Some(verdict)
    }

    /// Logs a failure. One of a handler that was told to stop is none: the next owner delivers the event.
    fn report(&self, item: &Item, called: bool, verdict: &Verdict) {
        if self.deliverer(item).lost.is_cancelled() {
            return;
        }
        let row = &item.row;
        let (consequence, next, error) = match &verdict.change {
            Change::Rescued { error, .. } => (Consequence::Rescued, None, error),
            Change::Dead { error, .. } => (Consequence::Dead, None, error),
            Change::Retry { delay, error: Some(error), .. } if !called => (Consequence::Parked, Some(*delay), error),
            Change::Retry { attempts, delay, error: Some(error) } if *attempts > verdict.expected.attempts => {
                (Consequence::Retried, Some(*delay), error)
            }
            _ => return,
        };
        let attempt = called.then(|| row.attempts.saturating_add(1));
        self.telemetry.failures.report(consequence, Failed::new(row, attempt, next, error.clone()));
    }

    /// True if an event that was put off is one of those that are held back in the table anyway, or is left to other nodes from now
    /// on: then its row need not change. An event that its last node may have died of is marked as begun, and has to be recorded.
    fn leaves(&self, item: &Item, attempt: &Attempt) -> bool {
        let Attempt::Ended(Err(error)) = attempt else { return false };
        if item.past != PriorAttempt::Clean || !error.is_deferred() {
            return false;
        }
        self.type_pause.is_paused(&item.row.event_type)
            || error.node_backoff().is_some_and(|delay| self.in_flight.leave_to_others(item.row.seq, delay))
    }

    async fn decided(&self, item: &Item, registered: Option<&Registered>, attempt: Attempt, slot: &Slot) -> Verdict {
        let row = &item.row;
        let verdict = |change| Verdict { row: row.id(), expected: row.expected(), change };
        let waited = is_unroutable(&attempt) && self.unknown.is_over(row).await;
        let Decision { change, given_up } = self.decide(row, registered, attempt, waited);
        let (Change::Dead { attempts, error }, Some(reason)) = (&change, given_up) else {
            return verdict(change);
        };
        // Who was told to stop gives nothing up: the next owner delivers the event.
        if self.deliverer(item).lost.is_cancelled() {
            return verdict(change);
        }
        let (attempts, mut error) = (*attempts, error.clone());
        let headers = || std::iter::once(&row.headers);
        let (items, limit) = (std::slice::from_ref(item), self.limit(registered));
        if let Some(fallback) = registered.and_then(|registered| self.router.fallback(registered)) {
            let failure = Failure::new(attempts, error.clone(), reason);
            let span = || tracing::debug_span!("fallback", event_id = %row.event_id, event_type = &*row.event_type);
            let recovering = fall_back(fallback, self.delivery(item), failure);
            let recovering = self.interceptors.contexts.around(headers(), span, recovering);
            let recovered = limited("the fallback", items, limit, slot, async { Ok(recovering.await) }).await;
            match recovered.unwrap_or_else(|broken| Err(broken.to_string())) {
                Ok(()) => return verdict(Change::Rescued { attempts, error }),
                Err(problem) => error = clean_error(&format!("{problem}; the handler had failed before: {error}")),
            }
        }
        if let Some(observer) = self.router.on_dead(registered) {
            let failure = Failure::new(attempts, error.clone(), reason);
            let span = || tracing::debug_span!("on_dead", event_id = %row.event_id, event_type = &*row.event_type);
            let observing = observe(observer, self.delivery(item), failure);
            let observing = self.interceptors.contexts.around(headers(), span, observing);
            let observed = limited("the on_dead observer", items, limit, slot, async { Ok(observing.await) }).await;
            if let Some(error) = observed.map_or_else(|broken| Some(broken.to_string()), Result::err) {
                tracing::warn!(
                    id = %row.event_id,
                    event_type = &*row.event_type,
                    error,
                    "the on_dead observer failed; the event is DEAD all the same"
                );
            }
        }
        verdict(Change::Dead { attempts, error })
    }

    /// The rules for the failures of a handler, or of none.
    fn rules<'a>(&'a self, registered: Option<&'a Registered>) -> Rules<'a> {
        let own = registered.map(|registered| &registered.retry);
        Rules {
            max_attempts: own.and_then(Retry::attempts).unwrap_or(self.max_attempts),
            policy: own.and_then(Retry::policy).unwrap_or(&*self.policy),
            errors: self.router.errors(registered),
            unroutable: self.unroutable,
            waited: false,
            random: &*self.random,
        }
    }

    /// Decides about the row. The policy, the filter and the error's text are the user's code: one that panics must not
    /// cost the worker, or the row would be held for ever.
    fn decide(&self, row: &Row, registered: Option<&Registered>, attempt: Attempt, waited: bool) -> Decision {
        let rules = Rules { waited, ..self.rules(registered) };
        catch_unwind(AssertUnwindSafe(|| decide(row, attempt, &rules))).unwrap_or_else(|panic| {
            let attempt =
                Attempt::Panicked(format!("{} (in a retry policy, a filter or an error's text)", message(&*panic)));
            decide(row, attempt, &Rules { policy: &ExponentialBackoff::default(), ..rules })
        })
    }
}

/// True if nobody takes the event: no handler, or no destination that its handler knows.
fn is_unroutable(attempt: &Attempt) -> bool {
    match attempt {
        Attempt::Unroutable(_) => true,
        Attempt::Ended(Err(error)) => error.is_unroutable(),
        Attempt::Ended(Ok(_)) | Attempt::Panicked(_) => false,
    }
}

/// The outcome of one turn of a worker.
struct Delivered<'a> {
    verdicts: Verdicts,
    /// Events of a batch that have not been handled. They are decided about once the verdicts on the others are on their way: fallbacks take
    /// their time, and the end of a term may cut it short.
    undecided: Vec<Undecided<'a>>,
    /// The worker that the call takes up until all of them are decided about.
    call: Option<Charge>,
}

impl From<Option<Verdict>> for Delivered<'_> {
    fn from(verdict: Option<Verdict>) -> Self {
        Self { verdicts: Verdicts::One(verdict), undecided: Vec::new(), call: None }
    }
}

/// An event after an attempt that has not handled it.
struct Undecided<'a> {
    item: Item,
    registered: Option<&'a Registered>,
    attempt: Attempt,
}

fn is_done(item: &Item) -> Verdict {
    Verdict { row: item.row.id(), expected: item.row.expected(), change: Change::Done }
}

/// The verdicts of one turn; of a single event without an allocation.
#[derive(Debug)]
enum Verdicts {
    One(Option<Verdict>),
    Many(std::vec::IntoIter<Verdict>),
}

impl Iterator for Verdicts {
    type Item = Verdict;

    fn next(&mut self) -> Option<Verdict> {
        match self {
            Self::One(verdict) => verdict.take(),
            Self::Many(verdicts) => verdicts.next(),
        }
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

/// Calls a fallback; an error says why the event is DEAD all the same.
async fn fall_back(fallback: &dyn Fallback, delivery: Delivery, failure: Failure) -> Result<(), String> {
    let recovering = || -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            match fallback.recover(delivery, failure).await {
                Ok(Outcome::Done) => Ok(()),
                Ok(Outcome::Dead(reason)) => Err(format!("the fallback gave it up: {reason}")),
                Ok(Outcome::Defer(_)) => Err("the fallback deferred it, and there is no further attempt".to_owned()),
                Err(error) => Err(format!("the fallback failed: {}", error.text())),
            }
        })
    };
    guarded(recovering).await.unwrap_or_else(|panic| Err(format!("the fallback panicked: {panic}")))
}

/// Calls an observer of DEAD events; an error says how it failed.
async fn observe(observer: &dyn OnDead, delivery: Delivery, failure: Failure) -> Result<(), String> {
    let observing = || -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { observer.observe(delivery, failure).await.map_err(|error| error.text()) })
    };
    guarded(observing).await.unwrap_or_else(|panic| Err(format!("it panicked: {panic}")))
}

/// The reason why a call gave no answer.
#[derive(Debug, Clone)]
enum Broken {
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

impl From<Broken> for Attempt {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Panicked(panic) => Self::Panicked(panic),
            timed_out @ Broken::TimedOut { .. } => Self::Ended(Err(HandlerError::interrupted(timed_out.to_string()))),
        }
    }
}

/// Waits for a call of the user's code, which stands in `slot` meanwhile, for as long as it may take. One that ends at once
/// needs no timer.
async fn limited<T>(
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

/// Calls a handler and waits for it; a panic, of the call or of its future, comes back as what it said.
///
/// A panic unwinds through the handler's own state only: the future is dropped and never polled again.
async fn guarded<'a, T>(call: impl FnOnce() -> BoxFuture<'a, T>) -> Result<T, String> {
    AssertUnwindSafe(async { call().await }).catch_unwind().await.map_err(|panic| message(&*panic))
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
