//! Sends the messages of a call in batches, and answers for each.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_config::SdkConfig;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use futures_util::{StreamExt as _, stream};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{FailureScope, Message, PublishError, PublisherInfo, Receipt, TargetSyntax};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::connect;
use crate::entry::Entry;
use crate::error::Problem;
use crate::options::AwsOptions;
use crate::rounds;

/// The operations that SNS and SQS have in common.
pub(crate) trait Service: fmt::Debug + Send + Sync + Sized + 'static {
    const KIND: &'static str;
    const TARGETS: TargetSyntax;
    /// The bytes of a batch, and so of a message with its attributes, where the options do not say it.
    const LARGEST: usize;

    fn new(config: &SdkConfig) -> Self;

    /// Accepts what can be a target.
    fn accept(target: &str) -> Result<(), PublishError>;

    /// The reason why this constant target can never be sent to with these options.
    fn refusal(target: &str, options: &AwsOptions) -> Option<PublishError> {
        let _ = options;
        Self::accept(target).err()
    }

    /// Sends one batch; what is not in the outcomes was not answered.
    fn send(&self, target: &str, entries: &[Entry]) -> impl Future<Output = Result<Outcomes, Problem>> + Send;

    fn check(&self, target: &str) -> impl Future<Output = Result<(), Problem>> + Send;
}

/// The outcomes of the messages of a batch, by their ids in it: the position of one that was taken, or its problem.
pub(crate) type Outcomes = HashMap<String, Result<Option<String>, Problem>>;

/// Carries messages to a service.
#[derive(Debug)]
pub(crate) struct Courier<S> {
    /// As the options say it.
    info: PublisherInfo,
    options: AwsOptions,
    http: SharedHttpClient,
    /// Made when it is first needed, since finding credentials asks others.
    found: OnceCell<Found<S>>,
    closed: AtomicBool,
}

/// A service as the environment and the profile lead to it.
#[derive(Debug)]
struct Found<S> {
    service: S,
    info: PublisherInfo,
}

type Receipts = Vec<(usize, Receipt)>;

impl<S: Service> Courier<S> {
    pub(crate) fn new(options: AwsOptions) -> Result<Self, ConfigError> {
        options.check()?;
        Ok(Self {
            info: info::<S>(&options, options.endpoint_url.as_ref().map(|url| url.expose())),
            http: connect::http(&options)?,
            options,
            found: OnceCell::new(),
            closed: AtomicBool::new(false),
        })
    }

    /// With the endpoint of the environment or the profile, as soon as they were read.
    pub(crate) fn info(&self) -> &PublisherInfo {
        self.found.get().map_or(&self.info, |found| &found.info)
    }

    /// The reason why no message like this one can ever be sent.
    pub(crate) fn refusal(&self, sample: &Message, is_constant: bool) -> Option<PublishError> {
        let target = if is_constant { S::refusal(&sample.target, &self.options) } else { None };
        target.or_else(|| Entry::of(0, sample, self.largest()).err())
    }

