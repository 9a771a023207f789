use std::time::Duration;

use pillarbox_core::clock::Random;
use pillarbox_core::event::GLOBAL_AGGREGATE;
use pillarbox_core::handle::{FailureReason, HandlerError, HandlerErrorKind, Outcome};
use pillarbox_core::planted_bug;
use pillarbox_core::retry::{ErrorFilter, RetryPolicy};
use pillarbox_core::row::Change;
use pillarbox_core::store::{NO_HANDLER, Row};

use crate::handlers::{Unroutable, UnroutableReason};
use crate::observe::clean_error;

/// The longest delay that a handler can ask for; a longer one is capped.
const MAX_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// Shortest wait for an event whose delivery counted no attempt. Without one, a handler that asks for none would be called in a loop that no limit
/// of attempts ends. It is short, since a handler may well ask for some milliseconds, as one that polls does.
const MIN_UNCOUNTED_DELAY: Duration = Duration::from_millis(10);

/// The time after which a handler is called again whose transaction could not be committed. That counts no attempt, since it is a failure of
/// the database's, as where a verdict cannot be recorded.
const COMMIT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The end of an attempt.
#[derive(Debug)]
pub(crate) enum AttemptEnd {
    /// The handler returned.
    Ended(Result<Outcome, HandlerError>),
    /// The right to deliver the event ended before its handler was called.
    NotBegun,
    /// The handler returned, and its transaction has recorded that its event is DONE.
    Recorded,
    /// The handler returned, and its transaction could not be committed, or has been and nobody knows: the table alone decides.
    CommitUncertain(String),
    /// The handler panicked, with this message.
    Panicked(String),
    /// No handler takes the event.
    Unroutable(UnroutableReason),
}

/// The rules for failures, as the user set them.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) max_attempts: u32,
    pub(crate) policy: &'a dyn RetryPolicy,
    pub(crate) errors: &'a ErrorFilter,
    pub(crate) unroutable: Unroutable,
    /// True if an event that nobody takes has waited long enough.
    pub(crate) waited: bool,
    pub(crate) random: &'a dyn Random,
}

/// The decision about a row.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) change: Change,
    /// The reason why it is given up, if it is; a fallback of its handler may still change that.
    pub(crate) given_up: Option<FailureReason>,
}

impl From<Change> for Decision {
    fn from(change: Change) -> Self {
        Self { change, given_up: None }
    }
}

/// The whole of what decides about a row after an attempt.
pub(crate) fn decide_row(row: &Row, attempt: AttemptEnd, rules: &Rules<'_>) -> Decision {
    let attempts = row.attempts;
    let failed = |error: &str, delay| failed(attempts.saturating_add(1), error, delay, rules);
    match attempt {
        // A position is kept, or not, before anything is decided.
        AttemptEnd::Ended(Ok(Outcome::Done | Outcome::DeliveredAs(_))) | AttemptEnd::Recorded => Change::Done.into(),
        AttemptEnd::CommitUncertain(error) => {
            Change::Retry { attempts, delay: COMMIT_RETRY_DELAY, error: Some(clean_error(&error)) }.into()
        }
        AttemptEnd::NotBegun => Change::Retry { attempts, delay: Duration::ZERO, error: None }.into(),
        AttemptEnd::Ended(Ok(Outcome::Defer(delay))) => {
            Change::Retry { attempts, delay: uncounted(delay), error: None }.into()
        }
        AttemptEnd::Ended(Ok(Outcome::Dead(reason))) => given_up(attempts, &reason, FailureReason::NotRetryable),
        AttemptEnd::Ended(Err(error)) => match error.kind() {
            HandlerErrorKind::Unrecoverable => given_up(attempts, &error.text(), FailureReason::NotRetryable),
            HandlerErrorKind::Deferred(delay) | HandlerErrorKind::DeferredOnThisNode(delay) => {
                let error = Some(clean_error(&error.text()));
                Change::Retry { attempts, delay: uncounted(delay), error }.into()
            }
            HandlerErrorKind::Unroutable(delay) => {
                parked(attempts, clean_error(&error.text()), uncounted(delay), rules)
            }
            HandlerErrorKind::Retryable if !rules.errors.passes(error.causes(), |name| error.is_named(name)) => {
                given_up(attempts.saturating_add(1), &error.text(), FailureReason::NotRetryable)
            }
            HandlerErrorKind::Retryable | HandlerErrorKind::Interrupted => failed(&error.text(), None),
            HandlerErrorKind::RetryAfter(delay) => failed(&error.text(), Some(delay)),
        },
        AttemptEnd::Panicked(message) => failed(&format!("the handler panicked: {message}"), None),
        AttemptEnd::Unroutable(why) => {
            let error = clean_error(&unroutable(row, why));
            match rules.unroutable {
                Unroutable::Park(delay) => parked(attempts, error, delay, rules),
                Unroutable::Dead => parked(attempts, error, Duration::ZERO, &Rules { waited: true, ..*rules }),
            }
        }
    }
}

