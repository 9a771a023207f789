use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pillarbox_core::event::EventId;
use pillarbox_core::lock::Mutex;
use pillarbox_core::row::Status;
use pillarbox_core::store::RowState;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::{DeliveredAs, EventEnd, WaitError};

/// The most events that are waited for at once.
pub(super) const MAX_FOLLOWED: usize = 100_000;

/// The most events of one statement, as of [`Admin::states`](pillarbox_core::store::Admin::states).
pub(super) const MAX_PER_STATEMENT: usize = 1000;

/// The pause between two polls for an event: a hundredth of the time for which it was waited.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The state of an event, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    Unseen,
    Pending,
    Ended(EventEnd),
}

/// The events for which somebody waits, each once however many wait for it.
#[derive(Debug)]
pub(crate) struct Followed {
    state: Mutex<State>,
    /// Notified when there is something to poll for earlier than before.
    sooner: Notify,
    /// True if this process deletes the rows that it has delivered.
    pub(super) delete_done: bool,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<EventId, Entry>,
    /// The entries by the time of their next poll.
    schedule: BTreeSet<(Instant, EventId)>,
    /// The number of the latest statement.
    statement: u64,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    /// The time since which the latest waiter waits.
    since: Instant,
    next: Instant,
    /// The latest statement that was sent before the latest waiter joined.
    joined_after: u64,
    progress: watch::Sender<Answer>,
}

/// The state of an event, and the number of the statement that has found it.
#[derive(Debug, Clone)]
struct Answer {
    progress: Progress,
    by: u64,
}

/// The events that a statement asks for.
#[derive(Debug)]
pub(super) struct PolledEvents {
    pub(super) ids: Vec<EventId>,
    /// Its number, from 1.
    statement: u64,
}

/// A waiter for an event; the event is forgotten when its last waiter is dropped.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    followed: &'a Followed,
    pub(super) id: EventId,
    /// The latest statement that was sent before. It may have read the event as it stood earlier, so its answer does not count.
    joined_after: u64,
    progress: Option<watch::Receiver<Answer>>,
}

impl Followed {
    pub(crate) fn new(delete_done: bool) -> Self {
        Self { state: Mutex::default(), sooner: Notify::new(), delete_done }
    }

    /// Waits for an event; it is polled for at once.
    pub(super) fn join(&self, id: EventId) -> Result<Waiter<'_>, WaitError> {
        let now = Instant::now();
        let mut state = self.state.lock();
        let State { entries, schedule, statement, closed } = &mut *state;
        if *closed {
            return Err(WaitError::Stopped);
        }
        if entries.len() >= MAX_FOLLOWED && !entries.contains_key(&id) {
            return Err(WaitError::TooMany);
        }
        let joined_after = *statement;
        let new = || {
            let progress = watch::Sender::new(Answer { progress: Progress::Unseen, by: 0 });
            Entry { since: now, next: now, joined_after, progress }
        };
        let entry = entries.entry(id.clone()).or_insert_with(new);
        schedule.remove(&(entry.next, id.clone()));
        (entry.since, entry.next, entry.joined_after) = (now, entry.next.min(now), joined_after);
        schedule.insert((entry.next, id.clone()));
        let progress = Some(entry.progress.subscribe());
        drop(state);
        self.sooner.notify_one();
        Ok(Waiter { followed: self, id, joined_after, progress })
    }

    /// Waits until it is time to poll, and returns what to poll for: at most as many events as one statement takes, the first that are due.
    pub(super) async fn due(&self) -> PolledEvents {
        loop {
            let first = {
                let (mut state, now) = (self.state.lock(), Instant::now());
                let due = state.schedule.iter().take_while(|(at, _)| *at <= now).take(MAX_PER_STATEMENT);
                let ids: Vec<EventId> = due.map(|(_, id)| id.clone()).collect();
                if !ids.is_empty() {
                    state.statement += 1;
                    return PolledEvents { ids, statement: state.statement };
                }
                state.schedule.first().map(|(at, _)| *at)
            };
            match first {
                None => self.sooner.notified().await,
                Some(at) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(at) => {}
                        () = self.sooner.notified() => {}
                    }
                }
            }
        }
    }

    /// Tells the state of these events to the waiters that waited when the events were asked for.
    pub(super) fn tell(&self, asked: &PolledEvents, rows: Vec<RowState>) {
        let mut found: BTreeMap<EventId, Vec<RowState>> = BTreeMap::new();
        for row in rows {
            found.entry(row.event_id.clone()).or_default().push(row);
        }
        let (mut state, now) = (self.state.lock(), Instant::now());
        let State { entries, schedule, .. } = &mut *state;
        for id in &asked.ids {
            // Nobody waits for it any more.
            let Some(entry) = entries.get_mut(id) else { continue };
            schedule.remove(&(entry.next, id.clone()));
            let progress = progress(found.remove(id).unwrap_or_default(), &entry.progress.borrow().progress);
            let has_ended = matches!(progress, Progress::Ended(_));
            entry.progress.send_replace(Answer { progress, by: asked.statement });
            let joined_since = entry.joined_after >= asked.statement;
            if has_ended && !joined_since {
                entries.remove(id);
                continue;
            }
            // A waiter that has joined since is asked for at once.
            if !joined_since {
                entry.next = now + ((now - entry.since) / 100).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
            }
            schedule.insert((entry.next, id.clone()));
        }
    }

    /// The database is another one than before, such as a replica that took over: it may not have yet, or not any more, what was seen in the other.
    /// So an event that is missing in it is not known to be gone.
    pub(super) fn forget(&self) {
        for entry in self.state.lock().entries.values() {
            entry.progress.send_if_modified(|answer| {
                let was_pending = answer.progress == Progress::Pending;
                if was_pending {
                    answer.progress = Progress::Unseen;
                }
                was_pending
            });
        }
    }

    /// Nobody asks any more: the waiters are told so.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        *state = State { closed: true, ..State::default() };
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let state = self.state.lock();
        assert_eq!(state.entries.len(), state.schedule.len());
        state.entries.len()
    }
}

