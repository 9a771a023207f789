mod charge;
mod limited;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use pillarbox_core::handle::Path;
use pillarbox_core::lock::Mutex;
use pillarbox_core::planted_bug;
use pillarbox_core::store::Row;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::class::MAX_CLASSES;
use super::dispatch_queue::DispatchKey;
use super::{Class, Classes};
pub(crate) use charge::Charge;

/// Rows, and payload bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// Divides workers and memory among the classes, so that none that stands still takes what the others need.
///
/// ```text
///   workers   a class takes at most half, rounded up; of the last quarter, one is kept back for each class that has none
///   memory    a class takes less than what is free: one that stands still takes half, a second one half of the rest, …
/// ```
///
/// A single class takes all. Payloads count from the moment an event is queued until it has been handled.
///
/// A class that has used up its part of the memory for a while is *passed over*: its events are left in the table while those of the
/// others are read, and it is read by itself when there is room for it again.
#[derive(Debug)]
pub(crate) struct FairShares {
    classes: Classes,
    workers: usize,
    most: Limits,
    all: Load,
    by_class: [Load; MAX_CLASSES as usize],
    /// True while an event runs that [runs alone](super::Item::runs_alone) among its like.
    alone: AtomicBool,
    /// A bit for each class that is passed over.
    passed: AtomicU64,
    /// The kind of room that the reader waits for; 0 if it does not wait. This and what is freed are accessed in one order that all threads see:
    /// either the reader sees what was freed, or the freeing thread sees that the reader waits.
    reader_wants: AtomicU8,
    /// Notified when there may be something for a worker.
    pub(super) items: Notify,
    /// The time at which a worker wakes up that waits for the rate of a handler.
    alarm: Mutex<Option<Instant>>,
    /// Notified when there may be room for a fetch.
    pub(super) room: Notify,
}

#[derive(Debug, Default)]
struct Load {
    running: AtomicUsize,
    waiting: AtomicUsize,
    bytes: AtomicUsize,
}

impl FairShares {
    pub(crate) fn new(classes: Classes, workers: usize, most: Limits) -> Self {
        Self {
            classes,
            workers,
            most,
            all: Load::default(),
            by_class: std::array::from_fn(|_| Load::default()),
            alone: AtomicBool::new(false),
            passed: AtomicU64::new(0),
            reader_wants: AtomicU8::new(0),
            items: Notify::new(),
            alarm: Mutex::default(),
            room: Notify::new(),
        }
    }

    /// The class of a row.
    pub(crate) fn class(&self, row: &Arc<Row>, path: Path) -> Class {
        self.classes.of(row, path)
    }

    /// True if all events of this row's type are of its class.
    pub(crate) fn has_type_alone(&self, row: &Arc<Row>) -> bool {
        self.classes.has_type_alone(row)
    }

    /// True if there may be more than one class.
    pub(crate) fn is_divided(&self) -> bool {
        self.classes.are_several()
    }

    /// True if a worker may take an event of this class now.
    fn may_begin(&self, class: Class) -> bool {
        if let Some(limiter) = self.limiter(class)
            && !limiter.lets_begin(Instant::now())
            && !planted_bug::is_active("handler_limit_is_ignored")
        {
            return false;
        }
        if !self.is_divided() || class == Class::NONE {
            return true;
        }
        let (own, busy) = (self.load(class).running.load(Relaxed), self.all.running.load(Relaxed));
        may_begin(self.workers, own, self.workers.saturating_sub(busy), || self.idle_classes())
    }

    /// True if a worker may take an event of this dispatch key now.
    pub(super) fn may_dispatch(&self, key: DispatchKey) -> bool {
        self.may_begin(key.class) && !(key.alone && self.alone.load(Relaxed))
    }

    /// The number of workers.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// The number of classes with no event under way, those that no event was of yet among them.
    fn idle_classes(&self) -> usize {
        let busy = self.classes.known().filter(|class| self.load(*class).running.load(Relaxed) > 0).count();
        self.classes.expected_count().saturating_sub(busy)
    }

    /// True if an event that is charged to this class may be queued beside those that are.
    pub(super) fn may_wait(&self, charged_class: Class) -> bool {
        self.has_bytes(charged_class)
            && (!self.is_limited(charged_class) || self.rows_of(charged_class) < self.free().rows)
    }

    /// The same for the hot queue, in which `own` events of the class wait and `free` places are left. It leaves as many bytes free as
    /// [a fetch](Self::fetch_room) wants, or nothing would be read while it is fed.
    pub(super) fn may_wait_hot(&self, class: Class, own: usize, free: usize) -> bool {
        let free_bytes = self.free().bytes;
        let is_within_share =
            !self.is_limited(class) || (own < free && 2 * self.load(class).bytes.load(SeqCst) <= free_bytes);
        free > 0 && free_bytes > self.most.bytes / 4 && is_within_share
    }

