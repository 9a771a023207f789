//! Publishes the events of [Pillarbox](https://docs.rs/pillarbox), a transactional outbox, to topics of Amazon SNS and queues of
//! Amazon SQS.
//!
//! # What is guaranteed
//! A message is confirmed when the service has taken that very message: the answer to a batch says so for each. What was not
//! confirmed within the time limit may have arrived, and is sent again by its caller: consumers deduplicate by the attribute
//! `event-id`. FIFO topics and queues deduplicate for five minutes by themselves, by the event's id, and keep the messages of a key
//! in order: no message of a key is sent before the one ahead of it was taken.
//!
//! # Targets
//! For SNS the ARN of a topic; for SQS the URL or the name of a queue.
//!
//! ```
//! use pillarbox_aws::{AwsOptions, SqsPublisher};
//! use pillarbox_core::publisher::Publisher as _;
//!
//! let mut options = AwsOptions::default();
//! options.region = Some("eu-central-1".to_owned());
//! let publisher = SqsPublisher::new(options)?;
//! assert_eq!(publisher.info().address, "sqs in eu-central-1");
//! # Ok::<(), pillarbox_core::error::ConfigError>(())
//! ```

mod options;

mod attributes;
mod entry;
mod rounds;

mod connect;
mod error;

mod sns;
mod sqs;

mod publish;

pub use options::AwsOptions;

use async_trait::async_trait;
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt};

use publish::Courier;
use sns::Sns;
use sqs::Sqs;

macro_rules! publisher {
    ($(#[$about:meta])* $publisher:ident of $service:ty) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $publisher(Courier<$service>);

        impl $publisher {
            /// A publisher that connects, and looks for credentials, when it is first needed.
            ///
            /// # Errors
            /// When an option cannot be used; it says which, and what to write instead.
            pub fn new(options: AwsOptions) -> Result<Self, ConfigError> {
                Courier::new(options).map(Self)
            }
        }

        #[async_trait]
        impl Publisher for $publisher {
            fn info(&self) -> &PublisherInfo {
                self.0.info()
            }

            async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
                self.0.check(targets).await
            }

            fn refusal(&self, sample: &Message, is_constant: bool) -> Option<PublishError> {
                self.0.refusal(sample, is_constant)
            }

            async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
                self.0.publish(messages).await
            }

            async fn close(&self) {
                self.0.close();
            }
        }
    };
}

publisher!(
    /// Sends messages to topics of SNS.
    SnsPublisher of Sns
);

publisher!(
    /// Sends messages to queues of SQS.
    SqsPublisher of Sqs
);
