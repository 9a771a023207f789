use std::time::Duration;

use pillarbox_core::handle::{HandlerError, Outcome};
use pillarbox_core::planted_bug;
use pillarbox_core::publisher::{FailureScope, PublishError, PublishErrorKind, Receipt};

use crate::breaker::CallResult;

pub(super) type Answer = Result<Outcome, HandlerError>;

/// The state of a destination, by all receipts of a call; `None` if they say nothing about it.
pub(super) fn verdict<'a>(receipts: impl IntoIterator<Item = &'a Receipt>) -> Option<CallResult> {
    let (mut refused, mut declined): (Option<&PublishError>, Option<&PublishError>) = (None, None);
    let mut asked: Option<(&PublishError, Duration)> = None;
    let (mut taken, mut answered) = (false, false);
    for receipt in receipts {
        match receipt {
            Ok(_) => taken = true,
            Err(error) if error.scope() == FailureScope::Message => {}
            Err(error) if error.blames_the_destination() => {
                refused = Some(refused.unwrap_or(error));
                let pause = error.delay().filter(|_| error.kind() == PublishErrorKind::Unavailable);
                if pause > asked.map(|(_, longest)| longest) {
                    asked = pause.map(|pause| (error, pause));
                }
            }
            // One that will never be taken says that the destination is there, and well.
            Err(error) if error.kind() == PublishErrorKind::Permanent => answered = true,
            Err(error) => declined = Some(declined.unwrap_or(error)),
        }
    }
    match (asked, refused, declined) {
        (Some((error, after)), ..) if taken => {
            Some(CallResult::PauseRequested { problem: error.to_string().into(), after })
        }
        _ if taken => Some(CallResult::Well),
        (Some((error, _)), ..) | (None, Some(error), _) => Some(refusal(error)),
        (None, None, Some(error)) => Some(declination(error)),
        (None, None, None) => answered.then_some(CallResult::Well),
    }
}

/// The destination is to blame for a failure.
pub(super) fn refusal(error: &PublishError) -> CallResult {
    CallResult::Refused { problem: error.to_string().into(), after: error.delay() }
}

/// The destination has declined a message for itself.
pub(super) fn declination(error: &PublishError) -> CallResult {
    CallResult::Declined { problem: error.to_string().into() }
}

/// The answer for an event by its receipt; `delay` is the time for which it stays away if the destination is to blame, where that is known.
pub(super) fn answer(route: &str, receipt: Receipt, delay: Option<Duration>) -> Answer {
    let error = match receipt {
        Ok(position) => return Ok(position.map_or(Outcome::Done, Outcome::DeliveredAs)),
        Err(error) => error,
    };
    if planted_bug::is_active("unconfirmed_is_done") && error.kind() == PublishErrorKind::Unavailable {
        return Ok(Outcome::Done);
    }
    let (kind, asked) = (error.kind(), error.delay());
    let text = format!("route `{route}`: {error}");
    Err(match (kind, asked) {
        (PublishErrorKind::Unavailable | PublishErrorKind::Misconfigured, asked) => {
            HandlerError::deferred_on_this_node(delay.unwrap_or_default().max(asked.unwrap_or_default()), text)
        }
        (PublishErrorKind::Temporary, Some(delay)) => HandlerError::retry_after(delay, text),
        (PublishErrorKind::Temporary, None) => HandlerError::retryable(text),
        (PublishErrorKind::Permanent, _) => HandlerError::unrecoverable(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: Duration = Duration::from_secs(7);

    #[test]
    fn an_event_is_delivered_as_its_receipt_says() {
        assert!(matches!(answer("r", Ok(None), None), Ok(Outcome::Done)));
        let answer = answer("r", Ok(Some("ORDERS/7".to_owned())), None);
        assert!(matches!(&answer, Ok(Outcome::DeliveredAs(position)) if position == "ORDERS/7"), "{answer:?}");
    }

    #[test]
    fn a_call_blames_the_destination_only_if_nothing_was_taken_or_it_asks_for_a_pause() {
        let away = || Err(PublishError::unavailable("away"));
        let busy = || Err(PublishError::unavailable("busy").retry_after(SEVEN));
        let odd = || Err(PublishError::temporary("500"));
        let large = || Err(PublishError::permanent("too large"));
        let behind = || Err(PublishError::unavailable("was not sent").limited_to(FailureScope::Message));
        let briefly = || Err(PublishError::unavailable("brief").retry_after(Duration::from_secs(1)));
        let later = || Err(PublishError::unavailable("later").limited_to(FailureScope::Message).retry_after(SEVEN));
        let refused = |text: &str, after| Some(CallResult::Refused { problem: text.into(), after });
        let table = [
            (vec![], None),
            (vec![behind()], None),
            (vec![Ok(None), away()], Some(CallResult::Well)),
            (vec![Ok(None), busy(), away()], Some(CallResult::PauseRequested { problem: "busy".into(), after: SEVEN })),
            (vec![Ok(None), later()], Some(CallResult::Well)),
            (vec![away(), behind()], refused("away", None)),
            (vec![away(), briefly(), busy(), behind()], refused("busy", Some(SEVEN))),
            (vec![odd(), busy()], refused("busy", Some(SEVEN))),
            (vec![behind(), odd(), large()], Some(CallResult::Declined { problem: "500".into() })),
            (vec![large()], Some(CallResult::Well)),
        ];
        for (receipts, expected) in table {
            assert_eq!(verdict(&receipts), expected, "{receipts:?}");
        }
    }
}
