use std::collections::HashMap;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::DeadEvent;

/// Reasons that are told apart; what a further one would hold is counted as a whole.
const MOST: usize = 1_000;

/// What stands for a word that differs from event to event.
const MASK: &str = "…";

/// From this number of digits on, a word of an error is taken for an id, a time or an amount. Status codes have fewer.
const DIGITS_OF_AN_ID: usize = 4;

/// Why events were given up, from [`DeadEvents::reasons`](super::DeadEvents::reasons).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadReasons {
    /// The reasons, those of most events first. At most a thousand.
    pub reasons: Vec<DeadReason>,
    /// Events that were read and have reasons beyond these thousand.
    pub others: u64,
    /// Events that were read, each once for every handler that gave it up: those of all reasons, and the others.
    pub read: u64,
    /// True if more events match than were to be read.
    pub has_more: bool,
}

/// Events of one type that one handler gave up with the same error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadReason {
    /// The type of the events.
    pub event_type: String,
    /// The handler that gave them up, if their events have several.
    pub handler: Option<String>,
    /// Their error. Words with four digits or more, which are ids or times, do not tell errors apart, and are `…` where they differ. `None`
    /// for rows without an error, as another program may have left them.
    pub error: Option<String>,
    /// A text that the errors of all of them contain, for [`DeadFilter::error_contains`](pillarbox_core::store::DeadFilter::error_contains).
    /// `None` if nothing is common to them.
    pub common_text: Option<String>,
    /// Number of events.
    pub events: u64,
    /// When the first of them was given up, if that is recorded.
    pub first: Option<Timestamp>,
    /// When the last one was.
    pub last: Option<Timestamp>,
    /// The row of one of them, the last one in the order of the table, as an example.
    pub seq: i64,
    /// The id of that event.
    pub event_id: String,
}

/// What tells one reason from another: type, handler and the pattern of the error.
type Key = (String, Option<String>, Option<String>);

/// Puts events under their reasons.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    /// The reason, its error as the first event had it until another one differs.
    reasons: HashMap<Key, DeadReason>,
    others: u64,
    read: u64,
}

impl Grouping {
    pub(super) fn add(&mut self, event: DeadEvent) {
        self.read += 1;
        let pattern = event.last_error.as_deref().map(pattern);
        let key = (event.event_type, event.handler, pattern);
        if let Some(reason) = self.reasons.get_mut(&key) {
            if reason.error != event.last_error {
                reason.error = key.2;
            }
            reason.events += 1;
            reason.first = reason.first.into_iter().chain(event.dead_at).min();
            reason.last = reason.last.max(event.dead_at);
            reason.seq = event.seq;
            reason.event_id = event.event_id;
        } else if self.reasons.len() < MOST {
            let reason = DeadReason {
                event_type: key.0.clone(),
                handler: key.1.clone(),
                error: event.last_error,
                common_text: key.2.as_deref().and_then(longest_part),
                events: 1,
                first: event.dead_at,
                last: event.dead_at,
                seq: event.seq,
                event_id: event.event_id,
            };
            self.reasons.insert(key, reason);
        } else {
            self.others += 1;
        }
    }

    pub(super) fn finish(self, has_more: bool) -> DeadReasons {
        let mut reasons: Vec<DeadReason> = self.reasons.into_values().collect();
        reasons.sort_by(|a, b| b.events.cmp(&a.events).then(b.last.cmp(&a.last)).then(b.seq.cmp(&a.seq)));
        DeadReasons { reasons, others: self.others, read: self.read, has_more }
    }
}

