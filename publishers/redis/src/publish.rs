use pillarbox_core::publisher::{Linked, Message, PublishError, Receipt};
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{Pipeline, Value};
use tokio::time::{Instant, timeout_at};

use crate::{RedisPublisher, entry, error};

impl RedisPublisher {
    /// Appends all messages, a pipeline after the other, so that a key's order survives a failure in between.
    pub(crate) async fn append(&self, messages: &[Message]) -> Vec<Receipt> {
        let deadline = Instant::now() + self.options.timeout;
        let mut receipts = Vec::with_capacity(messages.len());
        for pipeline in entry::pipelines(messages) {
            match self.append_pipeline(pipeline, deadline).await {
                Ok(answers) => receipts.extend(answers),
                Err(error) => {
                    receipts.resize(messages.len(), Err(error));
                    break;
                }
            }
        }
        receipts
    }

    async fn append_pipeline(&self, messages: &[Message], deadline: Instant) -> Result<Vec<Receipt>, PublishError> {
        let refusals: Vec<_> = messages.iter().map(|message| entry::refuse(message, &self.options)).collect();
        let sent: Vec<_> = messages.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none()).collect();
        let mut pipeline = Pipeline::with_capacity(sent.len());
        for (message, _) in &sent {
            entry::append(&mut pipeline, message, &self.options);
        }
        let replies = if pipeline.is_empty() { Vec::new() } else { self.ask(&pipeline, deadline).await? };
        let mut replies = replies.into_iter();
        let receipt = |(message, refusal): (&Message, Option<PublishError>)| match refusal {
            Some(refusal) => Err(refusal),
            None => error::receipt(replies.next(), &message.target),
        };
        Ok(messages.iter().zip(refusals).map(receipt).collect())
    }

    /// Sends commands and returns their replies, as many, within the time. Sent again, once, where the connection turns out to
    /// have been cut while nobody used it.
    pub(crate) async fn ask(&self, pipeline: &Pipeline, deadline: Instant) -> Result<Vec<Value>, PublishError> {
        let late = |doing: &str| {
            let address = &self.info.address;
            PublishError::unavailable(format!("{address} did not answer in time ({doing})"))
        };
        let _room = timeout_at(deadline, self.pipelines.acquire())
            .await
            .map_err(|_| late("waiting for others"))?
            .map_err(|_| PublishError::unavailable("the publisher is closed"))?;
        let mut again = true;
        loop {
            let linked = timeout_at(deadline, self.connected()).await.map_err(|_| late("connecting"))??;
            let mut connection = linked.connection.clone();
            let answer = timeout_at(deadline, connection.req_packed_commands(pipeline, 0, pipeline.len())).await;
            let Ok(answer) = answer else {
                // A silent connection is given up with all messages that wait behind it.
                self.link.lost(&linked);
                return Err(late("waiting for the replies"));
            };
            match answer {
                Ok(replies) => {
                    self.leave_if_useless(&linked, &replies);
                    return Ok(replies);
                }
                Err(error) => {
                    self.link.lost(&linked);
                    let idle = linked.reused && error.is_connection_dropped();
                    if !(idle && std::mem::take(&mut again)) {
                        return Err(error::publish_error(&error, &self.info.address));
                    }
                }
            }
        }
    }

    /// Gives up a connection to a server that has become a replica, or that no longer knows the login: a new connection may
    /// lead elsewhere, and logs in again.
    fn leave_if_useless(&self, linked: &Linked<MultiplexedConnection>, replies: &[Value]) {
        if replies.iter().any(error::wants_another_connection) {
            self.link.lost(linked);
        }
    }
}