    fn largest(&self) -> usize {
        self.options.max_message.unwrap_or(S::LARGEST)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    fn open(&self) -> Result<(), PublishError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(PublishError::unavailable("the publisher is closed"));
        }
        Ok(())
    }

    async fn service(&self) -> Result<&S, PublishError> {
        let find = async || self.find(&connect::loader(&self.options, self.http.clone()).load().await);
        Ok(&self.found.get_or_try_init(find).await?.service)
    }

    fn find(&self, config: &SdkConfig) -> Result<Found<S>, PublishError> {
        let endpoint = connect::endpoint(config, S::KIND);
        if let Some(url) = &endpoint {
            // The one of the options has passed already.
            self.options.check_endpoint(url).map_err(|error| {
                let named = "the endpoint of the environment or the profile cannot be used";
                PublishError::misconfigured(format!("{named}: {error}"))
            })?;
        }
        Ok(Found { service: S::new(config), info: info::<S>(&self.options, endpoint.as_deref()) })
    }

    pub(crate) async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.open()?;
        let checking = async {
            let service = self.service().await?;
            for target in targets {
                S::accept(target).map_err(|error| PublishError::misconfigured(error.to_string()))?;
                service.check(target).await.map_err(|problem| problem.publish_error(target))?;
            }
            Ok(())
        };
        let deadline = Instant::now() + self.options.timeout;
        timeout_at(deadline, checking).await.unwrap_or_else(|_| Err(late()))
    }

    pub(crate) async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        if let Err(error) = self.open() {
            return vec![Err(error); messages.len()];
        }
        let (deadline, largest) = (Instant::now() + self.options.timeout, self.largest());
        let mut receipts: Vec<Receipt> = vec![Err(late()); messages.len()];
        let mut of_target: HashMap<Arc<str>, Vec<Entry>> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            match S::accept(&message.target).and_then(|()| Entry::of(index, message, largest)) {
                Ok(entry) => of_target.entry(Arc::clone(&message.target)).or_default().push(entry),
                Err(error) => receipts[index] = Err(error),
            }
        }
        let service = match timeout_at(deadline, self.service()).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => {
                for entry in of_target.values().flatten() {
                    receipts[entry.index] = Err(error.clone());
                }
                return receipts;
            }
            Err(_) => return receipts,
        };
        // The bound is on the batches under way to all targets together.
        let call = Call { service, deadline, largest, room: Semaphore::new(self.options.concurrency) };
        let sent: Vec<Receipts> = stream::iter(of_target)
            .map(|(target, entries)| call.send(target, entries))
            .buffer_unordered(256)
            .collect()
            .await;
        for (index, receipt) in sent.into_iter().flatten() {
            if let Some(place) = receipts.get_mut(index) {
                *place = receipt;
            }
        }
        receipts
    }
}

fn info<S: Service>(options: &AwsOptions, endpoint: Option<&str>) -> PublisherInfo {
    let address = match (endpoint, &options.region) {
        (Some(url), _) => format!("{} at {url}", S::KIND),
        (None, Some(region)) => format!("{} in {region}", S::KIND),
        (None, None) => format!("{} in the region of the environment", S::KIND),
    };
    PublisherInfo::new(S::KIND, address).with_targets(S::TARGETS)
}

struct Call<'a, S> {
    service: &'a S,
    deadline: Instant,
    /// The bytes of a batch.
    largest: usize,
    room: Semaphore,
}

impl<S: Service> Call<'_, S> {
    /// Sends what goes to one target. In FIFO, a group ends with its first message that was not taken.
    async fn send(&self, target: Arc<str>, entries: Vec<Entry>) -> Receipts {
        let mut ended: HashSet<String> = HashSet::new();
        let mut receipts = Receipts::new();
        for round in rounds::of(entries, self.largest) {
            let mut groups = HashMap::new();
            let mut batches = Vec::with_capacity(round.len());
            for mut batch in round {
                batch.retain(|entry| {
                    let Some(fifo) = &entry.fifo else { return true };
                    groups.insert(entry.index, fifo.group.clone());
                    if ended.contains(&fifo.group) {
                        let text = "not sent, since an earlier message of its key was not taken";
                        receipts.push((
                            entry.index,
                            Err(PublishError::unavailable(text).limited_to(FailureScope::Message)),
                        ));
                        return false;
                    }
                    true
                });
                batches.push(batch);
            }
            let sending =
                batches.into_iter().filter(|batch| !batch.is_empty()).map(|batch| self.deliver(&target, batch));
            for (index, receipt) in futures_util::future::join_all(sending).await.into_iter().flatten() {
                if let (Err(_), Some(group)) = (&receipt, groups.get(&index)) {
                    ended.insert(group.clone());
                }
                receipts.push((index, receipt));
            }
        }
        receipts
    }

    /// Sends a batch; if one message may have spoilt it, each alone.
    async fn deliver(&self, target: &str, batch: Vec<Entry>) -> Receipts {
        match self.attempt(target, &batch).await {
            Err(problem) if batch.len() > 1 && problem.may_be_of_one() => {
                let mut receipts = Receipts::with_capacity(batch.len());
                for entry in batch {
                    let alone = self.attempt(target, std::slice::from_ref(&entry)).await;
                    receipts.extend(
                        alone.unwrap_or_else(|problem| vec![(entry.index, Err(problem.publish_error(target)))]),
                    );
                }
                receipts
            }
            Err(problem) => batch.iter().map(|entry| (entry.index, Err(problem.publish_error(target)))).collect(),
            Ok(receipts) => receipts,
        }
    }

    async fn attempt(&self, target: &str, batch: &[Entry]) -> Result<Receipts, Problem> {
        let sending = async {
            // Never closed, so never refused.
            let _room = self.room.acquire().await;
            // All waiting batches are woken at once when the time is up, and making a request takes time of its own.
            if Instant::now() >= self.deadline {
                return Err(Problem::Silence("no time was left".to_owned()));
            }
            self.service.send(target, batch).await
        };
        let late = |_| Err(Problem::Silence("no answer in time".to_owned()));
        let mut outcomes = timeout_at(self.deadline, sending).await.unwrap_or_else(late)?;
        let mut receipt = |entry: &Entry| match outcomes.remove(&entry.index.to_string()) {
            Some(outcome) => outcome.map_err(|problem| problem.publish_error(target)),
            None => Err(PublishError::temporary(format!("{target}: the service says nothing of it"))),
        };
        Ok(batch.iter().map(|entry| (entry.index, receipt(entry))).collect())
    }
}

