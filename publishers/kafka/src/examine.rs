//! Checks how safely the topics of the routes keep confirmed messages.

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::examine::Severity::{Notice, Warning};
use pillarbox_core::examine::{Check, Checked};
use rdkafka::admin::{AdminOptions, ConfigResource, ResourceSpecifier};
use rdkafka::producer::Producer as _;
use tokio::runtime::Handle;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::KafkaPublisher;
use crate::connect::Client;

/// All checks of this publisher.
pub const ALL: &[&Check] = &[&ONE_REPLICA, &MIN_INSYNC, &UNCLEAN];

static ONE_REPLICA: Check = Check {
    code: "kafka-one-replica",
    severity: Notice,
    healthy: "every topic has several replicas",
    cause: "Partitions of a topic have one replica: while its broker is away nothing can be sent to them, and what they hold is lost with its disk.",
    remedy: "Make the topic with a replication factor of 3, or accept it with `--ignore kafka-one-replica`.",
};
static MIN_INSYNC: Check = Check {
    code: "kafka-min-insync-one",
    severity: Warning,
    healthy: "a message is confirmed by two replicas at least",
    cause: "`min.insync.replicas` is 1: while the other replicas lag, a message is confirmed that the leader alone has, and is lost with it.",
    remedy: "Set `min.insync.replicas=2` on the topic, with three replicas.",
};
static UNCLEAN: Check = Check {
    code: "kafka-unclean-election",
    severity: Warning,
    healthy: "only replicas in sync become leaders",
    cause: "`unclean.leader.election.enable` is true: a replica that lags may become the leader, and confirmed messages that it lacks are gone.",
    remedy: "Set `unclean.leader.election.enable=false` on the topic.",
};

const NONE_CONSTANT: &str = "every topic depends on the event, so that none is known before";

/// The settings of a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Settings {
    min_insync: Option<u32>,
    unclean: Option<bool>,
}

impl KafkaPublisher {
    /// Asks for the replicas and the settings of topics.
    pub(crate) async fn examine_topics(&self, targets: &[String]) -> Vec<Checked> {
        if targets.is_empty() {
            return ALL.iter().map(|check| check.not_checked(NONE_CONSTANT)).collect();
        }
        let replicas = self.replicas(targets.to_vec()).await;
        let settings = self.settings(targets).await;
        judge(targets, &replicas, &settings)
    }

    /// The number of replicas of each topic: that of the partition which has the fewest.
    async fn replicas(&self, targets: Vec<String>) -> Result<Vec<usize>, String> {
        let client = self.connection.client().map_err(|error| error.to_string())?;
        let limit = self.timeout;
        let asking = tokio::task::spawn_blocking(move || fewest_replicas(&client, &targets, limit));
        match timeout(limit, asking).await {
            Ok(Ok(replicas)) => replicas,
            Ok(Err(failed)) => Err(failed.to_string()),
            Err(_elapsed) => Err("the brokers did not answer in time".to_owned()),
        }
    }

    /// The settings of each topic. A user needs the right to describe its configuration.
    async fn settings(&self, targets: &[String]) -> Result<Vec<Settings>, String> {
        let admin = self.connection.admin().map_err(|error| error.to_string())?;
        let options = AdminOptions::new().request_timeout(Some(self.timeout)).operation_timeout(Some(self.timeout));
        let topics: Vec<ResourceSpecifier<'_>> =
            targets.iter().map(|target| ResourceSpecifier::Topic(target)).collect();
        let asking = admin.describe_configs(&topics, &options);
        let described = match answer_to(admin, asking, self.timeout).await {
            Ok(described) => described.map_err(|error| error.to_string())?,
            Err(_elapsed) => return Err("the brokers did not answer in time".to_owned()),
        };
        described
            .into_iter()
            .map(|topic| topic.map(|topic| settings_of(&topic)).map_err(|code| code.to_string()))
            .collect()
    }
}

/// The answer to a question that a client has asked, within a limit. The client ends with it, or with the future that waits for it.
async fn answer_to<C: Send + 'static, T>(
    client: C,
    asking: impl Future<Output = T>,
    limit: Duration,
) -> Result<T, Elapsed> {
    let _client = Leaving(Some(client));
    timeout(limit, asking).await
}

/// Ends a client where waiting is allowed: its end joins a thread of its own, which is nothing for a thread of the runtime.
struct Leaving<C: Send + 'static>(Option<C>);

impl<C: Send + 'static> Drop for Leaving<C> {
    fn drop(&mut self) {
        let client = self.0.take();
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn_blocking(move || drop(client)));
        }
    }
}

fn fewest_replicas(client: &Arc<Client>, targets: &[String], limit: Duration) -> Result<Vec<usize>, String> {
    let of = |target: &String| {
        let metadata = client.client().fetch_metadata(Some(target), limit).map_err(|error| error.to_string())?;
        let topic = metadata.topics().iter().find(|topic| topic.name() == target);
        let partitions = topic.map(|topic| topic.partitions()).unwrap_or_default();
        let fewest = partitions.iter().map(|partition| partition.replicas().len()).min();
        fewest.ok_or_else(|| format!("topic {target} has no partition"))
    };
    targets.iter().map(of).collect()
}

