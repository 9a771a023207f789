use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::handle::{HandlerError, Outcome};
use pillarbox_core::publisher::{PublishError, PublishErrorKind, Receipt};

use crate::guard::Called;

pub(crate) type Answer = Result<Outcome, HandlerError>;

/// How long an event stays away whose own target is missing, while its route goes on.
const STRANDED: Duration = Duration::from_secs(30);

/// What all receipts of a call say about the destination.
pub(crate) fn verdict<'a>(receipts: impl IntoIterator<Item = &'a Receipt>) -> Called {
    let (mut refused, mut declined): (Option<&PublishError>, Option<&PublishError>) = (None, None);
    for receipt in receipts {
        match receipt {
            Ok(()) => return Called::Well,
            Err(error) if error.blames_the_destination() => refused = Some(refused.unwrap_or(error)),
            // One that will never be taken says that the destination is there, and well.
            Err(error) if error.kind() == PublishErrorKind::Permanent => {}
            Err(error) => declined = Some(declined.unwrap_or(error)),
        }
    }
    let problem = |error: &PublishError| -> Arc<str> { error.to_string().into() };
    match (refused, declined) {
        (Some(error), _) => Called::Refused { problem: problem(error), after: error.delay() },
        (None, Some(error)) => Called::Declined { problem: problem(error) },
        (None, None) => Called::Well,
    }
}

/// What becomes of an event by its receipt; `pause` is how long its route is paused from now on, if it is.
pub(crate) fn answer(route: &str, receipt: Receipt, pause: Option<Duration>) -> Answer {
    let Err(error) = receipt else { return Ok(Outcome::Done) };
    let (kind, asked) = (error.kind(), error.delay());
    let text = format!("route `{route}`: {error}");
    Err(match (kind, asked) {
        (PublishErrorKind::Unavailable | PublishErrorKind::Misconfigured, asked) => {
            let delay =
                pause.unwrap_or(if kind == PublishErrorKind::Misconfigured { STRANDED } else { Duration::ZERO });
            HandlerError::not_here(delay.max(asked.unwrap_or_default()), text)
        }
        (PublishErrorKind::Temporary, Some(delay)) => HandlerError::retry_after(delay, text),
        (PublishErrorKind::Temporary, None) => HandlerError::retryable(text),
        (PublishErrorKind::Permanent, _) => HandlerError::unrecoverable(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_blames_the_destination_only_if_nothing_was_taken() {
        let away = || Err(PublishError::unavailable("away"));
        let busy = || Err(PublishError::unavailable("busy").retry_after(Duration::from_secs(7)));
        let odd = || Err(PublishError::temporary("500"));
        let large = || Err(PublishError::permanent("too large"));
        let refused = |text: &str, after| Called::Refused { problem: text.into(), after };
        let table = [
            (vec![], Called::Well),
            (vec![Ok(()), away()], Called::Well),
            (vec![away(), busy()], refused("away", None)),
            (vec![odd(), busy()], refused("busy", Some(Duration::from_secs(7)))),
            (vec![odd(), large()], Called::Declined { problem: "500".into() }),
            (vec![large()], Called::Well),
        ];
        for (receipts, expected) in table {
            assert_eq!(verdict(&receipts), expected, "{receipts:?}");
        }
    }
}
