//! Limits of a handler: how many of its calls run at once, and how many of its events begin in a time. Both hold for a node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use metrics::{Gauge, Unit};
use pillarbox_core::lock::Mutex;
use tokio::time::Instant;

use super::{Rate, Router};
use crate::observe::MetricsFactory;

/// A limited handler, as it is now. See [`Outbox::limits`](crate::run::Outbox::limits).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerLimit {
    /// The type of its events; `None` if it takes all that have no other handler.
    pub event_type: Option<String>,
    /// Its name, if it has one.
    pub handler: Option<String>,
    /// The number of its calls that run.
    pub running: usize,
    /// The number of its calls that may run at once.
    pub concurrency: Option<usize>,
    /// The number of its events that may begin in a time.
    pub rate: Option<Rate>,
    /// True if events in memory wait since it has reached one of them.
    pub is_reached: bool,
}

/// The limits of a handler, and what it has used of them.
#[derive(Debug)]
pub(crate) struct Limiter {
    concurrency: Option<usize>,
    running: AtomicUsize,
    rate: Option<(Rate, Bucket)>,
    /// True from when an event was held back until one is not.
    holds_back: AtomicBool,
}

impl Limiter {
    /// `None` for a handler without limits.
    pub(super) fn new(concurrency: Option<usize>, rate: Option<Rate>) -> Option<Self> {
        let rate = rate.map(|rate| (rate, Bucket::new(rate)));
        (concurrency.is_some() || rate.is_some()).then(|| Self {
            concurrency,
            running: AtomicUsize::new(0),
            rate,
            holds_back: AtomicBool::new(false),
        })
    }

    /// True if an event may begin.
    pub(crate) fn lets_begin(&self, now: Instant) -> bool {
        let holds_back = self.is_busy() || self.free_at(now).is_some();
        self.holds_back.store(holds_back, Relaxed);
        !holds_back
    }

    /// True if it has a rate.
    pub(crate) fn has_rate(&self) -> bool {
        self.rate.is_some()
    }

    fn is_busy(&self) -> bool {
        self.concurrency.is_some_and(|most| self.running.load(Relaxed) >= most)
    }

    /// The time from which on its rate allows an event that it does not allow now.
    fn free_at(&self, now: Instant) -> Option<Instant> {
        self.rate.as_ref().and_then(|(_, bucket)| bucket.free_at(now))
    }

    /// The time at which an event may begin that has to wait for that time alone.
    pub(crate) fn opens_at(&self, now: Instant) -> Option<Instant> {
        self.free_at(now).filter(|_| !self.is_busy())
    }

    /// A call begins, with one event.
    pub(crate) fn begin(&self) {
        self.running.fetch_add(1, Relaxed);
        self.take(1, Instant::now);
    }

    /// A call has ended.
    pub(crate) fn end(&self) {
        self.running.fetch_sub(1, Relaxed);
    }

    /// Takes up to `most` further events into a call that begins; returns how many its rate allows.
    pub(crate) fn take(&self, most: usize, now: impl FnOnce() -> Instant) -> usize {
        self.rate.as_ref().map_or(most, |(_, bucket)| bucket.take(most, now()))
    }

    /// So many of the events that were taken do not begin.
    pub(crate) fn refund(&self, events: usize) {
        if let Some((_, bucket)) = &self.rate {
            bucket.refund(events);
        }
    }

    /// Waits until its rate allows an event, and takes it: where one event follows the other.
    pub(crate) async fn paced(&self) {
        while let Some(free_at) = self.free_at(Instant::now()) {
            self.holds_back.store(true, Relaxed);
            tokio::time::sleep_until(free_at).await;
        }
        self.holds_back.store(false, Relaxed);
        self.take(1, Instant::now);
    }

    /// True if events wait since one of the limits is reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.holds_back.load(Relaxed)
    }

    /// Nothing waits any more.
    fn idle(&self) {
        self.holds_back.store(false, Relaxed);
    }
}

/// A handler that has limits.
#[derive(Debug)]
pub(crate) struct Limited<'a> {
    /// The number of the handler.
    pub(crate) number: usize,
    /// The type of its events; `None` if it takes all others.
    pub(crate) event_type: Option<&'a str>,
    pub(crate) handler: Option<&'a str>,
    pub(crate) limiter: &'a Arc<Limiter>,
}

/// All limited handlers of an outbox, for its metrics and its API.
#[derive(Debug, Default)]
pub(crate) struct LimitedHandlers(Vec<LimitedHandler>);

#[derive(Debug)]
struct LimitedHandler {
    event_type: Option<String>,
    handler: Option<String>,
    limiter: Arc<Limiter>,
    gauge: Gauge,
}

