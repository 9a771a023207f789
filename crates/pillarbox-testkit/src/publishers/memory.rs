mod harness;
mod way;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt, header};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

pub use harness::MemoryPublisherHarness;
use way::Way;
pub use way::{Answer, MemoryLink};

/// A publisher without a broker: it keeps what it is given, and fails when told to. Clones share everything.
///
/// ```
/// use pillarbox_core::publisher::{PublishError, Publisher};
/// use pillarbox_testkit::publishers::message;
/// use pillarbox_testkit::{Answer, MemoryPublisher};
///
/// # async fn example() {
/// let publisher = MemoryPublisher::new();
/// assert!(publisher.publish(vec![message("orders")]).await[0].is_ok());
///
/// publisher.answer(Answer::Fail(PublishError::temporary("the queue is full")));
/// assert!(publisher.publish(vec![message("orders")]).await[0].is_err());
///
/// publisher.answer_each(|message| match &*message.target {
///     "broken" => Answer::Fail(PublishError::permanent("too large")),
///     _ => Answer::Confirm,
/// });
/// assert_eq!((publisher.published().len(), publisher.calls().len()), (1, 2));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryPublisher {
    info: PublisherInfo,
    broker: Arc<Broker>,
    way: Arc<Way>,
    timeout: Duration,
    closed: Arc<watch::Sender<bool>>,
}

/// The broker behind the publisher.
#[derive(Debug, Default)]
struct Broker {
    kept: Mutex<Kept>,
    /// The number of calls that have begun, and of messages that were taken.
    progress: watch::Sender<(usize, usize)>,
    /// The targets that are there; all, if `None`.
    targets: Mutex<Option<HashSet<String>>>,
    /// Bytes of the largest body it takes.
    largest: Option<usize>,
}

#[derive(Debug, Default)]
struct Kept {
    taken: Vec<Message>,
    calls: Vec<Vec<Message>>,
}

impl Default for MemoryPublisher {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryPublisher {
    /// A publisher that takes every message for any target.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Arc::default(), Arc::default(), Duration::from_secs(10))
    }

    fn of(broker: Arc<Broker>, way: Arc<Way>, timeout: Duration) -> Self {
        let info = PublisherInfo::new("memory", "memory:");
        Self { info, broker, way, timeout, closed: Arc::default() }
    }

