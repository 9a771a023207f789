use std::collections::HashMap;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::store::DeadEvent;

/// Reasons that are held at a time. Beyond it those of the fewest events go.
const MOST: usize = 2_000;

/// The place in a pattern of a word that differs from event to event. Errors hold no such character.
const PLACE: char = '\0';

/// A common text that is shorter may stand in any error.
const MIN_COMMON_TEXT: usize = 8;

/// Words behind which a number is no id, but says what happened.
const BEFORE_A_CODE: [&str; 10] =
    ["answered", "code", "errno", "error", "exit", "http", "returned", "signal", "sqlstate", "status"];

/// The digits of such a number, at most.
const DIGITS_OF_A_CODE: usize = 5;

/// Why events were given up, from [`DeadEvents::reasons`](super::DeadEvents::reasons).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadReasons {
    /// The reasons, those of most events first: two thousand at most. Where there were more, those of few events were left out.
    pub reasons: Vec<DeadReason>,
    /// Events that were read and whose reasons were left out.
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
    /// Their error. Words with a digit, such as ids and times, do not tell errors apart, and are `*` where the errors differ; a number behind
    /// a word such as `HTTP` or `code` does. `None` for rows without an error, as another program may have left them.
    pub error: Option<String>,
    /// A text that the errors of all of them contain, for [`DeadFilter::error_contains`](pillarbox_core::store::DeadFilter::error_contains).
    /// `None` if nothing of eight characters or more is common to them. Other errors may contain it too.
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

/// The key of a reason: type, handler and the pattern of the error.
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
                reason.error = key.2.map(|pattern| pattern.replace(PLACE, "*"));
            }
            reason.events += 1;
            reason.first = reason.first.into_iter().chain(event.dead_at).min();
            reason.last = reason.last.max(event.dead_at);
            reason.seq = event.seq;
            reason.event_id = event.event_id;
            return;
        }
        if self.reasons.len() >= MOST {
            self.make_room();
        }
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
    }

    /// Leaves out the half of the reasons that has the fewest events, so that one that comes late and often has its place.
    fn make_room(&mut self) {
        let mut counts: Vec<u64> = self.reasons.values().map(|reason| reason.events).collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let few = *median;
        self.reasons.retain(|_, reason| {
            let stays = reason.events > few;
            self.others += if stays { 0 } else { reason.events };
            stays
        });
    }

    pub(super) fn finish(self, has_more: bool) -> DeadReasons {
        let mut reasons: Vec<DeadReason> = self.reasons.into_values().collect();
        reasons.sort_by(|a, b| b.events.cmp(&a.events).then(b.last.cmp(&a.last)).then(b.seq.cmp(&a.seq)));
        DeadReasons { reasons, others: self.others, read: self.read, has_more }
    }
}

/// The error, with [`PLACE`] for each word that has a digit, but for codes.
fn pattern(error: &str) -> String {
    let mut pattern = String::with_capacity(error.len());
    let (mut rest, mut before) = (error, "");
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(rest.find(is_between).unwrap_or(rest.len()));
        let (between, next) = behind.split_at(behind.find(|c| !is_between(c)).unwrap_or(behind.len()));
        let core = word.trim_end_matches(['.', ':', '!', '?']);
        if core.bytes().any(|byte| byte.is_ascii_digit()) && !is_code(before, core) {
            pattern.push(PLACE);
            pattern.push_str(word.strip_prefix(core).unwrap_or_default());
        } else {
            pattern.push_str(word);
        }
        pattern.push_str(between);
        (rest, before) = (next, core);
    }
    pattern
}

/// True for a number that says what happened, by the word before it.
fn is_code(before: &str, word: &str) -> bool {
    word.len() <= DIGITS_OF_A_CODE
        && word.bytes().all(|byte| byte.is_ascii_digit())
        && BEFORE_A_CODE.iter().any(|known| known.eq_ignore_ascii_case(before))
}

/// True for what stands between words. Times and addresses are one word each.
fn is_between(c: char) -> bool {
    c.is_whitespace() || "'\"`()[]{}<>,;=|/".contains(c)
}

/// The longest part of a pattern between two places.
fn longest_part(pattern: &str) -> Option<String> {
    let part = pattern.split(PLACE).map(str::trim).max_by_key(|part| part.len())?;
    Some(part).filter(|part| part.chars().count() >= MIN_COMMON_TEXT).map(str::to_owned)
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
            event(2, "placed", Some("order 3fa85f64-5717-4562 at 12:31: HTTP 503"), Some(3)),
            event(3, "placed", Some("order 47111 at 12:30: HTTP 400"), Some(4)),
            event(4, "placed", Some("order A-1 at 12:30: HTTP 503"), None),
        ]);
        let [most, least] = found.reasons.as_slice() else { panic!("{found:?}") };
        assert_eq!((most.events, least.events, found.read, found.others), (3, 1, 4, 0));
        assert_eq!(most.error.as_deref(), Some("order * at *: HTTP 503"));
        assert_eq!(most.common_text.as_deref(), Some(": HTTP 503"));
        assert_eq!([most.first, most.last], [3, 5].map(|micros| Some(Timestamp::from_micros(micros))));
        assert_eq!((most.seq, most.event_id.as_str()), (4, "event-4"));
        assert_eq!(least.error.as_deref(), Some("order 47111 at 12:30: HTTP 400"));
    }

    #[test]
    fn words_with_a_digit_are_places_but_for_codes() {
        for (error, expected) in [
            ("customer 206 is unknown", "customer * is unknown"),
            ("the bank refuses o-0.", "the bank refuses *."),
            ("HTTP 503 from 10.0.55.47:8443", "HTTP 503 from *"),
            ("error at 2026-11-28T18:42:10Z: deadlock", "error at *: deadlock"),
            (
                "https://bank.example/orders/17: answered 404 Not Found",
                "https://bank.example/orders/*: answered 404 Not Found",
            ),
            ("Error 1205 (HY000): lock wait, code: 40001", "Error 1205 (*): lock wait, code: 40001"),
            ("status 1234567", "status *"),
            ("Zürich 🏔 “17”", "Zürich 🏔 *"),
            ("", ""),
        ] {
            assert_eq!(pattern(error).replace(PLACE, "*"), expected);
        }
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
        let errors = ["no: 12345 67890", "no: 12346 67891"];
        let found = group((0..).zip(errors).map(|(seq, error)| event(seq, "placed", Some(error), None)));
        let [reason] = found.reasons.as_slice() else { panic!("{found:?}") };
        assert_eq!((reason.error.as_deref(), reason.common_text.as_deref()), (Some("no: * *"), None));
    }

    /// The oldest events are read first, and the outage of today is the newest.
    #[test]
    fn a_reason_that_comes_late_and_often_has_its_place_among_many() {
        let word = |number: i64| char::from_u32(0x4e00 + u32::try_from(number).expect("small")).map(String::from);
        let early = (0..5_000).map(|seq| event(seq, "placed", word(seq).as_deref(), None));
        let often = (5_000..8_000).map(|seq| event(seq, "placed", Some("connection refused"), None));
        let found = group(early.chain(often));
        assert!(found.reasons.len() <= MOST, "{}", found.reasons.len());
        assert_eq!((found.reasons[0].events, found.reasons[0].error.as_deref()), (3_000, Some("connection refused")));
        let told: u64 = found.reasons.iter().map(|reason| reason.events).sum();
        assert_eq!((told + found.others, found.read), (8_000, 8_000));
    }
}
