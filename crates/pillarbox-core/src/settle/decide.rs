use std::time::Duration;

use super::{Change, clean_error};
use crate::clock::Random;
use crate::handle::{HandlerError, HandlerErrorKind, Outcome, Unroutable};
use crate::retry::RetryPolicy;
use crate::store::Row;

/// Longest wait a handler can ask for. What it means by more is never, which is DEAD.
const MAX_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// The handler returned.
    Ended(Result<Outcome, HandlerError>),
    /// The handler panicked, with this message.
    Panicked(String),
    /// No handler takes the event.
    Unroutable,
}

/// What the user set about failures.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) max_attempts: u32,
    pub(crate) policy: &'a dyn RetryPolicy,
    pub(crate) unroutable: Unroutable,
    pub(crate) random: &'a dyn Random,
}

/// The whole of what decides about a row after an attempt.
pub(crate) fn decide(row: &Row, attempt: Attempt, rules: &Rules<'_>) -> Change {
    let attempts = row.attempts;
    let dead = |reason: &str| Change::Dead { attempts, error: clean_error(reason) };
    match attempt {
        Attempt::Ended(Ok(Outcome::Done)) => Change::Done,
        Attempt::Ended(Ok(Outcome::RetryAfter(delay))) => {
            Change::Retry { attempts, delay: delay.min(MAX_DELAY), error: None }
        }
        Attempt::Ended(Ok(Outcome::Dead(reason))) => dead(&reason),
        Attempt::Ended(Err(error)) => match error.kind() {
            HandlerErrorKind::Unrecoverable => dead(&error.text()),
            HandlerErrorKind::Retryable => failed(attempts, &error.text(), None, rules),
            HandlerErrorKind::RetryAfter(delay) => failed(attempts, &error.text(), Some(delay), rules),
        },
        Attempt::Panicked(message) => failed(attempts, &format!("the handler panicked: {message}"), None, rules),
        Attempt::Unroutable => {
            let error = format!(
                "no handler is registered for event type `{}` of aggregate type `{}`",
                row.event_type, row.aggregate_type
            );
            match rules.unroutable {
                Unroutable::Dead => dead(&error),
                Unroutable::Park(delay) => {
                    Change::Retry { attempts, delay: delay.min(MAX_DELAY), error: Some(clean_error(&error)) }
                }
            }
        }
    }
}

/// A failure that counts: tried again until the limit is reached.
fn failed(attempts: u32, error: &str, delay: Option<Duration>, rules: &Rules<'_>) -> Change {
    let attempts = attempts.saturating_add(1);
    let error = clean_error(error);
    if attempts >= rules.max_attempts {
        return Change::Dead { attempts, error };
    }
    let delay = delay.unwrap_or_else(|| rules.policy.delay(attempts, rules.random)).min(MAX_DELAY);
    Change::Retry { attempts, delay, error: Some(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemRandom, Timestamp};
    use crate::event::{EventId, Headers, Payload};

    #[derive(Debug)]
    struct Seconds;
    impl RetryPolicy for Seconds {
        fn delay(&self, failures: u32, _: &dyn Random) -> Duration {
            Duration::from_secs(failures.into())
        }
    }

    fn row(attempts: u32) -> Row {
        Row {
            seq: 1,
            event_id: EventId::new("e").expect("valid"),
            event_type: "t".into(),
            aggregate_type: "a".into(),
            aggregate_id: None,
            tenant_id: None,
            key: None,
            headers: Headers::new(),
            payload: Payload::Json("{}".into()),
            attempts,
            timed: false,
            locked_by: None,
            occurred_at: Timestamp::from_micros(0),
            created_at: Timestamp::from_micros(0),
        }
    }

    fn after(attempts: u32, attempt: Attempt, unroutable: Unroutable) -> Change {
        let rules = Rules { max_attempts: 3, policy: &Seconds, unroutable, random: &SystemRandom };
        decide(&row(attempts), attempt, &rules)
    }

    fn retry(attempts: u32, seconds: u64, error: Option<&str>) -> Change {
        Change::Retry { attempts, delay: Duration::from_secs(seconds), error: error.map(Into::into) }
    }

    fn dead(attempts: u32, error: &str) -> Change {
        Change::Dead { attempts, error: error.into() }
    }

    #[test]
    fn every_end_of_an_attempt_has_its_change() {
        let ok = |outcome| Attempt::Ended(Ok(outcome));
        let err = |error| Attempt::Ended(Err(error));
        let minute = Duration::from_secs(60);
        let unroutable = "no handler is registered for event type `t` of aggregate type `a`";
        let table = [
            (0, ok(Outcome::Done), Change::Done),
            (1, ok(Outcome::RetryAfter(minute)), retry(1, 60, None)),
            (1, ok(Outcome::RetryAfter(Duration::ZERO)), retry(1, 0, None)),
            (9, ok(Outcome::RetryAfter(minute)), retry(9, 60, None)),
            (1, ok(Outcome::Dead("no".into())), dead(1, "no")),
            (0, err(HandlerError::retryable("x")), retry(1, 1, Some("x"))),
            (1, err(HandlerError::retryable("x")), retry(2, 2, Some("x"))),
            (2, err(HandlerError::retryable("x")), dead(3, "x")),
            (7, err(HandlerError::retryable("x")), dead(8, "x")),
            (0, err(HandlerError::retry_after(minute, "x")), retry(1, 60, Some("x"))),
            (2, err(HandlerError::retry_after(minute, "x")), dead(3, "x")),
            (0, err(HandlerError::unrecoverable("x")), dead(0, "x")),
            (2, err(HandlerError::unrecoverable("x")), dead(2, "x")),
            (0, Attempt::Panicked("boom".into()), retry(1, 1, Some("the handler panicked: boom"))),
            (2, Attempt::Panicked("boom".into()), dead(3, "the handler panicked: boom")),
            (1, Attempt::Unroutable, dead(1, unroutable)),
        ];
        for (attempts, attempt, expected) in table {
            let case = format!("{attempt:?} after {attempts}");
            assert_eq!(after(attempts, attempt, Unroutable::Dead), expected, "{case}");
        }
        assert_eq!(after(9, Attempt::Unroutable, Unroutable::Park(minute)), retry(9, 60, Some(unroutable)));
    }

    #[test]
    fn a_wait_longer_than_a_database_can_hold_is_cut() {
        let change = after(0, Attempt::Ended(Ok(Outcome::RetryAfter(Duration::MAX))), Unroutable::Dead);
        assert_eq!(change, Change::Retry { attempts: 0, delay: MAX_DELAY, error: None });
    }
}
