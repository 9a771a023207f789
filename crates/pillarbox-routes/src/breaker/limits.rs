use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout_at};

use pillarbox_core::lock::Mutex;

/// The limits of a destination: the calls that may be on their way at once, and the messages in a second.
#[derive(Debug)]
pub(crate) struct Limits {
    calls: Option<Semaphore>,
    rate: Option<Rate>,
}

/// Messages in a second.
///
/// Batches wait in turn, and only the first of them waits for its time. A batch is charged when it begins to be sent: one that gives up
/// while it waits has cost nothing, so that what waits cannot use the rate up. A batch begins as soon as the earlier ones are paid for, and
/// is paid for afterwards, so that one of more messages than a second's is sent as well.
#[derive(Debug)]
struct Rate {
    each: Duration,
    slot: Semaphore,
    usage: Mutex<RateUsage>,
}

#[derive(Debug, Default)]
struct RateUsage {
    /// The time at which all messages so far are paid for.
    paid: Option<Instant>,
    /// True if a batch was sent away since the last one was sent.
    is_wanted: bool,
}

/// No slot for a batch yet: it stays away for at least this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NotNow(pub(crate) Duration);

/// A batch's place under the limits. Dropped before anything [is sent](Self::spend), it has cost nothing.
#[derive(Debug)]
pub(crate) struct SendSlot<'a> {
    call: Option<SemaphorePermit<'a>>,
    rate: Option<RateSlot<'a>>,
}

#[derive(Debug)]
struct RateSlot<'a> {
    rate: &'a Rate,
    /// The time from which on its messages count.
    from: Instant,
    _slot: SemaphorePermit<'a>,
}

/// Permission to send, until it is dropped.
#[derive(Debug)]
pub(crate) struct SendPermit<'a> {
    _call: Option<SemaphorePermit<'a>>,
}

/// The time that a batch stays away after it has waited in vain for a slot.
const CROWDED_DELAY: Duration = Duration::from_secs(1);
/// The delay for which the rate makes up: that of a batch which was sent away and comes back later than it could have been sent.
const MAX_CATCH_UP: Duration = Duration::from_secs(1);

impl Limits {
    /// `calls` at once and `rate` messages in a second, if given; neither is zero.
    pub(crate) fn new(calls: Option<usize>, rate: Option<u32>) -> Self {
        Self { calls: calls.map(Semaphore::new), rate: rate.map(Rate::new) }
    }

    /// Waits for the slot of a batch, or says how long to stay away where that takes longer than `max_wait`: so that waiting batches
    /// neither occupy all workers for long nor come near the time limit of a call. It may be dropped while it waits.
    pub(crate) async fn slot(&self, max_wait: Duration) -> Result<SendSlot<'_>, NotNow> {
        let deadline = Instant::now() + max_wait;
        let call = match &self.calls {
            None => None,
            // It is never closed.
            Some(calls) => timeout_at(deadline, calls.acquire()).await.map_err(|_| NotNow(CROWDED_DELAY))?.ok(),
        };
        let rate = match &self.rate {
            None => None,
            Some(rate) => rate.slot(deadline).await?,
        };
        Ok(SendSlot { call, rate })
    }
}

impl<'a> SendSlot<'a> {
    /// Charges the messages as sending begins, and frees the slot for the next batch.
    pub(crate) fn spend(self, messages: usize) -> SendPermit<'a> {
        if let Some(RateSlot { rate, from, _slot }) = self.rate {
            rate.charge(messages, from);
        }
        SendPermit { _call: self.call }
    }
}

impl Rate {
    fn new(messages: u32) -> Self {
        Self { each: Duration::from_secs(1) / messages.max(1), slot: Semaphore::new(1), usage: Mutex::default() }
    }

    async fn slot(&self, deadline: Instant) -> Result<Option<RateSlot<'_>>, NotNow> {
        let asked = Instant::now();
        // If that is too late already, it need not wait for those before it.
        self.begins(asked, deadline)?;
        let Ok(slot) = timeout_at(deadline, self.slot.acquire()).await else {
            return Err(self.usage.lock().send_away(deadline).max(NotNow(CROWDED_DELAY)));
        };
        let from = self.begins(asked, deadline)?;
        sleep_until(from).await;
        // It is never closed.
        Ok(slot.ok().map(|slot| RateSlot { rate: self, from, _slot: slot }))
    }

    /// The time from which on the messages of a batch count that asked for its slot at `asked`, and before which they are not sent.
    fn begins(&self, asked: Instant, deadline: Instant) -> Result<Instant, NotNow> {
        let mut usage = self.usage.lock();
        let from = usage.begins(asked);
        if from > deadline { Err(usage.send_away(Instant::now())) } else { Ok(from) }
    }

    fn charge(&self, messages: usize, from: Instant) {
        let cost = self.each.saturating_mul(u32::try_from(messages).unwrap_or(u32::MAX));
        *self.usage.lock() = RateUsage { paid: Some(from + cost), is_wanted: false };
    }
}