/// The wait that a handler asks for without counting an attempt, within its bounds.
pub(crate) fn uncounted(delay: Duration) -> Duration {
    delay.clamp(MIN_UNCOUNTED_DELAY, MAX_DELAY)
}

/// An event that nobody takes is left for a newer release, unless it has waited for long enough.
fn parked(attempts: u32, error: String, delay: Duration, rules: &Rules<'_>) -> Decision {
    if rules.waited {
        return Decision { change: Change::Dead { attempts, error }, given_up: Some(FailureReason::Unroutable) };
    }
    Change::Retry { attempts, delay: delay.min(MAX_DELAY), error: Some(error) }.into()
}

fn given_up(attempts: u32, error: &str, reason: FailureReason) -> Decision {
    Decision { change: Change::Dead { attempts, error: clean_error(error) }, given_up: Some(reason) }
}

/// A failure that counts, by now the one with the number `attempts`: tried again until the limit is reached.
fn failed(attempts: u32, error: &str, delay: Option<Duration>, rules: &Rules<'_>) -> Decision {
    if attempts + u32::from(planted_bug::is_active("dead_one_attempt_early")) >= rules.max_attempts {
        return given_up(attempts, error, FailureReason::Exhausted);
    }
    let delay = delay.unwrap_or_else(|| rules.policy.delay(attempts, rules.random)).min(MAX_DELAY);
    Change::Retry { attempts, delay, error: Some(clean_error(error)) }.into()
}

