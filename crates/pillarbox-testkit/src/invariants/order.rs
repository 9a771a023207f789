use std::collections::{BTreeSet, HashMap};

use pillarbox_core::store::OrderKey;

use super::{Observed, Violation};
use crate::Call;

/// I3: of the events of one key that are for one handler, at most one is being handled, on whichever node; and each is
/// begun for the first time after those with a lower `seq` were. Events without a key have no order.
///
/// It holds where nodes share the partitions, or a single node delivers in the order of the table. What was delivered may
/// come again after a crash, behind later ones: that is a duplicate and no first delivery. A node that has lost its lease
/// may still be running a handler when the new owner begins, so a test of that case does not assert this.
///
/// # Errors
/// The first call that overlaps another of its key, or comes too late.
pub fn i3_events_of_a_key_are_handled_one_at_a_time_and_in_order(observed: &Observed) -> Result<(), Violation> {
    let violated = |what| Err(Violation { invariant: "I3 (per key, at most one delivery runs, in seq order)", what });
    let mut by_key: HashMap<&OrderKey, Vec<&Call>> = HashMap::new();
    for call in observed.calls.values().flatten() {
        if let Some(key) = &call.order_key {
            by_key.entry(key).or_default().push(call);
        }
    }
    for (OrderKey { handler, key }, mut calls) in by_key {
        calls.sort_by_key(|call| (call.began, call.seq));
        let of =
            handler.as_deref().map_or_else(|| format!("key `{key}`"), |handler| format!("key `{key}` of `{handler}`"));
        let overlap = calls.windows(2).find(|pair| pair[0].ended.is_none_or(|(ended, _)| ended > pair[1].began));
        if let Some([first, second]) = overlap {
            let what = format!(
                "event {} was begun by {} while {} was at event {}",
                second.id, second.node, first.node, first.id
            );
            return violated(format!("{of}: {what}"));
        }
        let mut begun = BTreeSet::new();
        for call in calls {
            let last = begun.last().copied();
            if begun.insert(call.seq)
                && let Some(last) = last.filter(|last| *last > call.seq)
            {
                return violated(format!("{of}: row {last} was begun before row {}", call.seq));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pillarbox_core::event::{EventId, Payload};
    use pillarbox_core::handle::Path;
    use pillarbox_core::ownership::NodeId;
    use tokio::time::Instant;

    use super::*;
    use crate::Ending;

    /// The handler, the key and the `seq` of a call, and the seconds at which it began and ended.
    type Seen = (Option<&'static str>, Option<&'static str>, i64, u64, Option<u64>);

    fn observed(calls: &[Seen]) -> Observed {
        let start = Instant::now();
        let at = |moment| start + Duration::from_secs(moment);
        let mut observed = Observed::default();
        for (handler, key, seq, began, ended) in calls {
            let id = EventId::new(format!("event-{seq}")).expect("a valid id");
            let order_key = key.map(|key| OrderKey { handler: handler.map(Box::from), key: key.into() });
            let call = Call {
                id: id.clone(),
                seq: *seq,
                order_key,
                payload: Payload::Json("{}".into()),
                path: Path::Cold,
                attempt: 1,
                node: NodeId::from_stored("a-1"),
                began: at(*began),
                ended: ended.map(|ended| (at(ended), Ending::Done)),
            };
            observed.calls.entry(id).or_default().push(call);
        }
        observed
    }

    #[test]
    fn calls_in_order_are_no_violation() {
        let (a, b, mail) = (Some("a"), Some("b"), Some("mail"));
        let good: [&[Seen]; 6] = [
            &[],
            &[(None, a, 1, 0, Some(1)), (None, a, 2, 1, Some(2)), (None, a, 3, 5, None)],
            // Other keys, other handlers and events without a key at the same time, and in any order.
            &[
                (None, a, 2, 0, Some(9)),
                (None, b, 1, 1, Some(2)),
                (mail, a, 1, 2, Some(3)),
                (None, None, 1, 3, Some(4)),
            ],
            &[(None, None, 2, 0, Some(9)), (None, None, 1, 1, Some(2))],
            // A failing head that is tried again, and one that was given up in the meantime.
            &[(None, a, 1, 0, Some(1)), (None, a, 1, 2, Some(3)), (None, a, 2, 3, Some(4))],
            // After a crash what was delivered comes again.
            &[(None, a, 1, 0, Some(1)), (None, a, 2, 1, Some(2)), (None, a, 1, 3, Some(4)), (None, a, 2, 4, Some(5))],
        ];
        for calls in good {
            i3_events_of_a_key_are_handled_one_at_a_time_and_in_order(&observed(calls)).expect("it is in order");
        }
    }

    #[test]
    fn calls_that_overlap_or_come_too_late_are_named() {
        let (a, mail) = (Some("a"), Some("mail"));
        let bad: [(&[Seen], &str); 5] = [
            (&[(None, a, 1, 0, Some(2)), (None, a, 2, 1, Some(3))], "key `a`: event event-2 was begun by a-1 while"),
            (&[(None, a, 1, 0, None), (None, a, 2, 9, Some(9))], "was at event event-1"),
            (&[(mail, a, 1, 0, Some(2)), (mail, a, 1, 1, Some(3))], "key `a` of `mail`"),
            (&[(None, a, 2, 0, Some(1)), (None, a, 1, 2, Some(3))], "row 2 was begun before row 1"),
            (
                &[(None, a, 1, 0, Some(1)), (None, a, 3, 2, Some(3)), (None, a, 1, 4, Some(5)), (None, a, 2, 6, None)],
                "row 3 was begun before row 2",
            ),
        ];
        for (calls, what) in bad {
            let violation = i3_events_of_a_key_are_handled_one_at_a_time_and_in_order(&observed(calls));
            let violation = violation.expect_err(what);
            assert!(violation.what.contains(what), "{violation}");
        }
    }
}