impl Waiter<'_> {
    /// The end of the event.
    pub(super) async fn end(&mut self) -> Result<EventEnd, WaitError> {
        let joined_after = self.joined_after;
        let ended = |answer: &Answer| matches!(answer.progress, Progress::Ended(_)) && answer.by > joined_after;
        let Some(receiver) = &mut self.progress else { return Err(WaitError::Stopped) };
        match receiver.wait_for(ended).await.as_deref() {
            Ok(Answer { progress: Progress::Ended(end), .. }) => Ok(end.clone()),
            _ => Err(WaitError::Stopped),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let Some(receiver) = &self.progress else { return Progress::Unseen };
        match &*receiver.borrow() {
            // It is in the table, and has not been asked for since.
            Answer { progress: Progress::Ended(_), by } if *by <= self.joined_after => Progress::Pending,
            answer => answer.progress.clone(),
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.followed.state.lock();
        self.progress = None;
        if let Some(entry) = state.entries.get(&self.id)
            && entry.progress.receiver_count() == 0
        {
            let next = entry.next;
            state.entries.remove(&self.id);
            state.schedule.remove(&(next, self.id.clone()));
        }
    }
}

/// The state of an event by its rows, if so much was known `before`.
fn progress(mut rows: Vec<RowState>, before: &Progress) -> Progress {
    if rows.is_empty() {
        return match before {
            Progress::Unseen => Progress::Unseen,
            Progress::Pending | Progress::Ended(_) => Progress::Ended(EventEnd::Gone),
        };
    }
    if rows.iter().any(|row| row.status.is_pending()) {
        return Progress::Pending;
    }
    rows.sort_by(|one, other| one.handler.cmp(&other.handler));
    let cancelled = rows.iter().any(RowState::is_cancelled);
    if let Some(dead) = rows.iter().position(|row| row.status == Status::Dead) {
        let RowState { handler, error, .. } = rows.swap_remove(dead);
        return Progress::Ended(EventEnd::Dead { handler, error: error.unwrap_or_default() });
    }
    if cancelled {
        return Progress::Ended(EventEnd::Cancelled);
    }
    let positions = rows.into_iter().filter_map(|RowState { handler, delivered_as, .. }| {
        let position = delivered_as?;
        Some(DeliveredAs { handler, position })
    });
    Progress::Ended(EventEnd::Delivered { positions: positions.collect() })
}

#[cfg(test)]
mod tests;
