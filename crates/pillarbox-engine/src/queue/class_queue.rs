use std::collections::VecDeque;

use super::Class;

/// The largest number of events of a class that a search passes over: those for other places, or those that may not begin now.
pub(super) const PASSED_OVER: usize = 1000;

/// A queue whose items are taken in their order, but for those of classes that are not to be served now.
#[derive(Debug)]
pub(super) struct ClassQueue<T> {
    /// By the number of the class.
    queues: Vec<VecDeque<(u64, T)>>,
    /// The classes that have items.
    active: Vec<Class>,
    len: usize,
    pushed: u64,
}

impl<T> Default for ClassQueue<T> {
    fn default() -> Self {
        Self { queues: Vec::new(), active: Vec::new(), len: 0, pushed: 0 }
    }
}

impl<T> ClassQueue<T> {
    pub(super) fn push(&mut self, class: Class, item: T) {
        if self.queues.len() <= class.index() {
            self.queues.resize_with(class.index() + 1, VecDeque::new);
        }
        self.pushed += 1;
        let number = self.pushed;
        if let Some(queue) = self.queues.get_mut(class.index()) {
            if queue.is_empty() {
                self.active.push(class);
            }
            queue.push_back((number, item));
            self.len += 1;
        }
    }

    /// The class of the first item that is of a class which `may` be served.
    pub(super) fn first(&self, may: impl Fn(Class) -> bool) -> Option<Class> {
        // Most outboxes have one class.
        if let [only] = *self.active {
            return may(only).then_some(only);
        }
        let number = |class: &Class| self.queues.get(class.index())?.front().map(|(number, _)| *number);
        self.active.iter().copied().filter(|class| may(*class)).min_by_key(number)
    }

    /// The classes that have items.
    pub(super) fn active(&self) -> impl Iterator<Item = Class> {
        self.active.iter().copied()
    }

    /// Takes the first item that is of a class which `may` be served and that is `wanted` itself, as far as one is found before
    /// [too many](PASSED_OVER) others.
    pub(super) fn take(&mut self, may: impl Fn(Class) -> bool, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut searched = Vec::new();
        loop {
            let class = self.first(|class| may(class) && !searched.contains(&class))?;
            let queue = self.queues.get(class.index())?;
            match queue.iter().take(PASSED_OVER).position(|(_, item)| wanted(item)) {
                Some(place) => return self.remove_at(class, place).map(|(_, item)| item),
                None => searched.push(class),
            }
        }
    }

    /// Takes the first item of a class, with its number.
    pub(super) fn pop(&mut self, class: Class) -> Option<(u64, T)> {
        self.remove_at(class, 0)
    }

    /// Takes the item at a place of a class, with its number. It is the first one nearly always.
    fn remove_at(&mut self, class: Class, place: usize) -> Option<(u64, T)> {
        let queue = self.queues.get_mut(class.index())?;
        let item = if place == 0 { queue.pop_front() } else { queue.remove(place) }?;
        self.len -= 1;
        if queue.is_empty() {
            self.active.retain(|active| *active != class);
        }
        Some(item)
    }

    /// Removes the first item of a class that `is_meant`, if there is one.
    pub(super) fn remove(&mut self, class: Class, is_meant: impl Fn(&T) -> bool) {
        let place = |queue: &VecDeque<(u64, T)>| queue.iter().position(|(_, item)| is_meant(item));
        if let Some(place) = self.queues.get(class.index()).and_then(place) {
            self.remove_at(class, place);
        }
    }

    /// Puts items back that were taken, in their order.
    pub(super) fn put_back(&mut self, class: Class, items: Vec<(u64, T)>) {
        let Some(queue) = self.queues.get_mut(class.index()).filter(|_| !items.is_empty()) else { return };
        if queue.is_empty() {
            self.active.push(class);
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
        active.retain(|class| queues.get(class.index()).is_some_and(|queue| !queue.is_empty()));
        *len = queues.iter().map(VecDeque::len).sum();
    }

    pub(super) fn clear(&mut self) {
        self.retain(|_| false);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn len_of(&self, class: Class) -> usize {
        self.queues.get(class.index()).map_or(0, VecDeque::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
