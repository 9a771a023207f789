use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_core::planted_bug;
use tokio::time::Instant;

use super::forwarder::Inner;
use super::paused_types::note_types;
use super::table::Table;
use crate::breaker::Admission;
use crate::route::RouteOutput;

/// The shortest time for which events are held back: until the reader of the table has noticed.
const MIN_WAIT_FOR_READER: Duration = Duration::from_millis(50);

/// The time after which an event of a route that an operator has paused is tried again.
pub(super) const OPERATOR_PAUSE_RECHECK_INTERVAL: Duration = Duration::from_secs(5);

impl Inner {
    /// Decides whether these events may be sent now.
    pub(super) fn admit(&self, table: &Table, index: usize, output: &RouteOutput, events: &[&Delivery]) -> Admission {
        let (is_new, paused_until) = note_types(table, index, output, events);
        let now = Instant::now();
        let operator_pause = paused_by_operator(output, now);
        let paused = operator_pause.clone().or_else(|| output.circuit.lock().paused());
        let until_read = match (paused_until, &paused) {
            _ if planted_bug::is_active("held_rows_are_overtaken") => None,
            (_, Some((until, _))) if is_new => Some((*until).max(now + MIN_WAIT_FOR_READER)),
            (paused_until, _) => paused_until.map(|until| until.max(now) + MIN_WAIT_FOR_READER),
        };
        match until_read {
            // An event that was held back may stand before it in its key, and has to be read first.
            Some(until) => {
                let (end, problem) =
                    paused.map_or_else(|| (None, "it has reached its limits".into()), |(end, why)| (Some(end), why));
                // No longer than those that wait already: they would wait for one another.
                if let Some(end) = end.or(paused_until) {
                    self.pause_types(output, end);
                }
                Admission::Wait { until, problem }
            }
            None => {
                let admission = match operator_pause {
                    Some((until, problem)) => Admission::Wait { until, problem },
                    None => output.circuit.lock().admit(now),
                };
                if let Admission::Wait { until, .. } = &admission {
                    self.pause_types(output, *until);
                }
                admission
            }
        }
    }

    /// Decides again whether a batch may be sent that was admitted and has waited since; `is_probe` says that it is to try the destination
    /// out. Events that were held back are not looked at again: the keys of the batch have been in flight since it was admitted, so no event of theirs
    /// was read or left in the table meanwhile.
    pub(super) fn admit_again(&self, output: &RouteOutput, is_probe: bool) -> Admission {
        let now = Instant::now();
        let admission = match paused_by_operator(output, now) {
            Some((until, problem)) => Admission::Wait { until, problem },
            None => output.circuit.lock().admit_again(now, is_probe),
        };
        if let Admission::Wait { until, .. } = &admission {
            // As after the first decision: the batch is left in the table with the later events of its types.
            self.pause_types(output, *until);
        }
        admission
    }
}

/// The end of an operator's pause, at the earliest, and its reason.
fn paused_by_operator(output: &RouteOutput, now: Instant) -> Option<(Instant, Arc<str>)> {
    output.operator_pause.lock().clone().map(|reason| (now + OPERATOR_PAUSE_RECHECK_INTERVAL, reason))
}

/// Releases the probe slot when dropped.
pub(super) struct ProbeGuard<'a>(pub(super) &'a RouteOutput);

impl Drop for ProbeGuard<'_> {
    fn drop(&mut self) {
        self.0.circuit.lock().withdraw();
    }
}
