use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pillarbox_core::event::EventId;
use pillarbox_core::lock::Mutex;
use pillarbox_core::row::Status;
use pillarbox_core::store::RowState;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::{EventEnd, WaitError};

/// The most events that are waited for at once.
pub(super) const MOST: usize = 100_000;

/// The most events of one statement, as of [`Upkeep::states`](pillarbox_core::store::Upkeep::states).
pub(super) const IN_ONE_STATEMENT: usize = 1000;

/// The pause between two looks for an event: a hundredth of the time for which it was waited.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

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
    /// Told when there is something to look for earlier than before.
    sooner: Notify,
    /// True if this process deletes the rows that it has delivered.
    pub(super) delete_done: bool,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<EventId, Entry>,
    /// The entries by the time of their next look.
    schedule: BTreeSet<(Instant, EventId)>,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    /// Since when the latest of those who wait does.
    since: Instant,
    next: Instant,
    progress: watch::Sender<Progress>,
}

/// One who waits for an event; what it has asked for is forgotten when the last is dropped.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    followed: &'a Followed,
    pub(super) id: EventId,
    progress: Option<watch::Receiver<Progress>>,
}

impl Followed {
    pub(crate) fn new(delete_done: bool) -> Self {
        Self { state: Mutex::default(), sooner: Notify::new(), delete_done }
    }

    /// Waits for an event; it is looked for at once.
    pub(super) fn join(&self, id: EventId) -> Result<Waiter<'_>, WaitError> {
        let now = Instant::now();
        let mut state = self.state.lock();
        let State { entries, schedule, closed } = &mut *state;
        if *closed {
            return Err(WaitError::Stopped);
        }
        if entries.len() >= MOST && !entries.contains_key(&id) {
            return Err(WaitError::TooMany);
        }
        let new = || Entry { since: now, next: now, progress: watch::Sender::new(Progress::Unseen) };
        let entry = entries.entry(id.clone()).or_insert_with(new);
        schedule.remove(&(entry.next, id.clone()));
        (entry.since, entry.next) = (now, entry.next.min(now));
        schedule.insert((entry.next, id.clone()));
        let progress = Some(entry.progress.subscribe());
        drop(state);
        self.sooner.notify_one();
        Ok(Waiter { followed: self, id, progress })
    }

    /// Waits until it is time to look, and returns what to look for: at most as many events as one statement takes, the first that are due.
    pub(super) async fn due(&self) -> Vec<EventId> {
        loop {
            let (first, due) = {
                let (state, now) = (self.state.lock(), Instant::now());
                let due = state.schedule.iter().take_while(|(at, _)| *at <= now).take(IN_ONE_STATEMENT);
                (state.schedule.first().map(|(at, _)| *at), due.map(|(_, id)| id.clone()).collect::<Vec<_>>())
            };
            if !due.is_empty() {
                return due;
            }
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

    /// Tells those who wait for these events what the table has said of them.
    pub(super) fn tell(&self, asked: &[EventId], rows: Vec<RowState>) {
        let mut found: BTreeMap<EventId, Vec<RowState>> = BTreeMap::new();
        for row in rows {
            found.entry(row.event_id.clone()).or_default().push(row);
        }
        let (mut state, now) = (self.state.lock(), Instant::now());
        let State { entries, schedule, .. } = &mut *state;
        for id in asked {
            // Nobody waits for it any more.
            let Some(entry) = entries.get_mut(id) else { continue };
            schedule.remove(&(entry.next, id.clone()));
            let progress = progress(found.remove(id).unwrap_or_default(), &entry.progress.borrow());
            if matches!(progress, Progress::Ended(_)) {
                entry.progress.send_replace(progress);
                entries.remove(id);
                continue;
            }
            entry.progress.send_replace(progress);
            entry.next = now + ((now - entry.since) / 100).clamp(SHORTEST, LONGEST);
            schedule.insert((entry.next, id.clone()));
        }
    }

    /// Nobody asks any more: those who wait are told so.
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
        let ended = |progress: &Progress| matches!(progress, Progress::Ended(_));
        let Some(receiver) = &mut self.progress else { return Err(WaitError::Stopped) };
        match receiver.wait_for(ended).await.as_deref() {
            Ok(Progress::Ended(end)) => Ok(end.clone()),
            _ => Err(WaitError::Stopped),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress.as_ref().map_or(Progress::Unseen, |receiver| receiver.borrow().clone())
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
    let dead = rows.into_iter().find(|row| row.status == Status::Dead);
    Progress::Ended(match dead {
        Some(RowState { handler, error, .. }) => EventEnd::Dead { handler, error: error.unwrap_or_default() },
        None if cancelled => EventEnd::Cancelled,
        None => EventEnd::Delivered,
    })
}

#[cfg(test)]
mod tests;
