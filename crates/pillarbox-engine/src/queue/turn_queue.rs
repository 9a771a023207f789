use std::collections::VecDeque;

use super::Class;

/// The events that wait for the same: those of a class, or those of it of which one [runs at a time](super::Item::runs_alone).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) class: Class,
    pub(super) alone: bool,
}

impl Turn {
    /// The events of a class that run beside any others.
    pub(super) fn of(class: Class) -> Self {
        Self { class, alone: false }
    }

    fn index(self) -> usize {
        2 * self.class.index() + usize::from(self.alone)
    }
}

/// A queue whose items are taken in their order, but for those whose turn it may not be now.
#[derive(Debug)]
pub(super) struct TurnQueue<T> {
    /// By the number of the turn.
    queues: Vec<VecDeque<(u64, T)>>,
    /// The turns that have items.
    active: Vec<Turn>,
    len: usize,
    pushed: u64,
}

impl<T> Default for TurnQueue<T> {
    fn default() -> Self {
        Self { queues: Vec::new(), active: Vec::new(), len: 0, pushed: 0 }
    }
}

impl<T> TurnQueue<T> {
    pub(super) fn push(&mut self, turn: Turn, item: T) {
        if self.queues.len() <= turn.index() {
            self.queues.resize_with(turn.index() + 1, VecDeque::new);
        }
        self.pushed += 1;
        let number = self.pushed;
        if let Some(queue) = self.queues.get_mut(turn.index()) {
            if queue.is_empty() {
                self.active.push(turn);
            }
            queue.push_back((number, item));
            self.len += 1;
        }
    }

    /// The turn of the first item among those whose turn it `may` be.
    pub(super) fn first(&self, may: impl Fn(Turn) -> bool) -> Option<Turn> {
        // Most outboxes have one class, and hardly ever anything that runs alone.
        if let [only] = *self.active {
            return may(only).then_some(only);
        }
        let number = |turn: &Turn| self.queues.get(turn.index())?.front().map(|(number, _)| *number);
        self.active.iter().copied().filter(|turn| may(*turn)).min_by_key(number)
    }

    /// The classes that have items, some of them twice.
    pub(super) fn classes(&self) -> impl Iterator<Item = Class> {
        self.active.iter().map(|turn| turn.class)
    }

    /// Takes the first item among those whose turn it `may` be.
    pub(super) fn pop_first(&mut self, may: impl Fn(Turn) -> bool) -> Option<T> {
        let turn = self.first(may)?;
        self.pop(turn).map(|(_, item)| item)
    }

    /// Takes the first item of a turn, with its number.
    pub(super) fn pop(&mut self, turn: Turn) -> Option<(u64, T)> {
        self.take(turn, VecDeque::pop_front)
    }

    /// Removes the first item of a turn that `is_meant`, if there is one.
    pub(super) fn remove(&mut self, turn: Turn, is_meant: impl Fn(&T) -> bool) {
        self.take(turn, |queue| {
            let place = queue.iter().position(|(_, item)| is_meant(item))?;
            queue.remove(place)
        });
    }

    fn take(&mut self, turn: Turn, from: impl FnOnce(&mut VecDeque<(u64, T)>) -> Option<(u64, T)>) -> Option<(u64, T)> {
        let queue = self.queues.get_mut(turn.index())?;
        let item = from(queue)?;
        self.len -= 1;
        if queue.is_empty() {
            self.active.retain(|active| *active != turn);
        }
        Some(item)
    }

    /// Puts items back that were taken, in their order.
    pub(super) fn put_back(&mut self, turn: Turn, items: Vec<(u64, T)>) {
        let Some(queue) = self.queues.get_mut(turn.index()).filter(|_| !items.is_empty()) else { return };
        if queue.is_empty() {
            self.active.push(turn);
        }
        self.len += items.len();
        for item in items.into_iter().rev() {
            queue.push_front(item);
        }
    }

    /// Removes the items that are not to be kept.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|(_, item)| keep(item)));
        let Self { queues, active, len, .. } = self;
        active.retain(|turn| queues.get(turn.index()).is_some_and(|queue| !queue.is_empty()));
        *len = queues.iter().map(VecDeque::len).sum();
    }

    pub(super) fn clear(&mut self) {
        self.retain(|_| false);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of items of a class.
    pub(super) fn len_of(&self, class: Class) -> usize {
        let len = |alone| self.queues.get(Turn { class, alone }.index()).map_or(0, VecDeque::len);
        len(false) + len(true)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
