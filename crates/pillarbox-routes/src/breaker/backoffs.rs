use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Breaker;
use super::targets::Part;

/// Parts of a destination that are remembered at most.
const MAX_PARTS: usize = 1000;
/// The time without trouble, beyond twice the last delay, after which trouble is new again: what was deferred has come back by then.
const RESET_AFTER: Duration = Duration::from_secs(1);

/// The delays of events that were not taken by a destination which takes others, so that no pause holds them back.
///
/// An event is deferred for as long as the trouble has lasted, so that its delays double, from the breaker's first pause to its
/// longest. Calls that go well do not end the trouble: they may hold no event that is concerned, as where one partition of a topic
/// has no leader.
#[derive(Debug)]
pub(crate) struct Backoffs {
    breaker: Breaker,
    /// `None`: the destination as a whole.
    troubles: HashMap<Option<Part>, Trouble>,
}

#[derive(Debug, Clone, Copy)]
struct Trouble {
    since: Instant,
    last: Instant,
    /// The last delay.
    delay: Duration,
}

impl Backoffs {
    pub(crate) fn new(breaker: Breaker) -> Self {
        Self { breaker, troubles: HashMap::new() }
    }

    /// The delay of an event that this part, or the destination as a whole, did not take in a call that has ended now.
    pub(crate) fn delay(&mut self, part: Option<&Part>, now: Instant) -> Duration {
        let Breaker { pause, max_pause, .. } = self.breaker;
        let is_over = |trouble: &Trouble| now > trouble.last + trouble.delay * 2 + RESET_AFTER;
        let part = part.cloned();
        if self.troubles.len() >= MAX_PARTS && !self.troubles.contains_key(&part) {
            self.troubles.retain(|_, trouble| !is_over(trouble));
            if self.troubles.len() >= MAX_PARTS {
                return max_pause;
            }
        }
        let trouble = self.troubles.entry(part).or_insert(Trouble { since: now, last: now, delay: pause });
        if is_over(trouble) {
            trouble.since = now;
        }
        trouble.last = now;
        trouble.delay = now.saturating_duration_since(trouble.since).max(pause).min(max_pause);
        trouble.delay
    }

    /// The longest delay.
    pub(crate) fn longest(&self) -> Duration {
        self.breaker.max_pause
    }

    /// The delay of an event that had to wait for another one.
    pub(crate) fn shortest(&self) -> Duration {
        self.breaker.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKER: Breaker = Breaker { failures: 3, pause: Duration::from_secs(1), max_pause: Duration::from_secs(10) };

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn delays_double_while_the_trouble_lasts_and_begin_anew_after_it() {
        let (start, mut backoffs) = (Instant::now(), Backoffs::new(BREAKER));
        let mut now = start;
        for delay in [1, 1, 2, 4, 8, 10, 10] {
            assert_eq!(backoffs.delay(None, now), seconds(delay));
            assert_eq!(backoffs.delay(None, now), seconds(delay), "another event of the call");
            now += seconds(delay);
        }
        assert_eq!(backoffs.delay(None, now + seconds(10)), seconds(10), "it may have come back so late");
        assert_eq!(backoffs.delay(None, now + seconds(10 + 2 * 10) + RESET_AFTER + RESET_AFTER), seconds(1));
    }

    #[test]
    fn each_part_has_delays_of_its_own_and_too_many_the_longest() {
        let (now, mut backoffs) = (Instant::now(), Backoffs::new(BREAKER));
        let part = |number: usize| Part::Target(number.to_string().into());
        for number in 0..MAX_PARTS {
            assert_eq!(backoffs.delay(Some(&part(number)), now), seconds(1));
        }
        let later = now + seconds(2);
        assert_eq!(backoffs.delay(Some(&part(0)), later), seconds(2));
        assert_eq!(backoffs.delay(None, later), seconds(10), "there is no place");
        assert_eq!(backoffs.delay(None, later + seconds(2)), seconds(1), "most are over");
        assert_eq!(backoffs.troubles.len(), 2);
    }
}
