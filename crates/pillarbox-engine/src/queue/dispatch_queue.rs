use std::collections::VecDeque;

use super::Class;

/// Names events that a worker may begin at the same time: those of a class, or those of it that [run alone](super::Item::runs_alone).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DispatchKey {
    pub(super) class: Class,
    pub(super) alone: bool,
}

impl DispatchKey {
    /// The events of a class that run beside any others.
    pub(super) fn of(class: Class) -> Self {
        Self { class, alone: false }
    }

    fn index(self) -> usize {
        2 * self.class.index() + usize::from(self.alone)
    }
}

/// A queue whose items are taken in their order, except for those whose dispatch key is not eligible now.
#[derive(Debug)]
pub(super) struct DispatchQueue<T> {
    /// By the index of the dispatch key.
    queues: Vec<VecDeque<(u64, T)>>,
    /// The dispatch keys that have items.
    active: Vec<DispatchKey>,
    len: usize,
    pushed: u64,
}

impl<T> Default for DispatchQueue<T> {
    fn default() -> Self {
        Self { queues: Vec::new(), active: Vec::new(), len: 0, pushed: 0 }
    }
}

impl<T> DispatchQueue<T> {
    pub(super) fn push(&mut self, key: DispatchKey, item: T) {
        if self.queues.len() <= key.index() {
            self.queues.resize_with(key.index() + 1, VecDeque::new);
        }
        self.pushed += 1;
        let number = self.pushed;
        if let Some(queue) = self.queues.get_mut(key.index()) {
            if queue.is_empty() {
                self.active.push(key);
            }
            queue.push_back((number, item));
            self.len += 1;
        }
    }

    /// The dispatch key of the first item among those that `may` begin.
    pub(super) fn first(&self, may: impl Fn(DispatchKey) -> bool) -> Option<DispatchKey> {
        // Most outboxes have one class, and hardly ever anything that runs alone.
        if let [only] = *self.active {
            return may(only).then_some(only);
        }
        let number = |key: &DispatchKey| self.queues.get(key.index())?.front().map(|(number, _)| *number);
        self.active.iter().copied().filter(|key| may(*key)).min_by_key(number)
    }

    /// The classes that have items, some of them twice.
    pub(super) fn classes(&self) -> impl Iterator<Item = Class> {
        self.active.iter().map(|key| key.class)
    }

    /// Takes the first item among those that `may` begin.
    pub(super) fn pop_first(&mut self, may: impl Fn(DispatchKey) -> bool) -> Option<T> {
        let key = self.first(may)?;
        self.pop(key).map(|(_, item)| item)
    }

    /// Takes the first item of a dispatch key, with its number.
    pub(super) fn pop(&mut self, key: DispatchKey) -> Option<(u64, T)> {
        self.take(key, VecDeque::pop_front)
    }

    /// Removes the first item of a dispatch key that `is_meant`, if there is one.
    pub(super) fn remove(&mut self, key: DispatchKey, is_meant: impl Fn(&T) -> bool) {
        self.take(key, |queue| {
            let place = queue.iter().position(|(_, item)| is_meant(item))?;
            queue.remove(place)
        });
    }

    fn take(
        &mut self,
        key: DispatchKey,
        from: impl FnOnce(&mut VecDeque<(u64, T)>) -> Option<(u64, T)>,
    ) -> Option<(u64, T)> {
        let queue = self.queues.get_mut(key.index())?;
        let item = from(queue)?;
        self.len -= 1;
        if queue.is_empty() {
            self.active.retain(|active| *active != key);
        }
        Some(item)
    }

    /// Puts items back that were taken, in their order.
    pub(super) fn put_back(&mut self, key: DispatchKey, items: Vec<(u64, T)>) {
        let Some(queue) = self.queues.get_mut(key.index()).filter(|_| !items.is_empty()) else { return };
        if queue.is_empty() {
            self.active.push(key);
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
        active.retain(|key| queues.get(key.index()).is_some_and(|queue| !queue.is_empty()));
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
        let len = |alone| self.queues.get(DispatchKey { class, alone }.index()).map_or(0, VecDeque::len);
        len(false) + len(true)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
