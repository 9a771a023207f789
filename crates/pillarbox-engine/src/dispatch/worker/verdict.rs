//! From an attempt to a verdict: what becomes of an event, and the fallbacks and observers that have a say in it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pillarbox_core::handle::{BoxFuture, Delivery, Failure, Fallback, OnDead, Outcome, Path};
use pillarbox_core::ownership::{NodeMode, PriorAttempt};
use pillarbox_core::retry::{ExponentialBackoff, Retry};
use pillarbox_core::row::{Change, Verdict};
use pillarbox_core::store::Row;

use super::attempt::limited;
use super::{Worker, verdict_on};
use crate::handlers::{Registered, guarded};
use crate::observe::{Consequence, Failed, Slot, clean_error, panic_message};
use crate::queue::Item;
use crate::settle::{AttemptEnd, Decision, Rules, decide_row, uncounted};

impl Worker {
    /// Concludes a delivery: returns the verdict on an event after an attempt, or after its fallback if it would be given up; `None` if
    /// there is nothing to record: it is left in the table, or its handler has recorded it.
    pub(super) async fn conclude(
        &self,
        item: &Item,
        registered: Option<&Registered>,
        attempt: AttemptEnd,
        slot: &Slot,
    ) -> Option<Verdict> {
        let attempt = match self.positions.delivered(&item.row, attempt) {
            Ok(change) => return Some(verdict_on(&item.row, change)),
            Err(attempt) => attempt,
        };
        match attempt {
            AttemptEnd::Recorded => {
                self.recorded(&item.row);
                return None;
            }
            // In order it keeps its place, and its worker ends with the term: what is behind it would overtake it.
            AttemptEnd::NotBegun if self.tenure.mode != NodeMode::Ordered => {
                self.leave_uncalled(&item.row).await;
                return None;
            }
            _ => {}
        }
        if self.leaves(item, &attempt) {
            self.in_flight.leave_in_table(&item.row);
            return None;
        }
        let called = !is_unroutable(&attempt);
        let change = Box::pin(self.decide(item, registered, attempt, slot)).await;
        let verdict = verdict_on(&item.row, change);
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

    /// True if an event that was deferred is one of those that are held back in the table anyway, or is left to other nodes from now
    /// on: then its row need not change. An event that its last node may have died of is marked as begun, and has to be recorded.
    fn leaves(&self, item: &Item, attempt: &AttemptEnd) -> bool {
        let AttemptEnd::Ended(Err(error)) = attempt else { return false };
        if item.prior_attempt != PriorAttempt::Clean || !error.is_deferred() {
            return false;
        }
        self.type_pause.is_paused(item.row.event.event_type())
            || error.node_backoff().is_some_and(|delay| self.in_flight.leave_to_others(item.row.seq, uncounted(delay)))
    }

    /// Decides what becomes of a row, with its handler's fallback and observer if it would be given up.
    async fn decide(&self, item: &Item, registered: Option<&Registered>, attempt: AttemptEnd, slot: &Slot) -> Change {
        let row = &item.row;
        // One from memory was written a moment ago, and stamped by this host's clock.
        let waited = is_unroutable(&attempt) && item.path != Path::Hot && self.park_limit.has_passed(row).await;
        let Decision { change, given_up } = self.decide_guarded(row, registered, attempt, waited);
        let (Change::Dead { attempts, error }, Some(reason)) = (&change, given_up) else { return change };
        // A node that was told to stop gives nothing up: the next owner delivers the event.
        if self.deliverer(item).lost.is_cancelled() {
            return change;
        }
        let (attempts, mut error) = (*attempts, error.clone());
        let limit = self.limit(registered);
        if let Some(fallback) = registered.and_then(|registered| self.router.fallback(registered)) {
            let failure = Failure::new(attempts, error.clone(), reason);
            match self.run_fallback(fallback, item, limit, failure, slot).await {
                Ok(()) => return Change::Rescued { attempts, error },
                Err(problem) => error = clean_error(&format!("{problem}; the handler had failed before: {error}")),
            }
        }
        if let Some(observer) = self.router.on_dead(registered) {
            let failure = Failure::new(attempts, error.clone(), reason);
            self.notify_dead(observer, item, limit, failure, slot).await;
        }
        Change::Dead { attempts, error }
    }

    /// Calls a fallback within a time limit; an error says why the event is DEAD all the same.
    async fn run_fallback(
        &self,
        fallback: &dyn Fallback,
        item: &Item,
        limit: Option<Duration>,
        failure: Failure,
        slot: &Slot,
    ) -> Result<(), String> {
        let event = &item.row.event;
        let headers = std::iter::once(event.headers());
        let span = || tracing::debug_span!("fallback", event_id = event.id().as_str(), event_type = event.event_type());
        let recovering = fall_back(fallback, self.delivery(item), failure);
        let recovering = self.interceptors.contexts.around(headers, span, recovering);
        let items = std::slice::from_ref(item);
        let recovered = limited("the fallback", items, limit, slot, async { Ok(recovering.await) }).await;
        recovered.unwrap_or_else(|broken| Err(broken.to_string()))
    }

    /// Calls an observer of DEAD events within a time limit, and logs if it fails.
    async fn notify_dead(
        &self,
        observer: &dyn OnDead,
        item: &Item,
        limit: Option<Duration>,
        failure: Failure,
        slot: &Slot,
    ) {
        let event = &item.row.event;
        let headers = std::iter::once(event.headers());
        let span = || tracing::debug_span!("on_dead", event_id = event.id().as_str(), event_type = event.event_type());
        let observing = observe(observer, self.delivery(item), failure);
        let observing = self.interceptors.contexts.around(headers, span, observing);
        let items = std::slice::from_ref(item);
        let observed = limited("the on_dead observer", items, limit, slot, async { Ok(observing.await) }).await;
        if let Some(error) = observed.map_or_else(|broken| Some(broken.to_string()), Result::err)
            && let Some(events) = self.complaints.report(1)
        {
            tracing::warn!(
                events,
                event_id = event.id().as_str(),
                event_type = event.event_type(),
                handler = item.row.handler.as_deref(),
                error,
                "the on_dead observer failed; the event is DEAD all the same"
            );
        }
    }

    /// The rules for the failures of a handler, or of none.
    pub(super) fn rules<'a>(&'a self, registered: Option<&'a Registered>) -> Rules<'a> {
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
    fn decide_guarded(
        &self,
        row: &Row,
        registered: Option<&Registered>,
        attempt: AttemptEnd,
        waited: bool,
    ) -> Decision {
        let rules = Rules { waited, ..self.rules(registered) };
        catch_unwind(AssertUnwindSafe(|| decide_row(row, attempt, &rules))).unwrap_or_else(|panic| {
            let attempt = AttemptEnd::Panicked(format!(
                "{} (in a retry policy, a filter or an error's text)",
                panic_message(&*panic)
            ));
            decide_row(row, attempt, &Rules { policy: &ExponentialBackoff::default(), ..rules })
        })
    }
}

/// True if nobody takes the event: no handler, or no destination that its handler knows.
fn is_unroutable(attempt: &AttemptEnd) -> bool {
    match attempt {
        AttemptEnd::Unroutable(_) => true,
        AttemptEnd::Ended(Err(error)) => error.is_unroutable(),
        AttemptEnd::Ended(Ok(_))
        | AttemptEnd::NotBegun
        | AttemptEnd::Recorded
        | AttemptEnd::CommitUncertain(_)
        | AttemptEnd::Panicked(_) => false,
    }
}

/// Calls a fallback; an error says why the event is DEAD all the same.
async fn fall_back(fallback: &dyn Fallback, delivery: Delivery, failure: Failure) -> Result<(), String> {
    let recovering = || -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            match fallback.recover(delivery, failure).await {
                Ok(Outcome::Done | Outcome::DeliveredAs(_)) => Ok(()),
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