    fn has_bytes(&self, charged_class: Class) -> bool {
        !self.is_limited(charged_class) || self.load(charged_class).bytes.load(Relaxed) < self.free().bytes
    }

    fn is_limited(&self, class: Class) -> bool {
        class != Class::NONE && self.is_divided()
    }

    fn load(&self, class: Class) -> &Load {
        self.by_class.get(class.index()).unwrap_or(&self.all)
    }

    fn rows_of(&self, class: Class) -> usize {
        self.load(class).waiting.load(Relaxed)
    }

    fn free(&self) -> Limits {
        Limits {
            rows: self.most.rows.saturating_sub(self.all.waiting.load(SeqCst)),
            bytes: self.most.bytes.saturating_sub(self.all.bytes.load(SeqCst)),
        }
    }

    /// Payload bytes in memory.
    pub(crate) fn content_bytes(&self) -> usize {
        self.all.bytes.load(Relaxed)
    }

    /// Payload bytes for which there is memory.
    pub(crate) fn free_bytes(&self) -> usize {
        self.free().bytes
    }

    /// The limits of the next fetch; `None` while one is not worth it. Every class that is not passed over will have room for it.
    pub(crate) fn fetch_room(&self) -> Option<Limits> {
        let free = self.free();
        if free.rows == 0 || free.bytes == 0 {
            return None;
        }
        if !self.is_divided() {
            let worth_it = free.rows >= self.most.rows - self.most.rows / 2 && free.bytes >= self.most.bytes / 4;
            return worth_it.then(|| Limits { rows: free.rows, bytes: self.bytes_of_a_fetch(free.bytes) });
        }
        let nobody = Limits { rows: free.rows.div_ceil(2), bytes: self.bytes_of_a_fetch(free.bytes) };
        self.flowing().try_fold(nobody, |room, class| {
            let own = self.room_for(class)?;
            Some(Limits { rows: room.rows.min(own.rows), bytes: room.bytes.min(own.bytes) })
        })
    }

    /// The limits of a fetch of this class; `None` while there is little room for it.
    pub(crate) fn room_for(&self, class: Class) -> Option<Limits> {
        let (free, load) = (self.free(), self.load(class));
        let own = Limits { rows: load.waiting.load(SeqCst), bytes: load.bytes.load(SeqCst) };
        let has_room = free.rows > 0 && free.bytes > 0 && 3 * own.rows <= free.rows && 2 * own.bytes <= free.bytes;
        has_room.then(|| Limits {
            rows: (free.rows - own.rows).div_ceil(2),
            bytes: self.bytes_of_a_fetch(free.bytes - own.bytes),
        })
    }

    /// The bytes that a fetch may bring which does not wait for room.
    pub(crate) fn fetch_bytes(&self) -> usize {
        self.bytes_of_a_fetch(self.free().bytes)
    }

    /// Each of the two kinds of rows may bring so much; with what is free of it left over, no class outgrows its part.
    fn bytes_of_a_fetch(&self, free: usize) -> usize {
        (self.most.bytes / 8).min(free / 4).max(1)
    }

    /// The classes that are not passed over.
    fn flowing(&self) -> impl Iterator<Item = Class> {
        let passed = self.passed.load(Relaxed);
        self.classes.known().filter(move |class| passed & class.bit() == 0)
    }

    /// From now on, classes for which there is no room are passed over; returns them.
    pub(crate) fn pass_over(&self) -> Vec<Class> {
        if !self.is_divided() {
            return Vec::new();
        }
        let full: Vec<Class> = self.flowing().filter(|class| self.room_for(*class).is_none()).collect();
        full.iter().for_each(|class| self.pass(*class));
        full
    }

    /// From now on, this class is passed over.
    pub(crate) fn pass(&self, class: Class) {
        self.passed.fetch_or(class.bit(), Relaxed);
    }

    pub(crate) fn is_passed(&self, class: Class) -> bool {
        self.passed.load(Relaxed) & class.bit() != 0
    }

    /// All that was left in the table of this class has been read.
    pub(crate) fn caught_up(&self, class: Class) {
        self.passed.fetch_and(!class.bit(), Relaxed);
    }

    /// Nothing is passed over any more.
    pub(crate) fn pass_nothing(&self) {
        self.passed.store(0, Relaxed);
    }

    /// True if there is room for something of a class that is passed over.
    fn has_room_for_passed(&self) -> bool {
        let passed = self.passed.load(Relaxed);
        let is_passed = |class: &Class| passed & class.bit() != 0;
        passed != 0 && self.classes.known().filter(is_passed).any(|class| self.room_for(class).is_some())
    }