/// The error, with a mark in the place of each word that has the digits of an id.
fn pattern(error: &str) -> String {
    let mut pattern = String::with_capacity(error.len());
    let mut rest = error;
    while !rest.is_empty() {
        let word = rest.find(|c| !is_of_a_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(word);
        let has_id = word.bytes().filter(u8::is_ascii_digit).count() >= DIGITS_OF_AN_ID;
        pattern.push_str(if has_id { MASK } else { word });
        let between = behind.find(is_of_a_word).unwrap_or(behind.len());
        let (between, next) = behind.split_at(between);
        pattern.push_str(between);
        rest = next;
    }
    pattern
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// The longest part of a pattern between two marks.
fn longest_part(pattern: &str) -> Option<String> {
    let part = pattern.split(MASK).map(str::trim).max_by_key(|part| part.len())?;
    Some(part).filter(|part| !part.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: i64, event_type: &str, error: Option<&str>, dead_at: Option<i64>) -> DeadEvent {
        DeadEvent {
            seq,
            event_id: format!("event-{seq}"),
            event_type: event_type.to_owned(),
            aggregate_type: "order".to_owned(),
            aggregate_id: None,
            tenant_id: None,
            key: None,
            handler: None,
            attempts: 10,
            last_error: error.map(str::to_owned),
            created_at: Timestamp::from_micros(0),
            dead_at: dead_at.map(Timestamp::from_micros),
        }
    }

    fn group(events: impl IntoIterator<Item = DeadEvent>) -> DeadReasons {
        let mut grouping = Grouping::default();
        for event in events {
            grouping.add(event);
        }
        grouping.finish(false)
    }

    #[test]
    fn errors_that_differ_in_an_id_are_one_reason_and_those_that_differ_in_a_status_are_two() {
        let found = group([
            event(1, "placed", Some("order 47110 at 12:30: HTTP 503"), Some(5)),
            event(2, "placed", Some("order 3fa85f64-5717-4562 at 12:30: HTTP 503"), Some(3)),
            event(3, "placed", Some("order 47111 at 12:30: HTTP 400"), Some(4)),
            event(4, "placed", Some("order 47112 at 12:30: HTTP 503"), None),
        ]);
        let [most, least] = found.reasons.as_slice() else { panic!("{found:?}") };
        assert_eq!((most.events, least.events, found.read, found.others), (3, 1, 4, 0));
        assert_eq!(most.error.as_deref(), Some("order … at 12:30: HTTP 503"));
        assert_eq!(most.common_text.as_deref(), Some("at 12:30: HTTP 503"));
        assert_eq!([most.first, most.last], [3, 5].map(|micros| Some(Timestamp::from_micros(micros))));
        assert_eq!((most.seq, most.event_id.as_str()), (4, "event-4"));
        assert_eq!(least.error.as_deref(), Some("order 47111 at 12:30: HTTP 400"));
    }

    #[test]
    fn an_error_that_all_have_is_shown_whole() {
        let found = group((0..3).map(|seq| event(seq, "placed", Some("no customer 47110"), Some(seq))));
        let [reason] = found.reasons.as_slice() else { panic!("{found:?}") };
        assert_eq!(reason.error.as_deref(), Some("no customer 47110"));
        assert_eq!(reason.common_text.as_deref(), Some("no customer"));
    }

    #[test]
    fn types_handlers_and_rows_without_an_error_are_told_apart() {
        let mut of_a_handler = event(4, "placed", Some("no"), None);
        of_a_handler.handler = Some("mailer".to_owned());
        let rows = [event(1, "placed", Some("no"), None), event(2, "paid", Some("no"), None), of_a_handler];
        let found = group(rows.into_iter().chain([event(3, "placed", None, None)]));
        assert_eq!(found.reasons.len(), 4);
        let nothing = found.reasons.iter().find(|reason| reason.error.is_none());
        assert_eq!(nothing.map(|reason| (reason.seq, reason.common_text.clone())), Some((3, None)));
    }

    #[test]
    fn a_text_of_ids_alone_has_nothing_in_common() {
        let found =
            group([event(1, "placed", Some("12345 67890"), None), event(2, "placed", Some("12346 67891"), None)]);
        let [reason] = found.reasons.as_slice() else { panic!("{found:?}") };
        assert_eq!((reason.error.as_deref(), reason.common_text.as_deref()), (Some("… …"), None));
    }

    #[test]
    fn no_more_than_a_thousand_reasons_are_held() {
        let word = |number: i64| char::from_u32(0x4e00 + u32::try_from(number).unwrap()).unwrap().to_string();
        let found = group((0..1_200).map(|seq| event(seq, "placed", Some(&word(seq)), None)));
        assert_eq!((found.reasons.len(), found.others, found.read), (1_000, 200, 1_200));
    }
}
