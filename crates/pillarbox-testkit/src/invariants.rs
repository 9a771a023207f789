//! The invariants that must hold in every case, by name. Tests of every kind assert these same functions.
//!
//! I3, order within a key, holds in the modes that keep an order, so [`Observed::check`] leaves it out.

mod order;

pub use order::i3_events_of_a_key_are_handled_one_at_a_time_and_in_order;

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_core::error::BoxError;
use pillarbox_core::event::limits::{HEADER_BYTES, PAYLOAD_BYTES};
use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::ownership::{CRASHED, DIED, NodeId};
use pillarbox_engine::observe::Stats;
use pillarbox_engine::run::Config;

use crate::{Call, Columns, Ending, Harness};

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} is violated: {what}")]
pub struct Violation {
    /// Its name, I1 to I9, and what it says.
    pub invariant: &'static str,
    /// The event that broke it, and how.
    pub what: String,
}

/// The results of a run, as far as they can be seen from outside.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The events whose transactions committed.
    pub committed: Vec<Envelope>,
    /// Their rows.
    pub rows: BTreeMap<EventId, Columns>,
    /// The calls of handlers, those of all nodes together, in the order in which they began.
    pub calls: BTreeMap<EventId, Vec<Call>>,
    /// The nodes that are registered; none once all outboxes have been shut down.
    pub nodes: BTreeSet<NodeId>,
}

impl Observed {
    /// Reads the rows of `committed` as they stand now.
    ///
    /// # Errors
    /// The harness's.
    pub async fn read<H: Harness>(db: &H, committed: &[Envelope], recorded: Vec<Call>) -> Result<Self, BoxError> {
        let (mut rows, mut calls) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for call in recorded {
            calls.entry(call.id.clone()).or_default().push(call);
        }
        for event in committed {
            if let Some(columns) = db.columns(event.id().as_str()).await? {
                rows.insert(event.id().clone(), columns);
            }
        }
        let nodes = db.store().nodes().await?.into_iter().map(|status| status.node).collect();
        Ok(Self { committed: committed.to_vec(), rows, calls, nodes })
    }

    /// The node that keeps a pending row from others though it is not registered.
    fn gone_holder<'a>(&self, row: &'a Columns) -> Option<&'a str> {
        let holder = row.locked_by.as_deref().filter(|holder| ![DIED, CRASHED].contains(holder))?;
        let node = holder.strip_suffix(CRASHED).unwrap_or(holder);
        (!self.nodes.contains(&NodeId::from_stored(node))).then_some(node)
    }

    fn calls_of(&self, id: &EventId) -> &[Call] {
        self.calls.get(id).map_or(&[], Vec::as_slice)
    }

    /// Everything that holds of a run whose outbox has been shut down: I1, I2, I5, I8 and I9.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), Violation> {
        i1_every_committed_event_is_reachable(self)?;
        i2_no_two_deliveries_of_an_event_overlap(self)?;
        i5_attempts_are_the_failed_calls(self)?;
        i8_payload_bytes_never_change(self)?;
        i9_done_events_were_delivered(self)
    }
}

/// I1: a committed event has its row, terminal, or pending and held by nobody or by a registered node; and nothing is delivered
/// that was not committed.
///
/// A node that crashes stays registered until its rows are freed, and one that stops frees them before it leaves.
///
/// # Errors
/// The first event that is lost, invented, or held by a node that is gone.
pub fn i1_every_committed_event_is_reachable(observed: &Observed) -> Result<(), Violation> {
    let violated = |what| Err(Violation { invariant: "I1 (no committed event is ever unreachable)", what });
    for event in &observed.committed {
        match observed.rows.get(event.id()) {
            None => return violated(format!("event {} has no row", event.id())),
            Some(row) if !(0..=3).contains(&row.status) => {
                return violated(format!("event {} is in status {}", event.id(), row.status));
            }
            Some(row) if row.status == 0 || row.status == 2 => {
                if let Some(node) = observed.gone_holder(row) {
                    return violated(format!("event {} is held by {node}, which is gone", event.id()));
                }
            }
            Some(_) => {}
        }
    }
    match observed.calls.keys().find(|id| !observed.rows.contains_key(*id)) {
        Some(id) => violated(format!("event {id} was delivered and never committed")),
        None => Ok(()),
    }
}

