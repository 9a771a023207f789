use async_trait::async_trait;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt};
use pillarbox_testkit::MemoryPublisher;

/// A publisher in memory that describes itself in another way.
#[derive(Debug)]
pub(crate) struct Described(pub(crate) MemoryPublisher, pub(crate) PublisherInfo);

#[async_trait]
impl Publisher for Described {
    fn info(&self) -> &PublisherInfo {
        &self.1
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.0.check(targets).await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        self.0.publish(messages).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
