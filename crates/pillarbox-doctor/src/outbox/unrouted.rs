use std::collections::BTreeSet;

use pillarbox_core::examine::Checked;
use pillarbox_core::store::PendingEvent;

use super::{checks, in_line};

/// Pending events that have failed or were deferred that are looked at, those written first.
pub(super) const LOOKED_AT: usize = 1000;
/// Event types that are named.
const TYPES: usize = 5;

/// Judges the pending events that have failed or were deferred, of which one more than are looked at may have been read.
pub(super) fn judge(retrying: &[PendingEvent]) -> Checked {
    let is_all = retrying.len() <= LOOKED_AT;
    let unrouted: Vec<_> = retrying.iter().take(LOOKED_AT).filter(|event| event.is_unrouted()).collect();
    let Some(first) = unrouted.first() else {
        if is_all {
            return checks::UNROUTED.healthy();
        }
        return checks::UNROUTED.not_checked(format!(
            "more than {LOOKED_AT} events wait for another attempt, and the first {LOOKED_AT} of them for another reason"
        ));
    };
    let types: BTreeSet<&str> = unrouted.iter().map(|event| event.event_type.as_str()).collect();
    let names: Vec<String> = types.iter().take(TYPES).map(|name| format!("`{}`", in_line(name))).collect();
    let others = if types.len() > TYPES { format!(" and {} others", types.len() - TYPES) } else { String::new() };
    let least = if is_all { "" } else { "at least " };
    let error = in_line(first.last_error.as_deref().unwrap_or_default());
    let (count, names) = (unrouted.len(), names.join(", "));
    checks::UNROUTED
        .found(format!("events: {least}{count}, of type {names}{others}; the first is row {}: {error}", first.seq))
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use pillarbox_core::clock::Timestamp;
    use pillarbox_core::examine::Judgement;
    use pillarbox_core::store::PendingState;

    use super::*;

    fn event(seq: i64, event_type: &str, error: &str) -> PendingEvent {
        PendingEvent {
            seq,
            event_id: seq.to_string(),
            event_type: event_type.to_owned(),
            aggregate_type: event_type.to_owned(),
            aggregate_id: None,
            tenant_id: None,
            key: None,
            handler: None,
            state: PendingState::Retrying,
            attempts: 1,
            last_error: Some(error.to_owned()),
            created_at: Timestamp::from_micros(0),
            due_at: None,
            held_by: None,
        }
    }

    fn failed(count: usize) -> Vec<PendingEvent> {
        (1..).take(count).map(|seq| event(seq, "mail", "503")).collect()
    }

    const NO_ROUTE: &str = "no route takes event type `order`";

    fn evidence(retrying: &[PendingEvent]) -> String {
        match judge(retrying).judgement {
            Judgement::Found { evidence, .. } => evidence,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_said_of_events_behind_those_that_were_looked_at() {
        assert_eq!(judge(&[]).judgement, Judgement::Healthy);
        assert_eq!(judge(&failed(LOOKED_AT)).judgement, Judgement::Healthy, "these are all");
        let judged = judge(&failed(LOOKED_AT + 1)).judgement;
        assert!(
            matches!(&judged, Judgement::NotChecked { reason } if reason.starts_with("more than 1000")),
            "{judged:?}"
        );
    }

    #[test]
    fn unrouted_events_are_counted_and_their_types_are_named() {
        let two = [event(7, "order", NO_ROUTE), event(8, "mail", "503"), event(9, "bill", NO_ROUTE)];
        let expected = format!("events: 2, of type `bill`, `order`; the first is row 7: {NO_ROUTE}");
        assert_eq!(evidence(&two), expected);
        let more: Vec<_> = failed(LOOKED_AT - 1).into_iter().chain([two[0].clone(), two[1].clone()]).collect();
        assert!(evidence(&more).starts_with("events: at least 1, of type `order`; "), "{}", evidence(&more));
        let many: Vec<_> = (0..7).map(|number| event(number, &format!("t{number}"), NO_ROUTE)).collect();
        assert!(evidence(&many).contains("`t4` and 2 others; the first is row 0"), "{}", evidence(&many));
    }
}
