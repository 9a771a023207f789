use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_core::plants;
use tokio::time::Instant;

use super::forwarder::Inner;
use super::paused_types::note_types;
use super::table::Table;
use crate::guard::Admission;
use crate::route::Sink;

/// The shortest time for which events are held back: until the reader of the table has noticed.
const MIN_WAIT_FOR_READER: Duration = Duration::from_millis(50);

/// The time after which an event of a route that an operator has paused is tried again.
pub(super) const OPERATOR_PAUSE_RECHECK_INTERVAL: Duration = Duration::from_secs(5);

impl Inner {
    /// Decides whether these events may be sent now.
    pub(super) fn admit(&self, table: &Table, index: usize, sink: &Sink, events: &[&Delivery]) -> Admission {
        let (is_new, paused_until) = note_types(table, index, sink, events);
        let now = Instant::now();
        let by_hand = paused_by_hand(sink, now);
        let paused = by_hand.clone().or_else(|| sink.circuit.lock().paused());
        let until_read = match (paused_until, &paused) {
            _ if plants::is("held_rows_are_overtaken") => None,
            (_, Some((until, _))) if is_new => Some((*until).max(now + MIN_WAIT_FOR_READER)),
            (paused_until, _) => paused_until.map(|until| until.max(now) + MIN_WAIT_FOR_READER),
        };
        match until_read {
            // What was held back may stand before it in its key: it has to wait for that to be read first.
            Some(until) => {
                let (end, problem) =
                    paused.map_or_else(|| (None, "it has reached its limits".into()), |(end, why)| (Some(end), why));
                // No longer than those that wait already: they would wait for one another.
                if let Some(end) = end.or(paused_until) {
                    self.pause_types(sink, end);
                }
                Admission::Wait { until, problem }
            }
            None => {
                let admission = match by_hand {
                    Some((until, problem)) => Admission::Wait { until, problem },
                    None => sink.circuit.lock().admit(now),
                };
                if let Admission::Wait { until, .. } = &admission {
                    self.pause_types(sink, *until);
                }
                admission
            }
        }
    }

    /// Decides again whether a batch may be sent that was admitted and has waited since; `is_probe` says that it is to try the destination
    /// out. What was held back is not looked at again: the keys of the batch have been in flight since it was admitted, so no event of theirs
    /// was read or left in the table meanwhile.
    pub(super) fn admit_again(&self, sink: &Sink, is_probe: bool) -> Admission {
        let now = Instant::now();
        let admission = match paused_by_hand(sink, now) {
            Some((until, problem)) => Admission::Wait { until, problem },
            None => sink.circuit.lock().admit_again(now, is_probe),
        };
        if let Admission::Wait { until, .. } = &admission {
            // As after the first decision: the batch is left in the table with the later events of its types.
            self.pause_types(sink, *until);
        }
        admission
    }
}

/// Until when a route is paused by an operator at least, and why.
fn paused_by_hand(sink: &Sink, now: Instant) -> Option<(Instant, Arc<str>)> {
    sink.by_hand.lock().clone().map(|reason| (now + OPERATOR_PAUSE_RECHECK_INTERVAL, reason))
}

/// One that tries a destination out. Given up, it lets the next one.
pub(super) struct Probing<'a>(pub(super) &'a Sink);

impl Drop for Probing<'_> {
    fn drop(&mut self) {
        self.0.circuit.lock().withdraw();
    }
}
