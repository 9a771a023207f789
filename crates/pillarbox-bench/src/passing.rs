use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox::Envelope;
use pillarbox::backend::publisher::{Message, PublishError, Publisher, PublisherInfo, Receipt, header};
use pillarbox::error::ConfigError;
use pillarbox_routes::{Forwarder, Route, Routes};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::calls::Calls;
use super::load::Load;
use crate::failure::Failure;

/// The broker and the target that events are passed on to.
#[derive(Debug, Clone)]
pub(crate) struct BrokerTarget {
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) target: Arc<str>,
    /// Messages in one call of the publisher.
    pub(crate) batch: usize,
}

impl BrokerTarget {
    /// The handler that passes events on and notes each confirmed one.
    pub(crate) fn forwarder(&self, calls: &Arc<Calls>) -> Result<Forwarder, ConfigError> {
        let noted = Noted { publisher: Arc::clone(&self.publisher), calls: Arc::clone(calls) };
        let target = self.target.replace('{', "{{").replace('}', "}}");
        let built = Routes::new().route(Route::to(Arc::new(noted), target)).build();
        built.map_err(|error| ConfigError::new("--target", error.to_string(), "name another"))
    }

    /// Publishes messages like those of the relay, in `calls` concurrent tasks, for at least `time`. Returns confirmed
    /// messages per second.
    pub(crate) async fn publish_alone(&self, load: &Load, calls: usize, time: Duration) -> Result<f64, Failure> {
        let until = Instant::now() + time;
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..calls {
            let (passing, load) = (self.clone(), load.clone());
            tasks.spawn(async move {
                let mut confirmed = 0_u64;
                while Instant::now() < until {
                    let messages = passing.messages(&load)?;
                    for receipt in passing.publisher.publish(messages).await {
                        receipt.map_err(|error| passing.refused(&error))?;
                        confirmed += 1;
                    }
                }
                Ok::<u64, Failure>(confirmed)
            });
        }
        let mut confirmed = 0;
        while let Some(ended) = tasks.join_next().await {
            confirmed += ended??;
        }
        Ok(pillarbox_program::report::per_second(confirmed, began.elapsed().as_secs_f64()))
    }

    pub(crate) fn refused(&self, error: &PublishError) -> Failure {
        let info = self.publisher.info();
        Failure::Broker { kind: info.kind, address: info.address.clone(), problem: error.to_string() }
    }

    /// A batch, each message with an id of its own.
    fn messages(&self, load: &Load) -> Result<Vec<Message>, Failure> {
        let message = |number: usize| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let event: Envelope = load.event(number).build().map_err(Failure::during("build an event"))?;
            let body = event.payload().as_bytes().to_vec();
            let mut message = Message::new(Arc::clone(&self.target), event.id().clone(), body);
            let mut say =
                |name: &'static str, value: &str| message.headers.push((Cow::Borrowed(name), value.to_owned()));
            say(header::ID, event.id().as_str());
            say(header::TYPE, event.event_type());
            say(header::AGGREGATE_TYPE, event.aggregate_type());
            say(header::AGGREGATE_ID, event.aggregate_id().unwrap_or_default());
            say(header::KEY, event.aggregate_id().unwrap_or_default());
            say(header::TIME, &event.occurred_at().to_string());
            message.key = event.aggregate_id().map(Into::into);
            Ok(message)
        };
        (0..self.batch).map(message).collect()
    }
}

/// A publisher that notes the messages that the broker has confirmed.
#[derive(Debug)]
struct Noted {
    publisher: Arc<dyn Publisher>,
    calls: Arc<Calls>,
}

#[async_trait]
impl Publisher for Noted {
    fn info(&self) -> &PublisherInfo {
        self.publisher.info()
    }

    async fn check(&self, targets: &[String]) -> Result<(), PublishError> {
        self.publisher.check(targets).await
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        let number = |message: &Message| message.header(header::AGGREGATE_ID).and_then(|id| id.parse::<usize>().ok());
        let numbers: Vec<_> = messages.iter().map(number).collect();
        let receipts = self.publisher.publish(messages).await;
        for (number, receipt) in numbers.into_iter().zip(&receipts) {
            if let (Some(number), Ok(_)) = (number, receipt) {
                self.calls.confirmed(number);
            }
        }
        receipts
    }

    async fn close(&self) {
        self.publisher.close().await;
    }
}
