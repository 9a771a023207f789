use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::publisher::PublishError;
use rdkafka::producer::Producer as _;
use rdkafka::types::RDKafkaErrorCode;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::connect::Client;
use crate::trouble::{GRACE, Health, code};
use crate::{KafkaPublisher, error, topic};

impl KafkaPublisher {
    /// Asks for the metadata of each topic, which creates none.
    pub(crate) async fn check_topics(&self, targets: Vec<String>) -> Result<(), PublishError> {
        for target in &targets {
            topic::accept(target).map_err(|error| PublishError::misconfigured(error.to_string()))?;
        }
        let client = self.connection.client()?;
        let health = client.context().health();
        let limit = self.timeout;
        let asked = tokio::task::spawn_blocking(move || ask(&client, &targets, limit));
        let outcome = tokio::select! {
            asked = timeout(limit, asked) => match asked {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => return Err(PublishError::unavailable("the client has failed")),
                Err(_) => Err(PublishError::unavailable("the brokers did not answer in time")),
            },
            // The client goes on trying, and would say nothing until the limit.
            refusal = refusal(health.clone()) => return Err(refusal),
        };
        outcome.map_err(|error| match health.borrow().refusal() {
            Some(refusal) if error.blames_the_destination() => refusal,
            _ => error,
        })
    }
}

fn ask(client: &Arc<Client>, targets: &[String], limit: Duration) -> Result<(), PublishError> {
    if targets.is_empty() && client.client().fetch_cluster_id(limit).is_none() {
        return Err(PublishError::unavailable("no broker answers"));
    }
    for target in targets {
        let found = client.client().fetch_metadata(Some(target), limit);
        let metadata = found.map_err(|failure| error::publish_error(code(&failure), target))?;
        let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == target) else {
            return Err(error::publish_error(RDKafkaErrorCode::UnknownTopic, target));
        };
        if let Some(problem) = topic.error() {
            return Err(error::publish_error(problem.into(), target));
        }
    }
    client.context().clear();
    Ok(())
}

/// Waits until the brokers refuse this client, and none of them answers for a moment.
async fn refusal(mut health: watch::Receiver<Health>) -> PublishError {
    loop {
        if health.changed().await.is_err() {
            return std::future::pending().await;
        }
        if health.borrow_and_update().refusal().is_none() {
            continue;
        }
        sleep(GRACE).await;
        if let Some(refusal) = health.borrow_and_update().refusal() {
            return refusal;
        }
    }
}
