use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use pillarbox_core::store::Row;

use super::{FairShares, Load};
use crate::queue::Class;

/// The part of the workers and the memory that an event takes up from the moment it is queued; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    shares: Arc<FairShares>,
    charged_class: Class,
    bytes: usize,
    waits: bool,
    runs: bool,
    alone: bool,
}

impl Charge {
    /// Of an event of the cold queue, or, if it does not count there, of the hot one.
    pub(in crate::queue) fn new(shares: &Arc<FairShares>, charged_class: Class, row: &Row, waits: bool) -> Self {
        let bytes = row.event.content_bytes();
        let charge = Self { shares: Arc::clone(shares), charged_class, bytes, waits, runs: false, alone: false };
        for load in charge.loads() {
            load.bytes.fetch_add(bytes, Relaxed);
            load.waiting.fetch_add(usize::from(waits), Relaxed);
        }
        charge
    }

    fn loads(&self) -> [&Load; 2] {
        [&self.shares.all, self.shares.load(self.charged_class)]
    }

    /// From now on another class is charged.
    pub(in crate::queue) fn move_to(&mut self, charged_class: Class) {
        if self.charged_class == charged_class {
            return;
        }
        let (from, to) = (self.shares.load(self.charged_class), self.shares.load(charged_class));
        from.bytes.fetch_sub(self.bytes, SeqCst);
        to.bytes.fetch_add(self.bytes, Relaxed);
        if self.waits {
            from.waiting.fetch_sub(1, SeqCst);
            to.waiting.fetch_add(1, Relaxed);
        }
        self.charged_class = charged_class;
    }

    /// It waits no longer; with `worker`, it is what a worker is called with. If it runs `alone`, no other such event begins.
    pub(in crate::queue) fn begin(&mut self, class: Class, worker: bool, alone: bool) {
        self.move_to(class);
        self.alone = alone;
        if alone {
            self.shares.alone.store(true, Relaxed);
        }
        for load in self.loads() {
            load.waiting.fetch_sub(usize::from(self.waits), SeqCst);
            load.running.fetch_add(usize::from(worker), Relaxed);
        }
        (self.waits, self.runs) = (false, worker);
        if let Some(limiter) = self.shares.limiter(class).filter(|_| worker) {
            limiter.begin();
        }
        self.shares.wake_reader();
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        for load in self.loads() {
            load.bytes.fetch_sub(self.bytes, SeqCst);
            load.waiting.fetch_sub(usize::from(self.waits), SeqCst);
            load.running.fetch_sub(usize::from(self.runs), Relaxed);
        }
        let limiter = self.shares.limiter(self.charged_class).filter(|_| self.runs);
        limiter.inspect(|limiter| limiter.end());
        self.shares.wake_reader();
        if self.alone {
            self.shares.alone.store(false, Relaxed);
        }
        if self.runs && (self.alone || self.shares.is_divided() || limiter.is_some()) {
            self.shares.items.notify_one();
        }
    }
}
