use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use pillarbox_core::handle::{DeliveringNode, Delivery, Path};
use pillarbox_core::hash::guarded::HashMap;
use pillarbox_core::lock::Mutex;
use pillarbox_core::store::Row;

use crate::handlers::{Limiter, Router, Target, lane};

/// Classes that are told apart; further ones share the last.
pub(super) const MAX_CLASSES: u8 = 64;

/// The events that one place takes: a handler, or one [lane](pillarbox_core::handle::BatchHandler::lane) of a batch handler. If that place does
/// not answer, none of them gets on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class(u8);

impl Class {
    /// Events that no handler takes: nothing is called for them, so that nothing bounds them.
    pub(crate) const NONE: Self = Self(0);
    /// The only class of an outbox that has one.
    pub(crate) const FIRST: Self = Self(1);
    const LAST: Self = Self(MAX_CLASSES - 1);
    /// The events that wait for an operator to resume their type or handler, or behind such a one in their key. No room is what they lack.
    pub(crate) const PAUSED: Self = Self(u8::MAX);

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// True if it may stand for several places.
    pub(crate) fn is_shared(self) -> bool {
        self == Self::LAST
    }

    pub(super) fn bit(self) -> u64 {
        1 << self.0
    }
}

/// Tells the class of events.
#[derive(Debug)]
pub(crate) struct Classes {
    /// `None` where all events are of one class, whichever handler takes them.
    asked: Option<(Arc<Router>, Arc<DeliveringNode>)>,
    /// By the number of the handler, and its lane.
    known: Mutex<HashMap<(usize, u64), Class>>,
    count: AtomicUsize,
    /// The smallest number of classes that there will be.
    expected: usize,
    /// The limits of handlers, by the number of their class; empty where no handler has any.
    limiters: Vec<Option<Arc<Limiter>>>,
    several: AtomicBool,
}

impl Classes {
    /// All events are of one class.
    pub(crate) fn one() -> Self {
        let (known, count) = (Mutex::default(), AtomicUsize::new(1));
        Self { asked: None, known, count, expected: 1, limiters: Vec::new(), several: AtomicBool::new(false) }
    }

    /// All events are of one class, of which further ones may follow if `several`.
    #[cfg(test)]
    pub(super) fn one_or_several(several: bool) -> Self {
        Self { several: AtomicBool::new(several), ..Self::one() }
    }

    /// The classes that `router` tells apart.
    pub(crate) fn of_handlers(router: &Arc<Router>, deliverer: &Arc<DeliveringNode>) -> Self {
        if !router.may_differ() {
            return Self::one();
        }
        let asked = Some((Arc::clone(router), Arc::clone(deliverer)));
        // Handlers with limits have classes of their own, however many others there are.
        let (mut known, mut limiters) = (HashMap::default(), Vec::new());
        for (limited, number) in router.limiters().into_iter().zip(1..Class::LAST.0) {
            known.insert((limited.number, 0), Class(number));
            limiters.resize(usize::from(number), None);
            limiters.push(Some(Arc::clone(limited.limiter)));
        }
        Self {
            asked,
            count: AtomicUsize::new(known.len()),
            known: Mutex::new(known),
            expected: router.lanes(),
            limiters,
            several: AtomicBool::new(router.lanes() > 1),
        }
    }

    fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// The number of classes that there are, or will be.
    pub(super) fn expected_count(&self) -> usize {
        self.count().max(self.expected)
    }

    /// True if there may be more than one class.
    pub(super) fn are_several(&self) -> bool {
        self.several.load(Relaxed)
    }

    /// The classes so far.
    pub(super) fn known(&self) -> impl Iterator<Item = Class> + use<> {
        (1..=self.count()).filter_map(|number| u8::try_from(number).ok().map(Class))
    }

    /// The limits of the handler of a class, if it has any.
    pub(super) fn limiter(&self, class: Class) -> Option<&Limiter> {
        self.limiters.get(class.index())?.as_deref()
    }

    /// True if handlers have limits of their own.
    pub(super) fn have_limits(&self) -> bool {
        !self.limiters.is_empty()
    }

    /// The class of a row.
    pub(super) fn of(&self, row: &Arc<Row>, path: Path) -> Class {
        let Some((router, deliverer)) = &self.asked else { return Class::FIRST };
        let Ok(registered) = router.find(row) else { return Class::NONE };
        let lane = match &registered.target {
            Target::One(_) => 0,
            Target::Batch { handler, .. } => {
                lane(&**handler, &Delivery::new(Arc::clone(row), path, Arc::clone(deliverer)))
            }
        };
        let mut known = self.known.lock();
        if let Some(class) = known.get(&(registered.number, lane)) {
            return *class;
        }
        let next = known.len() + 1;
        let Some(class) = u8::try_from(next).ok().map(Class).filter(|class| *class < Class::LAST) else {
            // Lanes without number, as of one for each customer, are not remembered.
            self.count.store(Class::LAST.index(), Relaxed);
            return Class::LAST;
        };
        known.insert((registered.number, lane), class);
        self.count.store(class.index(), Relaxed);
        if next > 1 {
            self.several.store(true, Relaxed);
        }
        class
    }

    /// True if all events of this row's type are of its class.
    pub(super) fn has_type_alone(&self, row: &Arc<Row>) -> bool {
        let Some((router, deliverer)) = &self.asked else { return false };
        let delivery = || Delivery::new(Arc::clone(row), Path::Cold, Arc::clone(deliverer));
        router.has_type_alone(row, delivery)
    }
}