/// I2, seen from the handlers: while one is busy with an event, no other is, on whichever node.
///
/// A node that has lost its lease may still be running a handler when the new owner begins; what happens to be an
/// overlap then is allowed, and a test of that case does not assert this.
///
/// # Errors
/// The first two calls that overlap.
pub fn i2_no_two_deliveries_of_an_event_overlap(observed: &Observed) -> Result<(), Violation> {
    for (id, calls) in &observed.calls {
        let overlap = calls.windows(2).find(|pair| pair[0].ended.is_none_or(|(ended, _)| ended > pair[1].began));
        if let Some([first, second]) = overlap {
            let what = format!("event {id} was begun by {} while {} was at it", second.node, first.node);
            return Err(Violation { invariant: "I2 (at most one live owner per row)", what });
        }
    }
    Ok(())
}

/// I4: what was terminal `before` is the same `after`; only a replay or a purge may move it.
///
/// # Errors
/// The first row that moved.
pub fn i4_terminal_rows_do_not_move(before: &Observed, after: &Observed) -> Result<(), Violation> {
    let terminal = before.rows.iter().filter(|(_, row)| row.status == 1 || row.status == 3);
    unchanged("I4 (terminal rows move only by replay or purge)", terminal, after)
}

/// I5: a row's attempts are the calls that failed. It holds where every verdict could be recorded.
///
/// Two things are known only within one: an unrecoverable error makes a row DEAD without being counted, and a call that
/// did not finish has panicked, which counts, or was dropped at shutdown, which does not.
///
/// # Errors
/// The first row whose number is another.
pub fn i5_attempts_are_the_failed_calls(observed: &Observed) -> Result<(), Violation> {
    for (id, row) in &observed.rows {
        let ended = |wanted: Ending| {
            let calls = observed.calls_of(id).iter();
            calls.filter(|call| call.ended.is_some_and(|(_, ending)| ending == wanted)).count()
        };
        let least = ended(Ending::Failed).saturating_sub(usize::from(row.status == 3));
        let most = ended(Ending::Failed) + ended(Ending::Unfinished);
        if !usize::try_from(row.attempts).is_ok_and(|attempts| (least..=most).contains(&attempts)) {
            let what = format!("event {id} has {} attempts after {most} failed calls", row.attempts);
            return Err(Violation { invariant: "I5 (attempts = failed or crashed handler calls)", what });
        }
    }
    Ok(())
}

/// I6: between two looks only a node that was not the owner settled, so every row is as it was.
///
/// # Errors
/// The first row that changed.
pub fn i6_a_settle_by_a_non_owner_changes_nothing(before: &Observed, after: &Observed) -> Result<(), Violation> {
    unchanged("I6 (no settle by a non-owner changes a row)", before.rows.iter(), after)
}

/// I7: what is in memory fits the configured capacities, however much is pending.
///
/// # Errors
/// When there is more.
pub fn i7_memory_is_bounded(stats: &Stats, config: &Config) -> Result<(), Violation> {
    let Config { dispatch, settle, claim, .. } = config;
    // Both queues, what the workers hold, one fetch on its way into the cold queue, and the verdicts: two batches that
    // wait and one that is being recorded.
    let most = dispatch.hot_capacity + dispatch.cold_capacity + dispatch.workers * 2 + claim.batch + settle.batch * 3;
    // One event gets through, however large it is: one of each kind of rows, and one from memory.
    let most_bytes = dispatch.payload_memory + 3 * (PAYLOAD_BYTES + HEADER_BYTES);
    let fits = stats.content_bytes <= most_bytes
        && stats.in_memory <= most
        && stats.hot_depth <= dispatch.hot_capacity
        && stats.cold_depth <= dispatch.cold_capacity;
    if fits {
        return Ok(());
    }
    let Stats { in_memory, hot_depth, cold_depth, content_bytes, .. } = stats;
    let what =
        format!("{in_memory} events are in memory, {hot_depth} hot and {cold_depth} cold, and {content_bytes} bytes");
    Err(Violation { invariant: "I7 (memory is bounded by configured capacities)", what })
}

