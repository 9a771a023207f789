use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pillarbox_core::publisher::{Message, PublishError};
use tokio::sync::watch;

use crate::publishers::Link;

/// The answer to a message that is given to a [`MemoryPublisher`](super::MemoryPublisher).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answer {
    /// It is taken and confirmed.
    #[default]
    Confirm,
    /// The same after a while.
    Slow(Duration),
    /// It is not taken.
    Fail(PublishError),
    /// It is taken, and unavailable: the connection broke before the confirmation.
    LostAnswer,
    /// No answer comes until the publisher is told otherwise or its limit is reached.
    Silence,
}

type Answers = Arc<dyn Fn(&Message) -> Answer + Send + Sync>;

/// The answers that messages get at the moment.
pub(super) struct Way {
    answers: Mutex<Answers>,
    /// Counts changes, and among them those that cut.
    changes: watch::Sender<(u64, u64)>,
}

impl Default for Way {
    fn default() -> Self {
        Self { answers: Mutex::new(Arc::new(|_| Answer::Confirm)), changes: watch::Sender::default() }
    }
}

impl Way {
    pub(super) fn set(&self, answer: impl Fn(&Message) -> Answer + Send + Sync + 'static) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(answer);
        self.changes.send_modify(|(changes, _)| *changes += 1);
    }

    pub(super) fn answer(&self, message: &Message) -> Answer {
        let answers = Arc::clone(&self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        answers(message)
    }

    pub(super) fn generation(&self) -> u64 {
        self.changes.borrow().1
    }

    /// Waits for a change, unless there was one since `answers` were given.
    pub(super) async fn changed(&self, answers: &[Answer], messages: &[Message]) {
        let mut changes = self.changes.subscribe();
        if messages.iter().zip(answers).all(|(message, answer)| self.answer(message) == *answer) {
            // The sender lives in `self`.
            drop(changes.changed().await);
        }
    }

    fn cut(&self) {
        self.changes.send_modify(|(changes, cuts)| {
            *changes += 1;
            *cuts += 1;
        });
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("changes", &self.changes).finish_non_exhaustive()
    }
}

/// The way to the broker of a [`MemoryPublisherHarness`](super::MemoryPublisherHarness).
#[derive(Debug, Default)]
pub struct MemoryLink {
    pub(super) way: Arc<Way>,
}

impl Link for MemoryLink {
    fn pass(&self) {
        self.way.set(|_| Answer::Confirm);
    }

    fn cut(&self) {
        self.way.set(|_| Answer::Confirm);
        self.way.cut();
    }

    async fn refuse(&self) {
        self.way.set(|_| Answer::Fail(PublishError::unavailable("nobody answers")));
    }

    fn stall(&self) {
        self.way.set(|_| Answer::Silence);
    }
}
