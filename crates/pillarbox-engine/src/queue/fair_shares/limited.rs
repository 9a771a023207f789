//! Classes whose handlers have limits of their own.

use tokio::time::Instant;

use super::{Class, FairShares};
use crate::handlers::Limiter;

impl FairShares {
    /// The limits of the handler of a class, if it has any.
    pub(super) fn limiter(&self, class: Class) -> Option<&Limiter> {
        self.classes.limiter(class)
    }

    /// True if handlers have limits of their own.
    pub(in crate::queue) fn has_limits(&self) -> bool {
        self.classes.have_limits()
    }

    /// True if the handler of a class has a rate.
    pub(in crate::queue) fn has_rate(&self, class: Class) -> bool {
        self.limiter(class).is_some_and(Limiter::has_rate)
    }

    /// The first time at which an event of one of these classes may begin that has to wait for the rate of its handler alone.
    pub(in crate::queue) fn opens_at(&self, classes: impl Iterator<Item = Class>) -> Option<Instant> {
        if !self.has_limits() {
            return None;
        }
        let now = Instant::now();
        classes.filter_map(|class| self.limiter(class)?.opens_at(now)).min()
    }

    /// Waits until there may be something for a worker, which may be at a certain time. One worker at a time looks at the clock: it wakes
    /// the next one if there is more.
    pub(in crate::queue) async fn wait_for_item(&self, opens_at: Option<Instant>) {
        match opens_at {
            None => self.items.notified().await,
            Some(opens_at) => Box::pin(self.wait_until(opens_at)).await,
        }
    }

    async fn wait_until(&self, opens_at: Instant) {
        let is_first = {
            let mut alarm = self.alarm.lock();
            let is_first = alarm.is_none_or(|other| opens_at < other);
            if is_first {
                *alarm = Some(opens_at);
            }
            is_first
        };
        if !is_first {
            return self.items.notified().await;
        }
        let _alarm = Alarm { shares: self, at: opens_at };
        tokio::select! {
            () = self.items.notified() => {}
            () = tokio::time::sleep_until(opens_at) => {}
        }
    }

    /// Takes up to `most` further events of a class into a call; returns how many the rate of its handler allows.
    pub(in crate::queue) fn take(&self, class: Class, most: usize) -> usize {
        self.limiter(class).map_or(most, |limiter| limiter.take(most, Instant::now))
    }

    /// So many of the events that were taken do not begin.
    pub(in crate::queue) fn refund(&self, class: Class, events: usize) {
        if let Some(limiter) = self.limiter(class) {
            limiter.refund(events);
        }
    }
}

/// The worker that looks at the clock; once it does not any more, another one does.
struct Alarm<'a> {
    shares: &'a FairShares,
    at: Instant,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.shares.alarm.lock().take_if(|at| *at == self.at);
    }
}