    /// From now on messages for other targets are refused as misconfigured, and [`check`](Publisher::check) names them.
    pub fn only_targets<'a>(&self, targets: impl IntoIterator<Item = &'a str>) {
        *self.broker.targets() = Some(targets.into_iter().map(str::to_owned).collect());
    }

    /// From now on all messages are answered so; those that wait in [`Answer::Silence`] too.
    pub fn answer(&self, answer: Answer) {
        self.way.set(move |_| answer.clone());
    }

    /// From now on each message is answered as `answer` says.
    pub fn answer_each(&self, answer: impl Fn(&Message) -> Answer + Send + Sync + 'static) {
        self.way.set(answer);
    }

    /// All messages that were taken, duplicates among them, in the order in which they were.
    #[must_use]
    pub fn published(&self) -> Vec<Message> {
        self.broker.kept().taken.clone()
    }

    /// The messages of each call of [`publish`](Publisher::publish), whatever became of them.
    #[must_use]
    pub fn calls(&self) -> Vec<Vec<Message>> {
        self.broker.kept().calls.clone()
    }

    /// Waits until at least `count` messages were taken.
    pub async fn wait_for_published(&self, count: usize) {
        self.wait(|(_, taken)| taken >= count).await;
    }

    /// Waits until at least `count` calls have begun.
    pub async fn wait_for_calls(&self, count: usize) {
        self.wait(|(calls, _)| calls >= count).await;
    }

    async fn wait(&self, reached: impl Fn((usize, usize)) -> bool) {
        let mut progress = self.broker.progress.subscribe();
        // The sender lives in `self`, so waiting ends only when the number is reached.
        drop(progress.wait_for(|now| reached(*now)).await);
    }

    /// The answer to each message, once all are answered.
    async fn answers(&self, messages: &[Message], deadline: Instant) -> Vec<Answer> {
        let generation = self.way.generation();
        loop {
            let answers: Vec<Answer> = messages.iter().map(|message| self.way.answer(message)).collect();
            if !answers.contains(&Answer::Silence) {
                let slowest = answers.iter().filter_map(|answer| match answer {
                    Answer::Slow(delay) => Some(*delay),
                    _ => None,
                });
                if let Some(delay) = slowest.max() {
                    sleep(delay).await;
                }
                return answers;
            }
            if timeout_at(deadline, self.way.changed(&answers, messages)).await.is_err() {
                return silence_is(answers, "no answer came within the limit");
            }
            if self.way.generation() != generation {
                return silence_is(answers, "the connection was cut");
            }
        }
    }

    fn take(&self, mut message: Message, answer: Answer) -> Receipt {
        match answer {
            Answer::Fail(error) => return Err(error),
            Answer::Silence => return Err(PublishError::unavailable("no answer")),
            Answer::Confirm | Answer::Slow(_) | Answer::LostAnswer => {}
        }
        self.broker.accepts(&message.target, message.body.len())?;
        message.headers.retain(|(name, _)| !header::imitates(name));
        let position = {
            let taken = &mut self.broker.kept().taken;
            taken.push(message);
            taken.len()
        };
        self.broker.progress.send_modify(|(_, taken)| *taken += 1);
        match answer {
            Answer::LostAnswer => Err(PublishError::unavailable("the answer was lost")),
            _ => Ok(Some(format!("memory/{position}"))),
        }
    }
}

fn silence_is(answers: Vec<Answer>, problem: &str) -> Vec<Answer> {
    let silence = || Answer::Fail(PublishError::unavailable(problem));
    answers.into_iter().map(|answer| if answer == Answer::Silence { silence() } else { answer }).collect()
}

impl Broker {
    fn accepts(&self, target: &str, bytes: usize) -> Result<(), PublishError> {
        if target.is_empty() {
            return Err(PublishError::permanent("the target is empty; name one"));
        }
        if self.largest.is_some_and(|largest| bytes > largest) {
            return Err(PublishError::permanent(format!("the body of {bytes} bytes is too large")));
        }
        if self.targets().as_ref().is_some_and(|targets| !targets.contains(target)) {
            return Err(PublishError::misconfigured(format!("there is no target `{target}`; make it")));
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn targets(&self) -> MutexGuard<'_, Option<HashSet<String>>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Publisher for MemoryPublisher {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        // What a message would be answered is what a check is answered, but nothing is taken.
        let probe = [super::message("check")];
        let answers = self.answers(&probe, Instant::now() + self.timeout).await;
        if let Some(Answer::Fail(error)) = answers.into_iter().next() {
            return Err(error);
        }
        targets.iter().try_for_each(|target| self.broker.accepts(target, 0))
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        let deadline = Instant::now() + self.timeout;
        self.broker.kept().calls.push(messages.clone());
        self.broker.progress.send_modify(|(calls, _)| *calls += 1);
        let mut closing = self.closed.subscribe();
        let answers = tokio::select! {
            // Closed first, so that nothing is taken once it is.
            biased;
            _ = closing.wait_for(|closed| *closed) => {
                return messages.iter().map(|_| Err(PublishError::unavailable("the publisher is closed"))).collect();
            }
            answers = self.answers(&messages, deadline) => answers,
            () = sleep_until(deadline) => silence_is(vec![Answer::Silence; messages.len()], "no answer came within the limit"),
        };
        messages.into_iter().zip(answers).map(|(message, answer)| self.take(message, answer)).collect()
    }

    async fn close(&self) {
        self.closed.send_replace(true);
    }
}
