use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_core::clock::{Random as _, SystemRandom};

/// The first limit of a call, and the longest: what takes longer in a test hangs.
const FIRST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_secs(10);

/// Drops calls at random moments of the time they take: it finds out how long that is, so that on a machine of any speed about half
/// of the calls come to their end.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut calls = pillarbox_testkit::CutShort::default();
/// for _ in 0..20 {
///     calls.cut_short("sleep", tokio::time::sleep(std::time::Duration::from_millis(5))).await;
/// }
/// calls.assert_some_of_each();
/// # });
/// ```
#[derive(Debug, Default)]
pub struct CutShort {
    of_each: BTreeMap<&'static str, Calls>,
}

#[derive(Debug)]
struct Calls {
    limit: Duration,
    ended: usize,
    dropped: usize,
}

impl CutShort {
    /// Runs a call of this name for a random while and drops it; calls of one name take about as long as each other.
    pub async fn cut_short<T>(&mut self, name: &'static str, call: impl Future<Output = T>) {
        let calls = self.of_each.entry(name).or_insert(Calls { limit: FIRST, ended: 0, dropped: 0 });
        let limit = calls.limit.mul_f64(SystemRandom.next_f64());
        if tokio::time::timeout(limit, call).await.is_ok() {
            calls.ended += 1;
            calls.limit = calls.limit.mul_f64(0.8);
        } else {
            calls.dropped += 1;
            calls.limit = calls.limit.mul_f64(1.25).min(LONGEST);
        }
    }

    /// Calls of each name came to their end, and some were dropped before. Not some of each: timers count milliseconds, which may be
    /// longer than a call takes.
    ///
    /// # Panics
    /// Otherwise; the message has the numbers.
    pub fn assert_some_of_each(&self) {
        let dropped: usize = self.of_each.values().map(|calls| calls.dropped).sum();
        assert!(dropped > 0 && self.of_each.values().all(|calls| calls.ended > 0), "{self:#?}");
    }
}
