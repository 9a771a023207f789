//! The number of messages that are under way at once, after a connection has ended over one of them and nobody has said which.

use pillarbox_core::event::EventId;
use pillarbox_core::publisher::{Message, PublishError};

use crate::error::{End, Suspicion};

/// The number of messages that are under way at most; fewer if the broker says so.
pub(crate) const MAX_IN_FLIGHT: u16 = 1_000;

/// Full until a connection ends with messages under way. From then on they are sent beginning with one, and twice as many each
/// time that all have been answered, so that a message over which the broker ends connections is found alone after a few of them.
#[derive(Debug)]
pub(crate) struct Pace {
    window: usize,
    /// The message that was alone on the connection that ended last, and was not blamed for it.
    suspect: Option<EventId>,
}

impl Pace {
    pub(crate) fn full() -> Self {
        Self { window: usize::from(MAX_IN_FLIGHT), suspect: None }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.window >= usize::from(MAX_IN_FLIGHT)
    }

    /// The number of messages to send at once, at least one.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// All that were under way have been answered.
    pub(crate) fn quicken(&mut self) {
        self.window = self.window.saturating_mul(2).min(usize::from(MAX_IN_FLIGHT));
    }

    /// The connection has ended with messages under way.
    pub(crate) fn slow_down(&mut self) {
        self.window = 1;
    }

    /// The error of a message that was alone on the connection when that ended, if the message is to blame. Where the broker has not
    /// said so, it is at the second time in a row: the first may be chance, as where the broker was restarted at that moment.
    pub(crate) fn classify_end(&mut self, message: &Message, end: &End) -> Option<PublishError> {
        let suspicion = end.suspicion?;
        let is_the_second = self.suspect.as_ref() == Some(&message.id);
        self.suspect = (suspicion == Suspicion::Possible && !is_the_second).then(|| message.id.clone());
        self.suspect.is_none().then(|| suspicion.error(&message.target, &end.error))
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::publisher::PublishErrorKind;

    use super::*;

    #[test]
    fn it_begins_with_one_after_an_end_and_is_full_after_ten_answers() {
        let mut pace = Pace::full();
        assert!(pace.is_full());
        pace.slow_down();
        let windows: Vec<_> = std::iter::from_fn(|| {
            let window = (!pace.is_full()).then(|| pace.window());
            pace.quicken();
            window
        })
        .collect();
        assert_eq!(windows, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(pace.window(), 1_000);
    }

    #[test]
    fn a_message_is_to_blame_at_once_if_the_broker_says_so_and_else_at_the_second_time_in_a_row() {
        let end = |suspicion| End { error: PublishError::unavailable("gone"), suspicion };
        let message = |id| Message::new("shop", EventId::new(id).expect("an id"), "");
        let (one, other, mut pace) = (message("one"), message("other"), Pace::full());
        let mut classify_end =
            |message, suspicion| pace.classify_end(message, &end(suspicion)).map(|error| error.kind());
        let possible = Some(Suspicion::Possible);
        assert_eq!([&one, &other, &one].map(|message| classify_end(message, possible)), [None; 3]);
        assert_eq!(classify_end(&one, possible), Some(PublishErrorKind::Temporary));
        assert_eq!(classify_end(&one, possible), None, "each attempt has its own two");
        assert_eq!(classify_end(&other, Some(Suspicion::Refused)), Some(PublishErrorKind::Permanent));
        assert_eq!(classify_end(&other, Some(Suspicion::Forbidden)), Some(PublishErrorKind::Misconfigured));
        assert_eq!(classify_end(&other, None), None);
    }
}