impl RateUsage {
    fn begins(&self, asked: Instant) -> Instant {
        match self.paid {
            None => asked,
            // It was sent away, and is late by what it took to come back.
            Some(paid) if self.is_wanted && asked <= paid + MAX_CATCH_UP => paid,
            Some(paid) => paid.max(asked),
        }
    }

    /// A batch is sent away until the earlier ones are paid for.
    fn send_away(&mut self, now: Instant) -> NotNow {
        self.is_wanted = true;
        NotNow(self.paid.map_or(Duration::ZERO, |paid| paid.saturating_duration_since(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_WAIT: Duration = Duration::from_secs(1);

    /// The time since `start` at which messages were sent, in milliseconds.
    async fn sent(limits: &Limits, messages: usize, start: Instant) -> Result<u128, NotNow> {
        drop(limits.slot(MAX_WAIT).await?.spend(messages));
        Ok(start.elapsed().as_millis())
    }

    fn not_now(millis: u64) -> Result<u128, NotNow> {
        Err(NotNow(Duration::from_millis(millis)))
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_messages_go_in_a_second() {
        let (limits, start) = (Limits::new(None, Some(100)), Instant::now());
        for (messages, at) in [(50, 0), (100, 500), (1, 1500), (1, 1510), (300, 1520)] {
            assert_eq!(sent(&limits, messages, start).await, Ok(at), "{messages}");
        }
        assert_eq!(sent(&limits, 1, start).await, not_now(3000), "it is told at once");
        sleep_until(start + Duration::from_millis(4000)).await;
        assert_eq!(sent(&limits, 1, start).await, Ok(4520), "what was sent away has cost nothing");
        sleep_until(start + Duration::from_secs(60)).await;
        for at in [60_000, 60_010] {
            assert_eq!(sent(&limits, 1, start).await, Ok(at), "what was not sent is not made up for");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn events_sent_away_make_up_for_the_way_back() {
        let (limits, start) = (Limits::new(None, Some(10)), Instant::now());
        assert_eq!(sent(&limits, 30, start).await, Ok(0));
        for (back, at) in [(3400, 3400), (6999, 6999), (10_001, 10_001)] {
            assert!(sent(&limits, 30, start).await.is_err());
            sleep_until(start + Duration::from_millis(back)).await;
            assert_eq!(sent(&limits, 30, start).await, Ok(at));
        }
        // The last one came later than a second, so that its time is lost: else the rate would not hold for a while afterwards.
        assert_eq!(sent(&limits, 1, start).await, not_now(3000));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_give_up_waiting_hold_up_nobody() {
        let (limits, start) = (Limits::new(Some(5), Some(10)), Instant::now());
        assert_eq!(sent(&limits, 8, start).await, Ok(0));
        for _ in 0..20 {
            let waits = tokio::time::timeout(Duration::from_millis(10), limits.slot(MAX_WAIT)).await;
            assert!(waits.is_err());
        }
        let late = limits.slot(MAX_WAIT);
        tokio::pin!(late);
        assert!(futures_util::poll!(late.as_mut()).is_pending(), "the first of them");
        let (one, other) = tokio::join!(sent(&limits, 1, start), async {
            sleep_until(start + Duration::from_millis(500)).await;
            sent(&limits, 1, start).await
        });
        assert_eq!(
            (one, other),
            (Err(NotNow(MAX_WAIT)), Err(NotNow(MAX_WAIT))),
            "it was not asked again, and has its turn"
        );
        drop(late.await.expect("it has its turn"));
        assert_eq!(sent(&limits, 1, start).await, Ok(start.elapsed().as_millis()), "nor was anything sent");
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_calls_are_limited_and_a_batch_that_waits_too_long_is_sent_away() {
        let limits = Limits::new(Some(1), None);
        let first = limits.slot(MAX_WAIT).await.expect("free").spend(1);
        let second = limits.slot(MAX_WAIT);
        tokio::pin!(second);
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        let start = Instant::now();
        assert_eq!(limits.slot(MAX_WAIT).await.err(), Some(NotNow(CROWDED_DELAY)));
        assert_eq!(start.elapsed(), MAX_WAIT);
        drop(first);
        drop(second.await.expect("it came first"));
        assert!(limits.slot(MAX_WAIT).await.is_ok(), "free again");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_call_and_for_the_rate_takes_no_longer_than_one_of_them() {
        let (limits, start) = (Limits::new(Some(1), Some(1)), Instant::now());
        let first = limits.slot(MAX_WAIT).await.expect("free").spend(1);
        let ends = async {
            sleep_until(start + Duration::from_millis(600)).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(sent(&limits, 2, start), ends);
        assert_eq!(second, Ok(1000));
        assert_eq!(sent(&limits, 1, start).await, not_now(2000));
    }
}
