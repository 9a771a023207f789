use std::task::Poll;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, poll};
use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, ErrorKind, PublisherConfirm};
use pillarbox_core::publisher::Message;
use tokio::time::{Instant, timeout_at};

use crate::classify_replies::{ChannelReply, Returned};
use crate::envelope;
use crate::publish::UnconfirmedMessage;
use crate::route::Route;

/// The broker's answers to messages that were sent on one channel, in their order.
pub(crate) struct ChannelReplies {
    pub(crate) outcomes: Vec<ChannelReply>,
    pub(crate) returned: Vec<Returned>,
    /// The error with which the channel was closed, if it was.
    pub(crate) failure: Option<lapin::Error>,
}

/// A message on its way: written to the connection, then awaited.
enum Stage<'a> {
    Writing(BoxFuture<'a, lapin::Result<PublisherConfirm>>),
    Awaiting(PublisherConfirm),
    Over(ChannelReply),
}

/// Sends messages, all at once, and waits for their confirmations until the deadline.
pub(crate) async fn send(channel: &Channel, batch: &[UnconfirmedMessage<'_>], deadline: Instant) -> ChannelReplies {
    let mut replies = ChannelReplies { outcomes: Vec::new(), returned: Vec::new(), failure: None };
    let mut stages = Vec::with_capacity(batch.len());
    for UnconfirmedMessage { message, route, .. } in batch {
        let mut writing = publish(channel, message, *route).boxed();
        // The client queues a message when its future is first polled; so they are, in their order, before any is awaited.
        stages.push(match poll!(&mut writing) {
            Poll::Pending => Stage::Writing(writing),
            Poll::Ready(Ok(confirm)) => Stage::Awaiting(confirm),
            Poll::Ready(Err(error)) => Stage::Over(replies.note_failure(error)),
        });
    }
    // Twice, since one that had nothing to say may have been told something while others were asked, and may hold what shows
    // that another has come back.
    for _ in 0..2 {
        for stage in &mut stages {
            replies.advance(stage, deadline).await;
        }
    }
    let outcome = |stage: &Stage<'_>| if let Stage::Over(outcome) = stage { *outcome } else { ChannelReply::Unheard };
    replies.outcomes = stages.iter().map(outcome).collect();
    replies
}

async fn publish(channel: &Channel, message: &Message, route: Route<'_>) -> lapin::Result<PublisherConfirm> {
    // Neither is too long: the route has been checked.
    let exchange = ShortString::try_new(route.exchange).unwrap_or_default();
    let key = ShortString::try_new(route.key).unwrap_or_default();
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    channel.basic_publish(exchange, key, options, &message.body, envelope::properties(message)).await
}

impl ChannelReplies {
    async fn advance(&mut self, stage: &mut Stage<'_>, deadline: Instant) {
        if let Stage::Writing(writing) = stage {
            match timeout_at(deadline, writing).await {
                Ok(Ok(confirm)) => *stage = Stage::Awaiting(confirm),
                Ok(Err(error)) => *stage = Stage::Over(self.note_failure(error)),
                Err(_) => {}
            }
        }
        if let Stage::Awaiting(confirm) = stage {
            match timeout_at(deadline, confirm).await {
                Ok(Ok(confirmation)) => *stage = Stage::Over(self.note_confirmation(confirmation)),
                Ok(Err(error)) => *stage = Stage::Over(self.note_failure(error)),
                Err(_) => {}
            }
        }
    }

    fn note_confirmation(&mut self, confirmation: Confirmation) -> ChannelReply {
        let (outcome, returned) = match confirmation {
            Confirmation::Ack(returned) => (ChannelReply::Acked, returned),
            Confirmation::Nack(returned) => (ChannelReply::Nacked, returned),
            Confirmation::NotRequested => (ChannelReply::Unheard, None),
        };
        self.returned.extend(returned.map(|message| Returned {
            id: message.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default(),
            exchange: message.exchange.to_string(),
            key: message.routing_key.to_string(),
        }));
        outcome
    }

    /// Keeps the error of the broker rather than that of the closed channel.
    fn note_failure(&mut self, error: lapin::Error) -> ChannelReply {
        let tells = |error: &lapin::Error| matches!(error.kind(), ErrorKind::ProtocolError(_));
        if self.failure.as_ref().is_none_or(|known| !tells(known) && tells(&error)) {
            self.failure = Some(error);
        }
        ChannelReply::Unheard
    }
}
