use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::publisher::PublishError;
use rdkafka::producer::Producer as _;
use rdkafka::types::RDKafkaErrorCode;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::connect::Client;
use crate::trouble::{Trouble, code};
use crate::{KafkaPublisher, error, topic};

impl KafkaPublisher {
    /// Asks for the metadata of each topic, which creates none.
    pub(crate) async fn check_topics(&self, targets: Vec<String>) -> Result<(), PublishError> {
        for target in &targets {
            topic::accept(target).map_err(|error| PublishError::misconfigured(error.to_string()))?;
        }
        let client = self.connection.client()?;
        let mut troubles = client.context().troubles();
        let limit = self.timeout;
        let asked = tokio::task::spawn_blocking(move || ask(&client, &targets, limit));
        let outcome = tokio::select! {
            asked = timeout(limit, asked) => match asked {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => return Err(PublishError::unavailable("the client has failed")),
                Err(_) => Err(PublishError::unavailable("the brokers did not answer in time")),
            },
            // The client goes on trying, and would say nothing until the limit.
            refusal = refusal(troubles.clone()) => return Err(refusal),
        };
        outcome.map_err(|error| match troubles.borrow_and_update().as_ref() {
            Some(trouble) if error.blames_the_destination() && trouble.is_a_refusal() => trouble.error(),
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
        let metadata = found.map_err(|failure| error::of(code(&failure), target))?;
        let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == target) else {
            return Err(error::of(RDKafkaErrorCode::UnknownTopic, target));
        };
        if let Some(problem) = topic.error() {
            return Err(error::of(problem.into(), target));
        }
    }
    client.context().clear();
    Ok(())
}

/// Waits until the brokers refuse whom they are talking to.
async fn refusal(mut troubles: watch::Receiver<Option<Trouble>>) -> PublishError {
    loop {
        if troubles.changed().await.is_err() {
            return std::future::pending().await;
        }
        if let Some(trouble) = troubles.borrow_and_update().as_ref().filter(|trouble| trouble.is_a_refusal()) {
            return trouble.error();
        }
    }
}
