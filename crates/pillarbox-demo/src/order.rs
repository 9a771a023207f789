use pillarbox::Event;
use serde::{Deserialize, Serialize};

/// The event of a placed order.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", aggregate_id = order_id)]
pub(crate) struct OrderPlaced {
    /// `RUN-NUMBER`: runs on the same database must not mix up their orders.
    pub(crate) order_id: String,
    pub(crate) total_cents: i64,
}

impl OrderPlaced {
    /// The run that placed it.
    pub(crate) fn run(&self) -> &str {
        self.order_id.split_once('-').map_or(&self.order_id, |(run, _)| run)
    }
}

/// The end of a transaction, and the way in which the outbox learns of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Through the guard of `outbox.begin`, which hands the event to the hot path.
    Guarded,
    /// The shop's own transaction, followed by `outbox.notify_committed`.
    Reported,
    /// The shop's own transaction and nothing else: the event is found in the table.
    Unreported,
    /// Rolled back after the event was written. The event must never be delivered.
    RolledBack,
}

impl Ending {
    /// One in twenty orders is rolled back; of the others about half are guarded, a quarter reported, a quarter not.
    pub(crate) fn of(number: u32) -> Self {
        match (number % 20, (number + number / 20) % 4) {
            (19, _) => Self::RolledBack,
            (_, 0 | 1) => Self::Guarded,
            (_, 2) => Self::Reported,
            _ => Self::Unreported,
        }
    }
}

/// The order with this number in a run.
pub(crate) fn order(run: &str, number: u32) -> OrderPlaced {
    OrderPlaced { order_id: format!("{run}-{number}"), total_cents: 100 + i64::from(number) * 37 % 99_900 }
}

/// The number of an order, if it is one of `run`.
pub(crate) fn number_in(run: &str, order_id: &str) -> Option<usize> {
    order_id.strip_prefix(run)?.strip_prefix('-')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endings_are_spread_as_promised() {
        let count = |ending| (0..2000).filter(|number| Ending::of(*number) == ending).count();
        assert_eq!(count(Ending::RolledBack), 100);
        assert!((900..1000).contains(&count(Ending::Guarded)));
        assert!((425..525).contains(&count(Ending::Reported)));
        assert!((425..525).contains(&count(Ending::Unreported)));
    }

    #[test]
    fn an_order_is_known_by_its_run() {
        assert_eq!(order("01A", 7).run(), "01A");
        assert_eq!(number_in("01A", &order("01A", 7).order_id), Some(7));
        assert_eq!(number_in("01B", &order("01A", 7).order_id), None);
    }
}
