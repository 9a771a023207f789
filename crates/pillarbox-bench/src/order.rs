use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Checks that the events of each key are first delivered in the order in which they were written. It holds one number
/// per key, however many events there are.
#[derive(Debug)]
pub(crate) struct Order {
    /// The highest `seq` delivered of each key.
    highest: Box<[AtomicI64]>,
    violations: AtomicU64,
}

impl Order {
    pub(crate) fn new(keys: u32) -> Self {
        Self { highest: (0..keys).map(|_| AtomicI64::new(i64::MIN)).collect(), violations: AtomicU64::new(0) }
    }

    /// Notes the first delivery of event `number`, whose key follows from the number, as in the load.
    pub(crate) fn note(&self, number: usize, seq: i64) {
        let key = number.checked_rem(self.highest.len()).and_then(|key| self.highest.get(key));
        // Nodes of one process synchronize through the database alone, so this has to order by itself.
        if key.is_some_and(|highest| highest.fetch_max(seq, Ordering::SeqCst) > seq) {
            self.violations.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Events that came after a later one of their key.
    pub(crate) fn violations(&self) -> u64 {
        self.violations.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_after_a_later_one_of_their_key_are_counted() {
        let order = Order::new(2);
        // Numbers 0, 2 and 4 are of one key, 1 and 3 of the other.
        for (number, seq) in [(0, 10), (3, 13), (4, 14), (2, 12), (1, 11), (6, 16)] {
            order.note(number, seq);
        }
        assert_eq!(order.violations(), 2);
    }
}