/// I8: the table and every handler have the payload that was written.
///
/// # Errors
/// The first event of which they have another.
pub fn i8_payload_bytes_never_change(observed: &Observed) -> Result<(), Violation> {
    for event in &observed.committed {
        let written = event.payload();
        let row = observed.rows.get(event.id());
        let stored = row.and_then(|row| match written.as_json() {
            Some(_) => row.payload.as_deref().map(str::as_bytes),
            None => row.payload_bytes.as_deref(),
        });
        let kept = stored == Some(written.as_bytes());
        if !kept || observed.calls_of(event.id()).iter().any(|call| call.payload != *written) {
            let what = format!("the payload of event {} is another", event.id());
            return Err(Violation { invariant: "I8 (payload bytes never change)", what });
        }
    }
    Ok(())
}

/// I9: whichever hints were lost, what is DONE was delivered, and a delivery is what made it so.
///
/// # Errors
/// The first event that is DONE without a call that ended well.
pub fn i9_done_events_were_delivered(observed: &Observed) -> Result<(), Violation> {
    for (id, _) in observed.rows.iter().filter(|(_, row)| row.status == 1) {
        let mut calls = observed.calls_of(id).iter();
        let delivered = calls.any(|call| call.ended.is_some_and(|(_, ending)| ending == Ending::Done));
        if !delivered {
            let what = format!("event {id} is DONE and no call of a handler made it so");
            return Err(Violation { invariant: "I9 (hints lost, only latency lost)", what });
        }
    }
    Ok(())
}

fn unchanged<'a>(
    invariant: &'static str,
    before: impl Iterator<Item = (&'a EventId, &'a Columns)>,
    after: &Observed,
) -> Result<(), Violation> {
    for (id, row) in before {
        match after.rows.get(id) {
            Some(now) if now == row => {}
            now => {
                let what = format!("event {id} was {row:?} and is {now:?}");
                return Err(Violation { invariant, what });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event;

    #[test]
    fn a_pending_row_is_held_by_nobody_or_by_a_registered_node() {
        let event = event().expect("a valid event");
        let row = |status, locked_by: Option<&str>| Columns {
            seq: 1,
            event_type: "test.event".into(),
            aggregate_type: None,
            aggregate_id: None,
            tenant_id: None,
            ordering_key: None,
            partition: None,
            payload: None,
            payload_bytes: None,
            content_type: None,
            headers: None,
            status,
            attempts: 0,
            timed: false,
            ended: false,
            last_error: None,
            locked_by: locked_by.map(str::to_owned),
        };
        let table = [
            (0, None, true),
            (0, Some("here-1"), true),
            (2, Some("here-1!"), true),
            (0, Some(DIED), true),
            (0, Some(CRASHED), true),
            (0, Some("gone-1"), false),
            (2, Some("gone-1"), false),
            (0, Some("gone-1!"), false),
            (1, Some("gone-1"), true),
            (3, Some("gone-1"), true),
            (4, None, false),
        ];
        for (status, locked_by, is_reachable) in table {
            let observed = Observed {
                committed: vec![event.clone()],
                rows: BTreeMap::from([(event.id().clone(), row(status, locked_by))]),
                nodes: BTreeSet::from([NodeId::from_stored("here-1")]),
                ..Observed::default()
            };
            let checked = i1_every_committed_event_is_reachable(&observed);
            assert_eq!(checked.is_ok(), is_reachable, "status {status}, held by {locked_by:?}: {checked:?}");
        }
    }
}
