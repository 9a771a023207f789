use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use metrics::Gauge;
use pillarbox_core::handle::AbandonedThreads;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::Row;
use tokio::time::{Instant, sleep};

/// Slow calls that one check logs by name; the others of that check are counted.
const MAX_NAMED: usize = 10;

/// The calls of handlers that are running, so that one that hangs can be seen.
///
/// Each worker writes into a slot of its own, which costs no more than an uncontended lock. The time of a call is taken only
/// once it has to be waited for, or when somebody asks.
#[derive(Debug)]
pub(crate) struct Calls {
    /// A call that runs longer counts as slow.
    slow_after: Duration,
    slots: Mutex<Vec<Arc<Slot>>>,
    /// Blocking handlers that were abandoned while their threads go on.
    pub(crate) abandoned: AbandonedThreads,
}

/// The call of one worker.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Call>>);

#[derive(Debug)]
struct Call {
    row: Arc<Row>,
    /// Events of the call; of a batch, `row` is the first.
    events: usize,
    began: Option<Instant>,
    is_named: bool,
}

/// The state of all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Busy {
    /// Workers that are in a call.
    pub(crate) workers: usize,
    /// The age of the oldest call.
    pub(crate) oldest: Option<Duration>,
    /// True if every worker is in a slow call.
    pub(crate) is_stalled: bool,
    /// Blocking handlers that were abandoned while their threads go on.
    pub(crate) abandoned: usize,
}

/// A call that ends when it is dropped.
pub(crate) struct Running<'a>(&'a Slot);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Call>> {
        self.0.lock()
    }

    /// A call begins; it ends when what is returned is dropped.
    pub(crate) fn begin(&self, row: &Arc<Row>, events: usize) -> Running<'_> {
        *self.lock() = Some(Call { row: Arc::clone(row), events, began: None, is_named: false });
        Running(self)
    }
}

impl Running<'_> {
    /// The call did not end at once: from here on it has an age.
    pub(crate) fn waits(&self) {
        if let Some(call) = &mut *self.0.lock() {
            call.began.get_or_insert_with(Instant::now);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl Calls {
    /// The calls of an outbox, whose abandoned threads `abandoned` shows.
    pub(crate) fn new(slow_after: Duration, abandoned: Gauge) -> Self {
        Self { slow_after, slots: Mutex::default(), abandoned: AbandonedThreads::shown_by(abandoned) }
    }

    /// A term with so many workers begins; a slot for each. Those of the term before are forgotten.
    pub(crate) fn open(&self, workers: usize) -> Vec<Arc<Slot>> {
        let slots: Vec<Arc<Slot>> = (0..workers).map(|_| Arc::default()).collect();
        self.slots.lock().clone_from(&slots);
        slots
    }

    /// The term has ended.
    pub(crate) fn close(&self) {
        self.slots.lock().clear();
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().clone()
    }

    /// The state of all workers at `now`.
    pub(crate) fn busy(&self, now: Instant) -> Busy {
        let slots = self.slots();
        let mut busy = Busy { abandoned: self.abandoned.count(), ..Busy::default() };
        let mut slow = 0;
        for slot in &slots {
            let Some(call) = &mut *slot.lock() else { continue };
            let age = now.saturating_duration_since(*call.began.get_or_insert(now));
            busy.workers += 1;
            busy.oldest = busy.oldest.max(Some(age));
            slow += usize::from(age > self.slow_after);
        }
        busy.is_stalled = slow > 0 && slow == slots.len();
        busy
    }

    /// Names slow calls in the log, each once, until it is dropped.
    pub(crate) async fn report_slow_calls(&self) {
        loop {
            sleep((self.slow_after / 10).clamp(Duration::from_millis(10), Duration::from_secs(5))).await;
            self.log_slow();
        }
    }

    fn log_slow(&self) {
        let (now, mut slow) = (Instant::now(), Vec::new());
        for slot in self.slots() {
            let Some(call) = &mut *slot.lock() else { continue };
            let age = now.saturating_duration_since(*call.began.get_or_insert(now));
            if age > self.slow_after && !call.is_named {
                call.is_named = true;
                slow.push((Arc::clone(&call.row), call.events, age));
            }
        }
        for (row, events, age) in slow.iter().take(MAX_NAMED) {
            tracing::warn!(
                event_id = row.event.id().as_str(),
                seq = row.seq,
                event_type = row.event.event_type(),
                handler = row.handler.as_deref(),
                events,
                runs_for = ?age,
                "a handler has not ended yet; its worker takes no other event meanwhile"
            );
        }
        if let Some(more) = slow.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
            tracing::warn!(calls = more, "further handlers have not ended yet");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pillarbox_core::clock::Timestamp;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::write::NewRow;

    const SLOW: Duration = Duration::from_secs(60);

    fn row() -> Arc<Row> {
        let row = NewRow::new(Envelope::json("t", "1").expect("valid"));
        Arc::new(Row::fresh(&row, 1, Timestamp::from_micros(0)))
    }

    #[tokio::test(start_paused = true)]
    async fn workers_are_stalled_when_all_of_them_are_in_slow_calls() {
        let calls = Calls::new(SLOW, Gauge::noop());
        let slots = calls.open(2);
        assert_eq!(calls.busy(Instant::now()), Busy::default());
        let first = slots[0].begin(&row(), 1);
        first.waits();
        tokio::time::advance(SLOW * 2).await;
        let second = slots[1].begin(&row(), 1);
        let busy = calls.busy(Instant::now());
        assert_eq!((busy.workers, busy.oldest, busy.is_stalled), (2, Some(SLOW * 2), false), "one is new");
        tokio::time::advance(SLOW + Duration::from_millis(1)).await;
        assert!(calls.busy(Instant::now()).is_stalled, "a call counts from when it was first seen");
        drop(second);
        let busy = calls.busy(Instant::now());
        assert_eq!((busy.workers, busy.is_stalled), (1, false));
        drop(first);
        calls.close();
        assert_eq!(calls.busy(Instant::now()), Busy::default());
    }
}