/// The position of a message: its id, and in FIFO its sequence number.
pub(crate) fn position(id: Option<String>, sequence: Option<String>) -> Option<String> {
    let id = id?;
    Some(sequence.map_or_else(|| id.clone(), |sequence| format!("{id}/{sequence}")))
}

fn late() -> PublishError {
    PublishError::unavailable("was not confirmed in time")
}

#[cfg(test)]
#[expect(deprecated, reason = "what holds a profile has moved to a crate that is needed for nothing else")]
mod tests {
    use aws_config::profile::profile_file::{ProfileFileKind, ProfileFiles};
    use pillarbox_core::publisher::PublishErrorKind::Misconfigured;

    use super::*;
    use crate::sns::Sns;
    use crate::sqs::Sqs;

    /// The service of a profile, and its address.
    async fn found<S: Service>(profile: &str, plaintext: bool) -> Result<String, PublishError> {
        let mut options = AwsOptions::default();
        (options.region, options.plaintext) = (Some("eu-central-1".to_owned()), plaintext);
        options.profile = Some("shop".to_owned());
        let courier = Courier::<S>::new(options).expect("options");
        let files = ProfileFiles::builder().with_contents(ProfileFileKind::Config, profile).build();
        let loader = connect::loader(&courier.options, courier.http.clone()).profile_files(files);
        courier.find(&loader.load().await).map(|found| found.info.address)
    }

    #[tokio::test]
    async fn an_endpoint_that_the_profile_names_is_held_to_the_rules_and_shown() {
        const OF_SQS: &str = "[profile shop]\nendpoint_url = https://all.example\nservices = s\n\
                              [services s]\nsqs =\n  endpoint_url = http://10.0.0.7:4566\n";
        assert_eq!(found::<Sqs>("[profile shop]\n", false).await.expect("the region's"), "sqs in eu-central-1");
        let here = "[profile shop]\nendpoint_url = http://localhost:4566\n";
        assert_eq!(found::<Sns>(here, false).await.expect("this machine"), "sns at http://localhost:4566");
        assert_eq!(found::<Sns>(OF_SQS, false).await.expect("TLS"), "sns at https://all.example");
        assert_eq!(found::<Sqs>(OF_SQS, true).await.expect("on purpose"), "sqs at http://10.0.0.7:4566");
        for profile in [OF_SQS, "[profile shop]\nendpoint_url = http://10.0.0.7\n"] {
            let error = found::<Sqs>(profile, false).await.expect_err("another machine");
            assert_eq!(error.kind(), Misconfigured);
            let text = error.to_string();
            assert!(text.contains("the environment or the profile") && text.contains("`plaintext = true`"), "{text}");
        }
        let secret = found::<Sqs>("[profile shop]\nendpoint_url = https://u:hunter2@sqs.example\n", false).await;
        let text = secret.expect_err("credentials").to_string();
        assert!(text.contains("holds credentials") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn a_position_is_the_id_and_in_fifo_the_sequence_number() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(position(some("5fea7756"), None), some("5fea7756"));
        assert_eq!(position(some("5fea7756"), some("18849496460467696128")), some("5fea7756/18849496460467696128"));
        assert_eq!(position(None, some("7")), None);
    }
}