fn settings_of(topic: &ConfigResource) -> Settings {
    let value = |name: &str| topic.get(name).and_then(|entry| entry.value.clone());
    Settings {
        min_insync: value("min.insync.replicas").and_then(|text| text.parse().ok()),
        unclean: value("unclean.leader.election.enable").and_then(|text| text.parse().ok()),
    }
}

fn judge(
    targets: &[String],
    replicas: &Result<Vec<usize>, String>,
    settings: &Result<Vec<Settings>, String>,
) -> Vec<Checked> {
    let few = |replicas: &Vec<usize>| {
        let few = targets.iter().zip(replicas).filter(|(_, replicas)| **replicas < 2);
        list(few.map(|(target, _)| format!("topic {target} has one replica")))
    };
    let with = |is: fn(&Settings) -> bool, words: &'static str| {
        move |settings: &Vec<Settings>| {
            let found = targets.iter().zip(settings).filter(|(_, settings)| is(settings));
            list(found.map(|(target, _)| format!("topic {target}: {words}")))
        }
    };
    let min_insync = with(|settings| settings.min_insync == Some(1), "min.insync.replicas is 1");
    let unclean = with(|settings| settings.unclean == Some(true), "unclean.leader.election.enable is true");
    vec![
        judged(&ONE_REPLICA, replicas, few),
        judged(&MIN_INSYNC, settings, min_insync),
        judged(&UNCLEAN, settings, unclean),
    ]
}

fn judged<T>(check: &'static Check, asked: &Result<T, String>, found: impl Fn(&T) -> Option<String>) -> Checked {
    match asked {
        Ok(answer) => check.judge(found(answer)),
        Err(reason) => check.not_checked(reason.clone()),
    }
}

fn list(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    use pillarbox_core::examine::Judgement;
    use tokio::task::spawn_blocking;

    use super::*;

    /// Tells the thread in which it ends.
    struct Client(mpsc::Sender<ThreadId>);

    impl Drop for Client {
        fn drop(&mut self) {
            // A test that has failed listens no more.
            let _ = self.0.send(thread::current().id());
        }
    }

    /// All of the runtime is in the thread of the test.
    #[tokio::test]
    async fn a_client_never_ends_in_a_thread_of_the_runtime() {
        let (told, ended) = mpsc::channel();
        let client = || Client(told.clone());
        let (short, long) = (Duration::from_millis(10), Duration::from_secs(3600));
        assert_eq!(answer_to(client(), async { Err::<(), _>("refused") }, long).await, Ok(Err("refused")));
        assert!(answer_to(client(), pending::<()>(), short).await.is_err(), "the limit is over");
        let given_up = timeout(short, answer_to(client(), pending::<()>(), long)).await;
        assert!(given_up.is_err(), "nobody waits for the answer any more");
        let threads = spawn_blocking(move || ended.iter().take(3).collect::<Vec<_>>()).await.expect("all have ended");
        assert!(threads.len() == 3 && !threads.contains(&thread::current().id()), "{threads:?}");
    }

    fn evidence(checked: &Checked) -> &str {
        match &checked.judgement {
            Judgement::Found { evidence, .. } => evidence,
            Judgement::Healthy => "",
            Judgement::NotChecked { reason } => reason,
        }
    }

    #[test]
    fn the_page_explains_every_check() {
        let page = include_str!("../../../docs/doctor.md");
        for Check { code, severity, cause, remedy, .. } in ALL {
            let text = format!("### {code}\n\n**{severity:?}.** {cause}\n\n**Remedy:** {remedy}\n");
            assert!(page.contains(&text), "docs/doctor.md lacks:\n{text}");
        }
    }

    #[test]
    fn topics_that_may_lose_messages_are_found_by_their_names() {
        let targets = ["orders", "stock"].map(str::to_owned);
        let settings = |min_insync, unclean| Settings { min_insync: Some(min_insync), unclean: Some(unclean) };
        let found = judge(&targets, &Ok(vec![1, 3]), &Ok(vec![settings(2, true), settings(1, false)]));
        let told: Vec<&str> = found.iter().map(evidence).collect();
        assert_eq!(
            told,
            [
                "topic orders has one replica",
                "topic stock: min.insync.replicas is 1",
                "topic orders: unclean.leader.election.enable is true"
            ]
        );
        let well = judge(&targets, &Ok(vec![3, 3]), &Ok(vec![settings(2, false), Settings::default()]));
        assert!(well.iter().all(|checked| checked.judgement == Judgement::Healthy), "{well:?}");
        let refused = judge(&targets, &Ok(vec![3, 3]), &Err("not allowed".to_owned()));
        assert_eq!(refused.iter().map(evidence).collect::<Vec<_>>(), ["", "not allowed", "not allowed"]);
    }
}
