use aws_config::SdkConfig;
use aws_sdk_sns::Client;
use aws_sdk_sns::types::{MessageAttributeValue, PublishBatchRequestEntry};
use pillarbox_core::publisher::{PublishError, TargetSyntax};

use crate::entry::Entry;
use crate::error::Problem;
use crate::options::AwsOptions;
use crate::publish::{Outcomes, Service, position};

/// Topics of SNS.
#[derive(Debug)]
pub(crate) struct Sns {
    client: Client,
}

impl Service for Sns {
    const KIND: &'static str = "sns";
    const TARGETS: TargetSyntax = TargetSyntax::Parts(&[':']);
    const LARGEST: usize = 256 * 1024;

    fn new(config: &SdkConfig) -> Self {
        Self { client: Client::new(config) }
    }

    fn accept(target: &str) -> Result<(), PublishError> {
        let parts: Vec<_> = target.split(':').collect();
        let plain = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
        if let [arn, partition, "sns", region, account, name] = parts.as_slice()
            && *arn == "arn"
            && [partition, region, account, name].into_iter().all(plain)
        {
            return Ok(());
        }
        Err(PublishError::permanent(format!(
            "the target {target:?} is no ARN of a topic; write arn:aws:sns:REGION:ACCOUNT:NAME"
        )))
    }

    /// Amazon's own endpoints know the topics of their region alone; others may know more.
    fn refusal(target: &str, options: &AwsOptions) -> Option<PublishError> {
        if let Err(error) = Self::accept(target) {
            return Some(error);
        }
        let region = options.region.as_deref().filter(|_| options.endpoint_url.is_none())?;
        let of_target = target.split(':').nth(3).filter(|of_target| *of_target != region)?;
        Some(PublishError::permanent(format!(
            "the target {target:?} is a topic of the region {of_target:?}, and the option `region` says {region:?}; change one of them"
        )))
    }

    async fn send(&self, target: &str, entries: &[Entry]) -> Result<Outcomes, Problem> {
        let batch = entries.iter().map(request).collect::<Result<Vec<_>, _>>()?;
        let answer = self.client.publish_batch().topic_arn(target).set_publish_batch_request_entries(Some(batch));
        let answer = answer.send().await.map_err(|error| Problem::of(&error))?;
        let taken = answer.successful.unwrap_or_default().into_iter();
        let taken = taken.map(|one| (one.id.unwrap_or_default(), Ok(position(one.message_id, one.sequence_number))));
        let refused = answer.failed.unwrap_or_default().into_iter();
        let refused = refused.map(|one| (one.id, Err(Problem::of_message(one.code, one.message, one.sender_fault))));
        Ok(taken.chain(refused).collect())
    }

    async fn check(&self, target: &str) -> Result<(), Problem> {
        let asked = self.client.get_topic_attributes().topic_arn(target);
        asked.send().await.map(|_| ()).map_err(|error| Problem::of(&error))
    }
}

fn request(entry: &Entry) -> Result<PublishBatchRequestEntry, Problem> {
    let mut request = PublishBatchRequestEntry::builder()
        .id(entry.index.to_string())
        .message(&entry.body)
        .set_message_group_id(entry.fifo.as_ref().map(|fifo| fifo.group.clone()))
        .set_message_deduplication_id(entry.fifo.as_ref().map(|fifo| fifo.id.clone()));
    for (name, value) in &entry.attributes {
        let value = MessageAttributeValue::builder().data_type("String").string_value(value).build();
        request = request.message_attributes(name, value.map_err(Problem::impossible)?);
    }
    request.build().map_err(Problem::impossible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_topic_of_another_region_is_refused() {
        let refusal = |region: Option<&str>, endpoint: Option<&str>, target: &str| {
            let mut options = AwsOptions::default();
            (options.region, options.endpoint_url) = (region.map(str::to_owned), endpoint.map(Into::into));
            Sns::refusal(target, &options).map(|error| error.to_string())
        };
        let topic = "arn:aws:sns:us-east-1:123456789012:orders";
        let told = refusal(Some("eu-central-1"), None, topic).expect("another region");
        assert!(told.contains("\"us-east-1\"") && told.contains("`region` says \"eu-central-1\""), "{told}");
        assert_eq!(refusal(Some("us-east-1"), None, topic), None);
        assert_eq!(refusal(None, None, topic), None, "the environment's is not known yet");
        assert_eq!(refusal(Some("eu-central-1"), Some("http://localhost:4566"), topic), None);
        assert!(refusal(None, None, "orders").is_some_and(|error| error.contains("no ARN")));
    }
}