impl LimitedHandlers {
    pub(crate) fn new(router: &Router, metrics_factory: &MetricsFactory<'_>) -> Self {
        let limited = |Limited { event_type, handler, limiter, .. }: Limited<'_>| {
            let labelled = metrics_factory.with("event_type", event_type.unwrap_or("other"));
            let help = "1 while events in memory wait since their handler has reached its limit, else 0.";
            LimitedHandler {
                event_type: event_type.map(str::to_owned),
                handler: handler.map(str::to_owned),
                limiter: Arc::clone(limiter),
                gauge: labelled.with("handler", handler.unwrap_or_default()).gauge(
                    "handler.limited",
                    Unit::Count,
                    help,
                ),
            }
        };
        Self(router.limiters().into_iter().map(limited).collect())
    }

    /// Sets the gauges.
    pub(crate) fn report(&self) {
        for one in &self.0 {
            one.gauge.set(f64::from(u8::from(one.limiter.is_reached())));
        }
    }

    /// Nothing is in memory any more.
    pub(crate) fn inactive(&self) {
        self.0.iter().for_each(|one| one.limiter.idle());
        self.report();
    }

    /// Each of them, as it is now.
    pub(crate) fn status(&self) -> Vec<HandlerLimit> {
        let status = |one: &LimitedHandler| HandlerLimit {
            event_type: one.event_type.clone(),
            handler: one.handler.clone(),
            running: one.limiter.running.load(Relaxed),
            concurrency: one.limiter.concurrency,
            rate: one.limiter.rate.as_ref().map(|(rate, _)| *rate),
            is_reached: one.limiter.is_reached(),
        };
        self.0.iter().map(status).collect()
    }
}

/// The used part of a rate: the time at which all events so far are paid for. It runs ahead of the clock by no more than the burst.
#[derive(Debug)]
struct Bucket {
    interval: Duration,
    ahead: Duration,
    paid_until: Mutex<Option<Instant>>,
}

impl Bucket {
    fn new(rate: Rate) -> Self {
        let (interval, ahead) = rate.interval();
        Self { interval, ahead, paid_until: Mutex::default() }
    }

    fn free_at(&self, now: Instant) -> Option<Instant> {
        let paid_until = (*self.paid_until.lock())?;
        // Later than now, so that what is subtracted from it leaves a time after the start of the clock.
        (paid_until > now + self.ahead).then(|| paid_until - self.ahead)
    }

    /// Takes what is allowed of `most` events.
    fn take(&self, most: usize, now: Instant) -> usize {
        let mut paid_until = self.paid_until.lock();
        let from = paid_until.map_or(now, |until| until.max(now));
        let Some(room) = (now + self.ahead).checked_duration_since(from) else { return 0 };
        let allowed = usize::try_from(room.as_nanos() / self.interval.as_nanos()).unwrap_or(usize::MAX);
        let taken = most.min(allowed.saturating_add(1));
        *paid_until = Some(from + self.interval.saturating_mul(u32::try_from(taken).unwrap_or(u32::MAX)));
        taken
    }

    fn refund(&self, events: usize) {
        let mut paid_until = self.paid_until.lock();
        let price = self.interval.saturating_mul(u32::try_from(events).unwrap_or(u32::MAX));
        *paid_until = paid_until.and_then(|until| until.checked_sub(price));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn a_burst_is_taken_at_once_and_then_one_event_in_each_interval() {
        let (start, bucket) = (Instant::now(), Bucket::new(Rate::per_second(100).burst(3)));
        // milliseconds: wanted, taken, and when the next is free
        for (at, wanted, taken, next) in [
            (0, 1, 1, None),
            (0, 5, 2, Some(10)),
            (9, 1, 0, Some(10)),
            (10, 1, 1, Some(20)),
            (35, 5, 2, Some(40)),
            (1000, 2, 2, None),
            (1000, 9, 1, Some(1010)),
        ] {
            let now = start + at * MILLI;
            assert_eq!(bucket.take(wanted, now), taken, "at {at} ms");
            assert_eq!(bucket.free_at(now), next.map(|next: u32| start + next * MILLI), "at {at} ms");
        }
        bucket.refund(2);
        assert_eq!(bucket.take(9, start + 1000 * MILLI), 2, "what was refunded");
    }

    #[test]
    fn a_high_rate_has_a_burst_that_a_timer_can_keep_up_with() {
        for (rate, interval, burst) in [
            (Rate::per_second(100), 10 * MILLI, 1),
            (Rate::per_second(1000), MILLI, 10),
            (Rate::per_minute(60), 1000 * MILLI, 1),
            (Rate::new(1_000_000, MILLI), Duration::from_nanos(1), 1_000_000),
            (Rate::per_second(1000).burst(1), MILLI, 1),
        ] {
            assert_eq!(rate.interval(), (interval, interval * (burst - 1)), "{rate}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_after_the_other_is_paced() {
        let limiter = Limiter::new(None, Some(Rate::per_second(10))).expect("it has a limit");
        let start = Instant::now();
        for event in 0..5 {
            limiter.paced().await;
            assert_eq!(start.elapsed(), event * 100 * MILLI);
        }
    }
}
