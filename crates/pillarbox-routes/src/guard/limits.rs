use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout};

use pillarbox_core::lock::Mutex;

/// The limits of a destination: the calls that may be on their way at once, and the messages in a second.
#[derive(Debug)]
pub(crate) struct Limits {
    calls: Option<Semaphore>,
    rate: Option<Rate>,
}

/// Messages in a second, as the moment from which on the next may be sent.
#[derive(Debug)]
struct Rate {
    each: Duration,
    next: Mutex<Option<Instant>>,
}

/// It is not its turn for at least this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotNow(pub(crate) Duration);

/// Leave to send, until it is dropped.
#[derive(Debug)]
pub(crate) struct Leave<'a> {
    _permit: Option<SemaphorePermit<'a>>,
}

/// The time that a batch stays away after it has waited in vain for its turn.
const CROWDED: Duration = Duration::from_secs(1);

impl Limits {
    /// `calls` at once and `rate` messages in a second, if given; neither is zero.
    pub(crate) fn new(calls: Option<usize>, rate: Option<u32>) -> Self {
        let rate = rate.map(|rate| Rate { each: Duration::from_secs(1) / rate.max(1), next: Mutex::default() });
        Self { calls: calls.map(Semaphore::new), rate }
    }

    /// Waits until `messages` may be sent. With `patience`, it says so where that takes longer, so that those who wait do not
    /// occupy all workers for long.
    pub(crate) async fn leave(&self, messages: usize, patience: Option<Duration>) -> Result<Leave<'_>, NotNow> {
        let permit = match (&self.calls, patience) {
            (None, _) => None,
            // It is never closed.
            (Some(calls), None) => calls.acquire().await.ok(),
            (Some(calls), Some(patience)) => {
                timeout(patience, calls.acquire()).await.map_err(|_| NotNow(CROWDED))?.ok()
            }
        };
        if let Some(rate) = &self.rate {
            let at = rate.reserve(messages, Instant::now(), patience).map_err(NotNow)?;
            sleep_until(at).await;
        }
        Ok(Leave { _permit: permit })
    }
}

impl Rate {
    /// Reserves the time at which these messages may be sent, or returns the wait until then if it is too long.
    fn reserve(&self, messages: usize, now: Instant, patience: Option<Duration>) -> Result<Instant, Duration> {
        let mut next = self.next.lock();
        let at = next.map_or(now, |next| next.max(now));
        if patience.is_some_and(|patience| at - now > patience) {
            return Err(at - now);
        }
        *next = Some(at + self.each.saturating_mul(u32::try_from(messages).unwrap_or(u32::MAX)));
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_messages_go_in_a_second() {
        let limits = Limits::new(None, Some(100));
        let start = Instant::now();
        for (messages, at) in [(50, 0), (100, 500), (1, 1500), (1, 1510)] {
            limits.leave(messages, None).await.expect("waits");
            assert_eq!((Instant::now() - start).as_millis(), at, "{messages}");
        }
        assert_eq!(limits.leave(300, Some(Duration::from_secs(1))).await.err(), None, "10 ms are not too long");
        let refused = limits.leave(1, Some(Duration::from_secs(1))).await.err();
        assert_eq!(refused, Some(NotNow(Duration::from_secs(3))), "what is refused has reserved nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_calls_go_at_once_and_who_waits_too_long_is_told() {
        let limits = Limits::new(Some(1), None);
        let patience = Some(Duration::from_secs(1));
        let first = limits.leave(1, patience).await.expect("free");
        let second = limits.leave(1, patience);
        tokio::pin!(second);
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        let start = Instant::now();
        assert_eq!(limits.leave(1, patience).await.err(), Some(NotNow(CROWDED)));
        assert_eq!(start.elapsed(), Duration::from_secs(1));
        drop(first);
        drop(second.await.expect("it came first"));
        assert!(limits.leave(1, patience).await.is_ok(), "free again");
    }
}
