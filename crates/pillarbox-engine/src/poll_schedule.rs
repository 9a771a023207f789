use std::sync::MutexGuard;
use std::time::Duration;

use pillarbox_core::hash::HashMap;
use pillarbox_core::lock::Mutex;
use pillarbox_core::planted_bug;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The delays of the polls for a row, counted from when it may become visible. Past the last entry, [`POLL_INTERVAL`] applies.
const POLL_DELAYS: [Duration; 3] = [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(80)];
/// The interval of the polls after those.
const POLL_INTERVAL: Duration = Duration::from_millis(80);
/// The time for which to poll for a row that never appears: its transaction was rolled back, or is very long.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);
/// Rows polled for one by one; more are polled for all together.
const MAX_SOUGHT: usize = 1024;
/// Due times further away are learned from the table when their time comes nearer.
const MAX_DUE_AHEAD: Duration = Duration::from_secs(10);

/// Knows when the cold path should poll the table, and how far back.
///
/// A write in this process is a hint that a row is about to become visible, though nobody says when: the caller's
/// transaction is the caller's own. So after a write the table is polled in quick succession until the row has been
/// found. Losing all of this costs latency, never an event.
#[derive(Debug, Default)]
pub(crate) struct PollSchedule {
    state: Mutex<State>,
    /// Notified when the cold path has to poll before it wakes by itself.
    woken: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Rows written here and not yet seen: since when they may be visible, and how many polls were spent on each.
    sought: HashMap<i64, Sought>,
    /// There were more than can be sought one by one: poll for anything until `since` is too long ago.
    crowd: Option<Sought>,
    /// The earliest time at which something is known to become due.
    due: Option<Instant>,
    /// The lowest row that is known to be there now.
    now: Option<i64>,
    /// True if there may be something anywhere.
    anywhere: bool,
    /// The time at which the waiting cold path will wake by itself; `None` while it does not wait.
    alarm: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Sought {
    since: Instant,
    next: Instant,
    polls: usize,
}

impl Sought {
    fn from(since: Instant) -> Self {
        Self { since, next: since + POLL_DELAYS[0], polls: 0 }
    }

    /// Returns true if the next poll is due at `now`; if so, plans the one after it.
    fn spend(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        self.polls += 1;
        let planned = POLL_DELAYS.get(self.polls).map(|offset| self.since + *offset);
        self.next = planned.filter(|at| *at > now).unwrap_or(now + POLL_INTERVAL);
        true
    }
}

/// A poll of the table that is due, and how far back it must begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Poll {
    /// The lowest row that is sought: a poll must begin below it.
    pub(crate) lowest: Option<i64>,
    /// True if something was freed or written elsewhere, which may be anywhere.
    pub(crate) anywhere: bool,
}

impl PollSchedule {
    /// Wakes the cold path if it would otherwise sleep past `at`. While it is busy it needs no waking.
    fn notify(&self, state: MutexGuard<'_, State>, at: Instant) {
        let sleeps_past = state.alarm.is_some_and(|alarm| at < alarm);
        drop(state);
        if sleeps_past {
            self.woken.notify_one();
        }
    }

    /// The row `seq` is there now, and nobody holds it.
    pub(crate) fn wake_for(&self, seq: i64) {
        self.wake(|state| state.now = Some(state.now.map_or(seq, |other| other.min(seq))));
    }

    /// Something was freed or written elsewhere: it may be anywhere.
    pub(crate) fn wake_for_any(&self) {
        self.wake(|state| state.anywhere = true);
    }

    fn wake(&self, note: impl FnOnce(&mut State)) {
        if planted_bug::is_active("wake_up_without_fallback") {
            return;
        }
        let mut state = self.state.lock();
        note(&mut state);
        self.notify(state, Instant::now());
    }

    /// Something becomes due after `delay`.
    pub(crate) fn due_in(&self, delay: Duration) {
        let Some(at) = Instant::now().checked_add(delay) else { return };
        let mut state = self.state.lock();
        if state.due.is_none_or(|due| at < due) {
            state.due = Some(at);
            self.notify(state, at);
        }
    }

    /// The row `seq` may become visible at any time after `delay`.
    pub(crate) fn poll_for(&self, seq: i64, delay: Duration) {
        if delay > MAX_DUE_AHEAD {
            return;
        }
        let since = Instant::now() + delay;
        let mut state = self.state.lock();
        if state.sought.len() < MAX_SOUGHT {
            state.sought.insert(seq, Sought::from(since));
        } else {
            let crowd = state.crowd.get_or_insert(Sought::from(since));
            crowd.since = crowd.since.max(since);
        }
        self.notify(state, since + POLL_DELAYS[0]);
    }

    /// These rows need not be polled for any more.
    pub(crate) fn found(&self, seqs: impl IntoIterator<Item = i64>) {
        let mut state = self.state.lock();
        if state.sought.is_empty() {
            return;
        }
        for seq in seqs {
            state.sought.remove(&seq);
        }
    }