/// Returns the error text of a row that no handler takes.
fn unroutable(row: &Row, why: UnroutableReason) -> String {
    let what = format!("event type `{}` of aggregate type `{}`", row.event.event_type(), row.event.aggregate_type());
    let id = row.handler.as_deref().unwrap_or_default();
    match why {
        UnroutableReason::Unknown => format!("{NO_HANDLER}{what}"),
        UnroutableReason::OtherAggregate => {
            let (event_type, aggregate_type) = (row.event.event_type(), row.event.aggregate_type());
            let pair = if aggregate_type == GLOBAL_AGGREGATE {
                format!("`{event_type}` alone")
            } else {
                format!("the pair (`{aggregate_type}`, `{event_type}`)")
            };
            format!(
                "{NO_HANDLER}{what}, only for that event type of another aggregate type; register one for \
                 {pair}"
            )
        }
        UnroutableReason::UnknownHandler => format!("{NO_HANDLER}{what} with the name `{id}`"),
        UnroutableReason::NamesNone => format!(
            "{NO_HANDLER}{what} without a name, and this row names none; insert a row for each handler, with its name in the \
             column `handler`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pillarbox_core::clock::{SystemRandom, Timestamp};
    use pillarbox_core::event::Envelope;
    use pillarbox_core::row::NewRow;

    #[derive(Debug)]
    struct Seconds;
    impl RetryPolicy for Seconds {
        fn delay(&self, failures: u32, _: &dyn Random) -> Duration {
            Duration::from_secs(failures.into())
        }
    }

    fn row(attempts: u32) -> Row {
        let event = Envelope::builder("t").aggregate("a", "1").payload_json("{}").build().expect("valid");
        Row { attempts, ..Row::fresh(&NewRow::new(event), 1, Timestamp::from_micros(0)) }
    }

    /// Three attempts, and none after an error that reads "never".
    fn decision(attempts: u32, attempt: AttemptEnd, unroutable: Unroutable) -> Decision {
        let errors = &ErrorFilter::default().never_retry_on(|error| error.to_string() == "never");
        let rules =
            Rules { max_attempts: 3, policy: &Seconds, errors, unroutable, waited: false, random: &SystemRandom };
        decide_row(&row(attempts), attempt, &rules)
    }

    fn after(attempts: u32, attempt: AttemptEnd, unroutable: Unroutable) -> Change {
        decision(attempts, attempt, unroutable).change
    }

    fn retry(attempts: u32, seconds: u64, error: Option<&str>) -> Change {
        Change::Retry { attempts, delay: Duration::from_secs(seconds), error: error.map(Into::into) }
    }

    fn dead(attempts: u32, error: &str) -> Change {
        Change::Dead { attempts, error: error.into() }
    }

    #[test]
    fn every_end_of_an_attempt_has_its_change() {
        let ok = |outcome| AttemptEnd::Ended(Ok(outcome));
        let err = |error| AttemptEnd::Ended(Err(error));
        let minute = Duration::from_secs(60);
        let unroutable = "no handler is registered for event type `t` of aggregate type `a`";
        let table = [
            (0, ok(Outcome::Done), Change::Done),
            (1, ok(Outcome::delivered_as("s/1")), Change::Done),
            (1, ok(Outcome::Defer(minute)), retry(1, 60, None)),
            (9, ok(Outcome::Defer(minute)), retry(9, 60, None)),
            (1, ok(Outcome::Dead("no".into())), dead(1, "no")),
            (0, err(HandlerError::retryable("x")), retry(1, 1, Some("x"))),
            (1, err(HandlerError::retryable("x")), retry(2, 2, Some("x"))),
            (2, err(HandlerError::retryable("x")), dead(3, "x")),
            (7, err(HandlerError::retryable("x")), dead(8, "x")),
            (0, err(HandlerError::retry_after(minute, "x")), retry(1, 60, Some("x"))),
            (2, err(HandlerError::retry_after(minute, "x")), dead(3, "x")),
            (2, err(HandlerError::deferred(minute, "x")), retry(2, 60, Some("x"))),
            (9, err(HandlerError::deferred(minute, "never")), retry(9, 60, Some("never"))),
            (9, err(HandlerError::deferred_on_this_node(minute, "never")), retry(9, 60, Some("never"))),
            (9, err(HandlerError::unroutable(minute, "never")), retry(9, 60, Some("never"))),
            (0, err(HandlerError::unrecoverable("x")), dead(0, "x")),
            (2, err(HandlerError::unrecoverable("x")), dead(2, "x")),
            // A filter speaks of errors that do not say themselves what should follow.
            (0, err(HandlerError::retryable("never")), dead(1, "never")),
            (0, err(HandlerError::retry_after(minute, "never")), retry(1, 60, Some("never"))),
            (0, err(HandlerError::unrecoverable("never")), dead(0, "never")),
            (0, err(HandlerError::interrupted("never")), retry(1, 1, Some("never"))),
            (0, AttemptEnd::Panicked("never".into()), retry(1, 1, Some("the handler panicked: never"))),
            (0, AttemptEnd::Panicked("boom".into()), retry(1, 1, Some("the handler panicked: boom"))),
            (2, AttemptEnd::Panicked("boom".into()), dead(3, "the handler panicked: boom")),
            (1, AttemptEnd::Unroutable(UnroutableReason::Unknown), dead(1, unroutable)),
        ];
        for (attempts, attempt, expected) in table {
            let case = format!("{attempt:?} after {attempts}");
            assert_eq!(after(attempts, attempt, Unroutable::Dead), expected, "{case}");
        }
        assert_eq!(
            after(9, AttemptEnd::Unroutable(UnroutableReason::Unknown), Unroutable::Park(minute)),
            retry(9, 60, Some(unroutable))
        );
    }

    #[test]
    fn events_that_are_given_up_have_their_reason() {
        use FailureReason::{Exhausted, NotRetryable, Unroutable as NoHandler};
        let err = |error| AttemptEnd::Ended(Err(error));
        let table = [
            (0, AttemptEnd::Ended(Ok(Outcome::Done)), None),
            (0, AttemptEnd::Ended(Ok(Outcome::Dead("no".into()))), Some(NotRetryable)),
            (1, err(HandlerError::retryable("x")), None),
            (2, err(HandlerError::retryable("x")), Some(Exhausted)),
            (2, err(HandlerError::retryable("never")), Some(NotRetryable)),
            (2, err(HandlerError::unrecoverable("x")), Some(NotRetryable)),
            (2, AttemptEnd::Panicked("boom".into()), Some(Exhausted)),
            (0, AttemptEnd::Unroutable(UnroutableReason::Unknown), Some(NoHandler)),
        ];
        for (attempts, attempt, expected) in table {
            let case = format!("{attempt:?} after {attempts}");
            assert_eq!(decision(attempts, attempt, Unroutable::Dead).given_up, expected, "{case}");
        }
    }

    #[test]
    fn unroutable_events_are_given_up_once_they_have_waited() {
        let errors = &ErrorFilter::default();
        let (unroutable, random) = (Unroutable::default(), &SystemRandom);
        let rules = Rules { max_attempts: 3, policy: &Seconds, errors, unroutable, waited: true, random };
        let by_a_route = AttemptEnd::Ended(Err(HandlerError::unroutable(Duration::from_secs(60), "no route")));
        for attempt in [AttemptEnd::Unroutable(UnroutableReason::Unknown), by_a_route] {
            let Decision { change, given_up } = decide_row(&row(1), attempt, &rules);
            assert!(matches!(change, Change::Dead { attempts: 1, .. }), "{change:?}");
            assert_eq!(given_up, Some(FailureReason::Unroutable));
        }
    }

    #[test]
    fn errors_of_unroutable_events_say_why() {
        let error = |why| match after(0, AttemptEnd::Unroutable(why), Unroutable::Dead) {
            Change::Dead { error, .. } => error,
            other => format!("{other:?}"),
        };
        let row = Row { handler: Some("mailer".into()), ..row(0) };
        assert!(unroutable(&row, UnroutableReason::UnknownHandler).contains("with the name `mailer`"));
        assert!(error(UnroutableReason::OtherAggregate).ends_with("register one for the pair (`a`, `t`)"));
        assert!(error(UnroutableReason::NamesNone).contains("column `handler`"));
    }

    #[test]
    fn an_event_that_counts_no_attempt_is_not_delivered_in_a_loop() {
        let err = |error| AttemptEnd::Ended(Err(error));
        let millis = Duration::from_millis;
        for (asked, given) in [(Duration::ZERO, millis(10)), (millis(9), millis(10)), (millis(11), millis(11))] {
            for attempt in [
                AttemptEnd::Ended(Ok(Outcome::Defer(asked))),
                err(HandlerError::deferred(asked, "x")),
                err(HandlerError::deferred_on_this_node(asked, "x")),
                err(HandlerError::unroutable(asked, "x")),
            ] {
                let case = format!("{attempt:?}");
                let change = after(1, attempt, Unroutable::Dead);
                assert!(
                    matches!(change, Change::Retry { attempts: 1, delay, .. } if delay == given),
                    "{case}: {change:?}"
                );
            }
        }
        let counted = after(0, err(HandlerError::retry_after(Duration::ZERO, "x")), Unroutable::Dead);
        assert_eq!(counted, retry(1, 0, Some("x")), "one that counts ends by the limit of attempts");
    }

    #[test]
    fn a_wait_longer_than_a_database_can_hold_is_cut() {
        let change = after(0, AttemptEnd::Ended(Ok(Outcome::Defer(Duration::MAX))), Unroutable::Dead);
        assert_eq!(change, Change::Retry { attempts: 0, delay: MAX_DELAY, error: None });
    }
}
