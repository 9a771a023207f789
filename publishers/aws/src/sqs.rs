use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use pillarbox_core::publisher::{PublishError, TargetSyntax};

use crate::entry::Entry;
use crate::error::Problem;
use crate::publish::{Outcomes, Service, position};

/// The number of queue names that are remembered with their URLs. Further ones are looked up each time.
const REMEMBERED: usize = 10_000;

/// Queues of SQS.
#[derive(Debug)]
pub(crate) struct Sqs {
    client: Client,
    urls: Mutex<HashMap<String, String>>,
}

impl Service for Sqs {
    const KIND: &'static str = "sqs";
    const TARGETS: TargetSyntax = TargetSyntax::Parts(&['/']);
    const LARGEST: usize = 1024 * 1024;

    fn new(config: &SdkConfig) -> Self {
        Self { client: Client::new(config), urls: Mutex::default() }
    }

    fn accept(target: &str) -> Result<(), PublishError> {
        let name = match target.split_once("://") {
            Some(("https" | "http", rest)) => rest.rsplit('/').next().unwrap_or_default(),
            Some(_) => "",
            None => target,
        };
        let plain = name.strip_suffix(".fifo").unwrap_or(name);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if (1..=80).contains(&name.len()) && !plain.is_empty() && plain.bytes().all(fits) {
            return Ok(());
        }
        Err(PublishError::permanent(format!(
            "the target {target:?} is neither the name nor the URL of a queue; names have up to 80 letters, digits, hyphens and \
             underscores"
        )))
    }

    async fn send(&self, target: &str, entries: &[Entry]) -> Result<Outcomes, Problem> {
        let url = self.url(target).await?;
        let batch = entries.iter().map(request).collect::<Result<Vec<_>, _>>()?;
        let answer = self.client.send_message_batch().queue_url(url).set_entries(Some(batch)).send().await;
        let answer = answer.map_err(|error| Problem::of(&error))?;
        let taken = answer.successful.into_iter();
        let taken = taken.map(|one| (one.id, Ok(position(Some(one.message_id), one.sequence_number))));
        let refused = answer.failed.into_iter();
        let refused = refused.map(|one| (one.id, Err(Problem::of_message(one.code, one.message, one.sender_fault))));
        Ok(taken.chain(refused).collect())
    }

    async fn check(&self, target: &str) -> Result<(), Problem> {
        let url = self.url(target).await?;
        let asked = self.client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
        asked.send().await.map(|_| ()).map_err(|error| Problem::of(&error))
    }
}

impl Sqs {
    async fn url(&self, target: &str) -> Result<String, Problem> {
        if target.contains("://") {
            return Ok(target.to_owned());
        }
        let known = self.urls.lock().unwrap_or_else(PoisonError::into_inner).get(target).cloned();
        if let Some(url) = known {
            return Ok(url);
        }
        let answer = self.client.get_queue_url().queue_name(target).send().await;
        let url = answer.map_err(|error| Problem::of(&error))?.queue_url.unwrap_or_default();
        let mut urls = self.urls.lock().unwrap_or_else(PoisonError::into_inner);
        if urls.len() < REMEMBERED {
            urls.insert(target.to_owned(), url.clone());
        }
        Ok(url)
    }
}

fn request(entry: &Entry) -> Result<SendMessageBatchRequestEntry, Problem> {
    let mut request = SendMessageBatchRequestEntry::builder()
        .id(entry.index.to_string())
        .message_body(&entry.body)
        .set_message_group_id(entry.fifo.as_ref().map(|fifo| fifo.group.clone()))
        .set_message_deduplication_id(entry.fifo.as_ref().map(|fifo| fifo.id.clone()));
    for (name, value) in &entry.attributes {
        let value = MessageAttributeValue::builder().data_type("String").string_value(value).build();
        request = request.message_attributes(name, value.map_err(Problem::impossible)?);
    }
    request.build().map_err(Problem::impossible)
}
