use std::pin::pin;

use pillarbox_core::hash::HashMap;
use pillarbox_core::lock::Mutex;
use tokio::sync::Notify;

/// Verdicts on their way to the table, by the key of their events.
///
/// The next event of a key is handled while the verdict on the one before is being recorded. A handler that commits by itself would
/// overtake that verdict: after a crash the earlier event would be delivered again, behind the later one. So it
/// [waits](Self::all_recorded) before it begins.
#[derive(Debug, Default)]
pub(super) struct PendingVerdicts {
    state: Mutex<State>,
    fewer: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The key of an event, and the number of verdicts on it.
    events: HashMap<i64, (u64, u32)>,
    /// The number of verdicts on events of a key.
    keys: HashMap<u64, u32>,
}

impl PendingVerdicts {
    /// A verdict on the event `seq` of a key is to be recorded.
    pub(super) fn add(&self, seq: i64, key: u64) {
        let mut state = self.state.lock();
        state.events.entry(seq).or_insert((key, 0)).1 += 1;
        *state.keys.entry(key).or_default() += 1;
    }

    /// A verdict on each of these events is recorded, or never will be.
    pub(super) fn remove(&self, seqs: impl IntoIterator<Item = i64>) {
        let mut state = self.state.lock();
        let State { events, keys } = &mut *state;
        let mut fewer = false;
        for seq in seqs {
            let Some((key, verdicts)) = events.get_mut(&seq) else { continue };
            *verdicts -= 1;
            let (key, is_last) = (*key, *verdicts == 0);
            if is_last {
                events.remove(&seq);
            }
            if let Some(verdicts) = keys.get_mut(&key) {
                *verdicts -= 1;
                if *verdicts == 0 {
                    keys.remove(&key);
                    fewer = true;
                }
            }
        }
        drop(state);
        if fewer {
            self.fewer.notify_waiters();
        }
    }

    /// Waits until no verdict on an event of the key is left to be recorded.
    pub(super) async fn all_recorded(&self, key: u64) {
        loop {
            let mut fewer = pin!(self.fewer.notified());
            // Before the look, so that no change in between is missed.
            fewer.as_mut().enable();
            if !self.state.lock().keys.contains_key(&key) {
                return;
            }
            fewer.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_key_waits_for_each_verdict_on_its_events_and_for_no_other() {
        let pending_verdicts = PendingVerdicts::default();
        let is_over = |key| pending_verdicts.all_recorded(key).now_or_never().is_some();
        pending_verdicts.add(1, 7);
        pending_verdicts.add(2, 7);
        pending_verdicts.add(2, 7);
        assert!(is_over(8));
        pending_verdicts.remove([1, 2]);
        assert!(!is_over(7), "one of two verdicts on 2 is left");
        pending_verdicts.remove([3, 2]);
        assert!(is_over(7));
        pending_verdicts.remove([2]);
    }

    #[tokio::test]
    async fn waiters_are_told_when_all_is_recorded() {
        let pending_verdicts = PendingVerdicts::default();
        pending_verdicts.add(1, 7);
        let mut waiting = pin!(pending_verdicts.all_recorded(7));
        assert!(waiting.as_mut().now_or_never().is_none());
        pending_verdicts.remove([1]);
        waiting.await;
    }
}
