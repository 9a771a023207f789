use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, try_join};
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{Message, PublishErrorKind, Publisher};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::messages::keyed;

/// The number of messages that [`load_through`] publishes, and their portions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Messages altogether.
    pub messages: usize,
    /// Messages of one call.
    pub batch: usize,
    /// Callers at the same time. Each has a key of its own.
    pub callers: usize,
}

impl Default for Load {
    /// Ten thousand messages by four callers, a hundred each time.
    fn default() -> Self {
        Self { messages: 10_000, batch: 100, callers: 4 }
    }
}

/// The result of [`load_through`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Confirmed {
    /// The ids of all messages; each was confirmed.
    pub ids: Vec<String>,
    /// The number of times that a message was not confirmed and had to be published again.
    pub failures: usize,
    /// The kinds and texts of those failures, and how often each came.
    pub problems: HashMap<String, usize>,
    /// The time that it took.
    pub took: Duration,
}

/// The time that the broker may be away.
const PATIENCE: Duration = Duration::from_secs(120);

/// Publishes to `target` while `disaster` strikes, such as a broker that is killed and started again: `disaster` begins when
/// a third of the messages are confirmed. What fails as unavailable or temporary is published again until it is confirmed, as
/// the relay does, and before anything else of its caller, so that the order stays.
///
/// # Errors
/// When a message fails in another way, when the disaster does, or when confirmations stay away for two minutes.
///
/// ```no_run
/// # use pillarbox_core::{error::BoxError, publisher::Publisher};
/// # use pillarbox_testkit::publishers::{Load, Server, load_through};
/// # async fn example(mut broker: Server, publisher: &dyn Publisher, arrived: Vec<String>) -> Result<(), BoxError> {
/// let confirmed = load_through(publisher, "orders", Load::default(), async {
///     broker.kill().await?;
///     broker.restart().await
/// })
/// .await?;
/// assert!(confirmed.failures > 0, "the broker was away");
/// let duplicates = confirmed.duplicates_among(arrived.iter().map(String::as_str))?;
/// # Ok(()) }
/// ```
pub async fn load_through(
    publisher: &dyn Publisher,
    target: &str,
    load: Load,
    disaster: impl Future<Output = Result<(), BoxError>>,
) -> Result<Confirmed, BoxError> {
    let began = Instant::now();
    let progress = Arc::new(watch::Sender::new(0));
    let own = load.messages.div_ceil(load.callers.max(1));
    let all: Vec<Message> =
        (0..load.messages).map(|number| keyed(target, &format!("caller-{}", number / own.max(1)))).collect();
    let callers = join_all(all.chunks(own.max(1)).map(|own| publish(publisher, own, load.batch.max(1), &progress)));
    let callers = async {
        let mut problems = HashMap::new();
        for caller in callers.await {
            for (problem, times) in caller? {
                *problems.entry(problem).or_insert(0) += times;
            }
        }
        Ok::<_, BoxError>(problems)
    };
    let disaster = async {
        let mut confirmed = progress.subscribe();
        // If the callers fail, both end.
        drop(confirmed.wait_for(|confirmed| *confirmed >= load.messages / 3).await);
        disaster.await
    };
    let (problems, ()) = try_join(callers, disaster).await?;
    let ids = all.iter().map(|message| message.id.to_string()).collect();
    Ok(Confirmed { ids, failures: problems.values().sum(), problems, took: began.elapsed() })
}

/// One caller; returns what went wrong and how often.
async fn publish(
    publisher: &dyn Publisher,
    own: &[Message],
    batch: usize,
    progress: &watch::Sender<usize>,
) -> Result<HashMap<String, usize>, BoxError> {
    let mut problems = HashMap::new();
    for batch in own.chunks(batch) {
        let mut left = batch.to_vec();
        let began = Instant::now();
        while !left.is_empty() {
            let receipts = publisher.publish(left.clone()).await;
            let sent = left.len();
            assert_eq!(receipts.len(), sent, "there is one receipt for each message");
            let mut failed = Vec::new();
            for (message, receipt) in left.into_iter().zip(receipts) {
                let Err(error) = receipt else { continue };
                // One that has just come back may answer before all that it had is there again, such as its bindings.
                if error.kind() == PublishErrorKind::Permanent {
                    return Err(format!("{:?}: {error}", error.kind()).into());
                }
                *problems.entry(format!("{:?}: {error}", error.kind())).or_insert(0) += 1;
                failed.push(message);
            }
            progress.send_modify(|confirmed| *confirmed += sent - failed.len());
            left = failed;
            if !left.is_empty() {
                if began.elapsed() > PATIENCE {
                    return Err(format!("nothing was confirmed for {PATIENCE:?}: {problems:?}").into());
                }
                // The relay waits between attempts, too.
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    Ok(problems)
}

impl Confirmed {
    /// Counts the duplicates among the ids of what has arrived.
    ///
    /// # Errors
    /// When a confirmed message is not among them, which is what must never be.
    pub fn duplicates_among<'a>(&self, arrived: impl IntoIterator<Item = &'a str>) -> Result<usize, BoxError> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for id in arrived {
            *counts.entry(id).or_default() += 1;
        }
        let lost: Vec<&String> = self.ids.iter().filter(|id| !counts.contains_key(id.as_str())).collect();
        if !lost.is_empty() {
            return Err(format!("{} messages were confirmed and are lost, such as {}", lost.len(), lost[0]).into());
        }
        Ok(counts.values().map(|times| times - 1).sum())
    }
}