    /// Waits until it is time to poll, at the latest until `latest`.
    pub(crate) async fn wait(&self, latest: Instant) -> Poll {
        loop {
            let woken = self.woken.notified();
            let wake_at = {
                let mut state = self.state.lock();
                let (poll, next) = state.at(Instant::now());
                let latest = if planted_bug::is_active("wake_up_without_fallback") {
                    latest + POLL_TIMEOUT * 60
                } else {
                    latest
                };
                let wake_at = next.map_or(latest, |next| next.min(latest));
                state.alarm = poll.is_none().then_some(wake_at);
                if let Some(poll) = poll {
                    return poll;
                }
                wake_at
            };
            tokio::select! {
                () = tokio::time::sleep_until(wake_at) => {
                    if wake_at == latest {
                        self.state.lock().alarm = None;
                        return Poll { lowest: None, anywhere: false };
                    }
                }
                () = woken => {}
            }
        }
    }
}

impl State {
    /// Returns the poll that is due at `now`, if one is, and the time of the next.
    fn at(&mut self, now: Instant) -> (Option<Poll>, Option<Instant>) {
        let (mut lowest, anywhere) = (self.now.take(), std::mem::take(&mut self.anywhere));
        let mut poll = lowest.is_some() || anywhere;
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            poll = true;
        }
        let mut next = self.due;
        let mut visit = |sought: &mut Sought, seq: Option<i64>| {
            if sought.spend(now) {
                poll = true;
                lowest = [lowest, seq].into_iter().flatten().min();
            }
            let patient = sought.since + POLL_TIMEOUT > now;
            if patient {
                next = Some(next.map_or(sought.next, |other| other.min(sought.next)));
            }
            patient
        };
        self.sought.retain(|seq, sought| visit(sought, Some(*seq)));
        self.crowd.take_if(|crowd| !visit(crowd, None));
        (poll.then_some(Poll { lowest, anywhere }), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// The times of all polls within `span`, in milliseconds from now.
    async fn polls(poll_schedule: &PollSchedule, span: Duration) -> Vec<u128> {
        let start = Instant::now();
        let mut times = Vec::new();
        while Instant::now() < start + span {
            poll_schedule.wait(start + span).await;
            times.push(start.elapsed().as_millis());
        }
        times.pop();
        times
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_is_looked_for_after_5_20_and_80_ms_and_on_until_found() {
        let poll_schedule = PollSchedule::default();
        poll_schedule.poll_for(7, Duration::ZERO);
        assert_eq!(polls(&poll_schedule, millis(250)).await, [5, 20, 80, 160, 240]);
        poll_schedule.found([7]);
        assert!(polls(&poll_schedule, millis(1000)).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_never_appears_is_given_up() {
        let poll_schedule = PollSchedule::default();
        poll_schedule.poll_for(7, Duration::ZERO);
        let times = polls(&poll_schedule, Duration::from_secs(100)).await;
        assert!(times.iter().all(|time| *time <= 60_100) && times.len() > 700, "{}", times.len());
        assert!(poll_schedule.state.lock().sought.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_reaches_down_to_the_lowest_row_that_is_sought() {
        let poll_schedule = PollSchedule::default();
        poll_schedule.poll_for(9, Duration::ZERO);
        poll_schedule.poll_for(7, Duration::ZERO);
        let latest = Instant::now() + millis(100);
        assert_eq!(poll_schedule.wait(latest).await, Poll { lowest: Some(7), anywhere: false });
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_due_time_wakes() {
        let poll_schedule = PollSchedule::default();
        poll_schedule.due_in(millis(300));
        poll_schedule.due_in(millis(200));
        poll_schedule.due_in(Duration::MAX);
        assert_eq!(polls(&poll_schedule, millis(500)).await, [200]);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_however_many_rows_are_written() {
        let poll_schedule = PollSchedule::default();
        for seq in 0..10_000 {
            poll_schedule.poll_for(seq, Duration::ZERO);
        }
        assert_eq!(poll_schedule.state.lock().sought.len(), MAX_SOUGHT);
        for seq in 0..10_000 {
            poll_schedule.found([seq]);
        }
        let times = polls(&poll_schedule, millis(400)).await;
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= 80) && times.len() >= 4, "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn rows_of_unknown_seq_hide_no_known_row() {
        let poll_schedule = PollSchedule::default();
        poll_schedule.wake_for(7);
        poll_schedule.wake_for_any();
        let latest = Instant::now() + millis(100);
        assert_eq!(poll_schedule.wait(latest).await, Poll { lowest: Some(7), anywhere: true });
        assert_eq!(poll_schedule.wait(latest).await, Poll { lowest: None, anywhere: false }, "told once");
    }

    #[tokio::test(start_paused = true)]
    async fn an_announced_wake_is_not_lost() {
        let poll_schedule = PollSchedule::default();
        poll_schedule.wake_for(1);
        assert_eq!(polls(&poll_schedule, millis(10)).await, [0]);
    }
}