    /// Waits, for the table's only reader, until something has been freed for a class that is passed over; or, if it wants that, until a
    /// fetch of the others is worth it.
    ///
    /// Beside a timer it may be asked in a loop that has something else to do first: so it yields like one. Otherwise the loop
    /// would go on for ever once its task has used up what the runtime grants it at a time, as no timer is due for such a task.
    pub(crate) async fn freed(&self, wants_room: bool) {
        tokio::task::consume_budget().await;
        let freed = self.room.notified();
        let wants = if wants_room { WANTS_ROOM } else { WANTS_ROOM_FOR_PASSED };
        self.reader_wants.store(wants, SeqCst);
        // Room that was freed before woke nobody.
        if !self.is_wanted(wants) {
            freed.await;
        }
        self.reader_wants.store(0, SeqCst);
    }

    fn is_wanted(&self, wants: u8) -> bool {
        self.has_room_for_passed() || (wants == WANTS_ROOM && self.fetch_room().is_some())
    }

    fn wake_reader(&self) {
        let wants = self.reader_wants.load(SeqCst);
        if wants != 0
            && !planted_bug::is_active("freed_room_wakes_nobody")
            && self.is_wanted(wants)
            && self.reader_wants.swap(0, SeqCst) != 0
        {
            self.room.notify_one();
        }
    }
}

/// The kinds of room that the reader waits for.
const WANTS_ROOM: u8 = 1;
const WANTS_ROOM_FOR_PASSED: u8 = 2;

/// A class takes at most half of the workers, rounded up. A second event of a class leaves one free worker for every class that has
/// none, up to a quarter of the workers: more would slow down two classes that are busy among many.
fn may_begin(workers: usize, own: usize, free: usize, idle_classes: impl FnOnce() -> usize) -> bool {
    own == 0 || own < workers.div_ceil(2) && (free > workers.div_ceil(4) || free > idle_classes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_takes_half_of_the_workers_and_leaves_one_for_each_class_that_has_none() {
        for (workers, own, free, idle, may) in [
            (1, 0, 1, 0, true),
            (4, 1, 3, 1, true),
            (4, 2, 2, 1, false),
            (4, 1, 1, 0, true),
            (4, 1, 1, 1, false),
            (4, 0, 1, 1, true),
            (5, 2, 3, 1, true),
            (5, 3, 2, 1, false),
            (8, 2, 2, 1, true),
            (8, 2, 2, 2, false),
            (8, 1, 3, 7, true),
            (8, 1, 2, 7, false),
        ] {
            assert_eq!(
                may_begin(workers, own, free, || idle),
                may,
                "{own} of {workers}, {free} free, {idle} classes without any"
            );
        }
    }

    /// The workers of each class where all classes always have events and none ever answers.
    fn silent(workers: usize, classes: usize) -> Vec<usize> {
        let mut running = vec![0; classes];
        for class in 0..classes {
            loop {
                let free = workers - running.iter().sum::<usize>();
                let idle = || running.iter().filter(|running| **running == 0).count();
                if free == 0 || !may_begin(workers, running[class], free, idle) {
                    break;
                }
                running[class] += 1;
            }
        }
        running
    }

    #[test]
    fn classes_that_never_answer_leave_a_worker_for_each_other_class() {
        assert_eq!(silent(8, 2), [4, 4]);
        assert_eq!(silent(8, 3), [4, 3, 1]);
        assert_eq!(silent(8, 4), [4, 2, 1, 1]);
        assert_eq!(silent(32, 10), [[16, 8].as_slice(), &[1; 8]].concat());
    }

    #[test]
    fn the_hot_queue_leaves_the_bytes_that_a_fetch_wants() {
        let most = Limits { rows: 10, bytes: 1000 };
        for (several, bytes, may_wait) in
            [(false, 749, true), (false, 750, false), (true, 333, true), (true, 334, false)]
        {
            let shares = FairShares::new(Classes::one_or_several(several), 1, most);
            for load in [&shares.all, shares.load(Class::FIRST)] {
                load.bytes.store(bytes, Relaxed);
            }
            assert_eq!(shares.may_wait_hot(Class::FIRST, 0, 5), may_wait, "{several} {bytes}");
            assert!(
                !may_wait || shares.fetch_room().is_some(),
                "{several} {bytes}: what is hot keeps nothing from being read"
            );
        }
    }

    #[tokio::test]
    async fn a_timer_beside_it_is_served_though_there_always_is_room() {
        use futures_util::poll;
        use std::pin::pin;
        use tokio::time::{Instant, sleep_until};

        let most = Limits { rows: 10, bytes: 1000 };
        let shares = FairShares::new(Classes::one_or_several(true), 1, most);
        shares.pass(Class::FIRST);
        assert!(shares.has_room_for_passed());
        // The runtime grants this task nothing more before it yields.
        while poll!(pin!(tokio::task::consume_budget())).is_ready() {}
        let mut timer = pin!(sleep_until(Instant::now()));
        for round in 0.. {
            tokio::select! {
                biased;
                () = &mut timer => break,
                () = shares.freed(false) => assert!(round < 1_000_000, "no timer is served any more"),
            }
        }
    }
}
