use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::handle::Path;
use crate::ownership::Past;
use crate::store::Row;

/// How many events that go elsewhere a search for those of a batch passes over.
pub(super) const PASSED_OVER: usize = 1000;

/// An event waiting for a worker.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) row: Arc<Row>,
    pub(crate) path: Path,
    /// When it was committed (hot) or had been read (cold).
    pub(crate) since: Instant,
    /// What the table knew of earlier deliveries.
    pub(crate) past: Past,
}

/// The two bounded queues between the paths and the workers.
///
/// Workers wait on both at once. While both have work, two hot events are taken for each cold one, so that neither
/// starves.
#[derive(Debug)]
pub(crate) struct Lanes {
    state: Mutex<State>,
    hot_capacity: usize,
    cold_capacity: usize,
    /// Rung when there is something to pop, or never will be.
    items: Notify,
    /// Rung when half of the cold lane is free again.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    hot: VecDeque<Item>,
    cold: VecDeque<Item>,
    /// Hot events taken since the last cold one.
    hot_in_a_row: u8,
    closed: bool,
}

impl State {
    fn next(&mut self) -> Option<Item> {
        if self.hot_in_a_row < 2
            && let Some(item) = self.hot.pop_front()
        {
            self.hot_in_a_row += 1;
            return Some(item);
        }
        self.hot_in_a_row = 0;
        self.cold.pop_front().or_else(|| {
            let item = self.hot.pop_front();
            self.hot_in_a_row = u8::from(item.is_some());
            item
        })
    }
}

impl Lanes {
    pub(crate) fn new(hot_capacity: usize, cold_capacity: usize) -> Self {
        Self { state: Mutex::default(), hot_capacity, cold_capacity, items: Notify::new(), room: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a hot event that was committed at `since`; false if the lane is full or closed.
    pub(crate) fn push_hot(&self, row: Arc<Row>, since: Instant) -> bool {
        let mut state = self.lock();
        if state.closed || state.hot.len() >= self.hot_capacity {
            return false;
        }
        state.hot.push_back(Item { row, path: Path::Hot, since, past: Past::Clean });
        drop(state);
        self.items.notify_one();
        true
    }

    /// Queues cold events, no more than [`cold_room`](Self::cold_room) said; false if the lane is closed.
    pub(crate) fn push_cold(&self, rows: impl IntoIterator<Item = (Row, Past)>) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        let since = Instant::now();
        let item = |(row, past)| Item { row: Arc::new(row), path: Path::Cold, since, past };
        state.cold.extend(rows.into_iter().map(item));
        debug_assert!(state.cold.len() <= self.cold_capacity, "I7: a claim takes at most the free slots");
        drop(state);
        self.items.notify_one();
        true
    }

    /// The next event; `None` once the lanes are closed and empty.
    pub(crate) async fn pop(&self) -> Option<Item> {
        loop {
            let rung = self.items.notified();
            {
                let mut state = self.lock();
                if let Some(item) = state.next() {
                    let more = !(state.hot.is_empty() && state.cold.is_empty());
                    let freed = item.path == Path::Cold && state.cold.len() == self.cold_capacity / 2;
                    drop(state);
                    // Each worker that finds work wakes the next one: a push rings once, however much it brings.
                    if more {
                        self.items.notify_one();
                    }
                    if freed {
                        self.room.notify_one();
                    }
                    return Some(item);
                }
                if state.closed {
                    drop(state);
                    self.items.notify_one();
                    return None;
                }
            }
            rung.await;
        }
    }

    /// Up to `max` of the events that would be next and are `wanted`. Others stay where they are; after a number of them that
    /// is no more worth the time than the rest of a batch would be, the search ends.
    pub(crate) fn pop_more(&self, max: usize, wanted: impl Fn(&Item) -> bool) -> Vec<Item> {
        let mut state = self.lock();
        let state = &mut *state;
        let queued = state.cold.len();
        let mut items = Vec::new();
        for lane in [&mut state.hot, &mut state.cold] {
            let mut passed = Vec::new();
            while items.len() < max && passed.len() < PASSED_OVER {
                match lane.pop_front() {
                    Some(item) if wanted(&item) => items.push(item),
                    Some(item) => passed.push(item),
                    None => break,
                }
            }
            for item in passed.into_iter().rev() {
                lane.push_front(item);
            }
        }
        let half = self.cold_capacity / 2;
        if queued > half && state.cold.len() <= half {
            self.room.notify_one();
        }
        items
    }

    /// Waits until at least half of the cold lane is free and returns how many slots are.
    pub(crate) async fn cold_room(&self) -> usize {
        loop {
            let rung = self.room.notified();
            let queued = self.lock().cold.len();
            if queued <= self.cold_capacity / 2 {
                return self.cold_capacity - queued;
            }
            rung.await;
        }
    }

    /// How many events wait in the hot and in the cold lane.
    pub(crate) fn depths(&self) -> (usize, usize) {
        let state = self.lock();
        (state.hot.len(), state.cold.len())
    }

    /// Takes nothing more in; what is queued can still be popped.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.items.notify_one();
    }

    /// Closes and throws away what is queued: the table still has it.
    pub(crate) fn abandon(&self) -> usize {
        let mut state = self.lock();
        state.closed = true;
        let abandoned = state.hot.len() + state.cold.len();
        state.hot.clear();
        state.cold.clear();
        drop(state);
        self.items.notify_one();
        abandoned
    }
}
