use std::collections::HashMap;
use std::sync::Arc;

use pillarbox_connect::batches;
use pillarbox_core::publisher::{FailureScope, Linked, Message, PublishError, Receipt};
use tokio::time::{Instant, timeout_at};

use crate::classify_channel_error::classify_channel_error;
use crate::classify_replies::{ChannelReply, MessageOutcome, classify_replies};
use crate::route::Route;
use crate::send::send;
use crate::session::{Session, soft};
use crate::{RabbitMqPublisher, envelope, error};

/// The number of messages that are under way on one channel at most.
const MAX_MESSAGES: usize = 1_000;
/// The number of bytes of their bodies and headers, but for a single larger one.
pub(crate) const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The number of times that the broker may close the channel because of some messages, until the others are left to the caller.
const ROUNDS: usize = 5;

/// The time of a call.
#[derive(Debug, Clone, Copy)]
struct Span {
    began: Instant,
    deadline: Instant,
}

/// Messages with their receipts, as far as there are any.
struct Batch<'a> {
    messages: &'a [Message],
    receipts: Vec<Option<Receipt>>,
}

/// A message without a receipt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnconfirmedMessage<'a> {
    /// Its place in the batch.
    pub(crate) index: usize,
    pub(crate) message: &'a Message,
    pub(crate) route: Route<'a>,
}

impl RabbitMqPublisher {
    /// Publishes all messages, a batch after the other, so that a key's order survives a failure in between.
    pub(crate) async fn publish_all(&self, messages: &[Message]) -> Vec<Receipt> {
        let began = Instant::now();
        let span = Span { began, deadline: began + self.options.timeout };
        let mut receipts = Vec::with_capacity(messages.len());
        for batch in batches(messages, MAX_MESSAGES, MAX_BYTES, size) {
            let mut batch = Batch::new(batch, self.options.max_body);
            let outcome = self.publish_batch(&mut batch, span).await;
            let failed = outcome.is_err();
            let reason = outcome.err().unwrap_or_else(|| PublishError::unavailable("the broker did not confirm it"));
            receipts.extend(batch.receipts.into_iter().map(|receipt| receipt.unwrap_or_else(|| Err(reason.clone()))));
            if failed {
                receipts.resize(messages.len(), Err(reason));
                break;
            }
        }
        receipts
    }

    /// Publishes until each message has its receipt. A message without one after a failure is not the cause of it.
    async fn publish_batch(&self, batch: &mut Batch<'_>, span: Span) -> Result<(), PublishError> {
        // The calls ahead report the cause.
        let unsent = || self.late("waiting for others").limited_to(FailureScope::Message);
        let _slot = timeout_at(span.deadline, self.channels.acquire())
            .await
            .map_err(|_| unsent())?
            .map_err(|_| PublishError::unavailable("the publisher is closed"))?;
        if Instant::now() >= span.deadline {
            return Err(unsent());
        }
        for _ in 0..ROUNDS {
            if batch.unconfirmed().is_empty() {
                return Ok(());
            }
            let linked = timeout_at(span.deadline, self.connected()).await.map_err(|_| self.late("connecting"))??;
            if linked.connection.is_blocked() {
                return Err(self.blocked());
            }
            batch.refuse_headers(linked.connection.frame_max());
            self.look_for_exchanges(&linked, batch, span).await?;
            self.publish_round(&linked, batch, span).await?;
        }
        Ok(())
    }

    /// Refuses what goes to an exchange that is missing.
    async fn look_for_exchanges(
        &self,
        linked: &Linked<Arc<Session>>,
        batch: &mut Batch<'_>,
        span: Span,
    ) -> Result<(), PublishError> {
        let mut looked_for = HashMap::new();
        for UnconfirmedMessage { index, message, route } in batch.unconfirmed() {
            let name = route.exchange;
            if !looked_for.contains_key(name) {
                let found = timeout_at(span.deadline, linked.connection.has_exchange(name)).await;
                let found = found.map_err(|_| self.give_up(linked, span, "looking for an exchange"))?;
                looked_for.insert(name, found.map_err(|error| self.lost(linked, &error))?);
            }
            if looked_for.get(name) == Some(&false) {
                batch.settle(index, Err(error::missing(&message.target, route)));
            }
        }
        Ok(())
    }

    /// Publishes all that has no receipt, on one channel. Succeeds where another round may bring the rest their receipts.
    async fn publish_round(
        &self,
        linked: &Linked<Arc<Session>>,
        batch: &mut Batch<'_>,
        span: Span,
    ) -> Result<(), PublishError> {
        let unconfirmed = batch.unconfirmed();
        if unconfirmed.is_empty() {
            return Ok(());
        }
        let channel = timeout_at(span.deadline, linked.connection.channel()).await;
        let channel = channel.map_err(|_| self.give_up(linked, span, "opening a channel"))?;
        let channel = channel.map_err(|error| self.lost(linked, &error))?;

        let sent = Instant::now();
        let replies = send(&channel, &unconfirmed, span.deadline).await;
        if replies.outcomes.iter().any(|outcome| *outcome != ChannelReply::Unheard) {
            linked.connection.note_answer(sent);
        }
        let verdicts = classify_replies(&unconfirmed, &replies.outcomes, &replies.returned);
        for (&UnconfirmedMessage { index, message, route }, verdict) in unconfirmed.iter().zip(&verdicts) {
            match verdict {
                MessageOutcome::Confirmed => batch.settle(index, Ok(None)),
                MessageOutcome::Unroutable => batch.settle(index, Err(error::unroutable(&message.target, route))),
                MessageOutcome::Nacked => batch.settle(index, Err(nacked(&message.target))),
                MessageOutcome::Unknown => {}
            }
        }
        let Some(failure) = replies.failure else {
            if !verdicts.contains(&MessageOutcome::Unknown) {
                linked.connection.give_back(channel);
                return Ok(());
            }
            if linked.connection.is_blocked() || !linked.connection.has_answered_since(span.began) {
                return Err(self.give_up(linked, span, "waiting for the confirmations"));
            }
            // Others are acknowledged, so the connection is well. The channel, on which answers may still come, is closed as it is dropped.
            let unknown = unconfirmed.iter().zip(&replies.outcomes).zip(&verdicts);
            for ((UnconfirmedMessage { index, message, .. }, outcome), _) in
                unknown.filter(|(_, verdict)| **verdict == MessageOutcome::Unknown)
            {
                batch.settle(*index, Err(unknown_fate(&message.target, *outcome)));
            }
            return Ok(());
        };
        if self.settle_channel_error(linked, &failure, batch) { Ok(()) } else { Err(self.lost(linked, &failure)) }
    }

    /// Settles the messages because of which the broker has closed the channel, and says whether there are any.
    fn settle_channel_error(
        &self,
        linked: &Linked<Arc<Session>>,
        failure: &lapin::Error,
        batch: &mut Batch<'_>,
    ) -> bool {
        let Some(complaint) = soft(failure) else { return false };
        let said = error::publish_error(failure, &self.info.address).to_string();
        let classified = classify_channel_error(&complaint, &said, &batch.unconfirmed());
        for (refused, error) in &classified {
            linked.connection.forget_exchange(refused.route.exchange);
            batch.settle(refused.index, Err(error.clone()));
        }
        !classified.is_empty()
    }

    /// Leaves a connection on which nothing arrived in time; not one that the broker keeps waiting, since it would do the same
    /// to the next, and not one on which it has answered other messages of the call's time.
    fn give_up(&self, linked: &Linked<Arc<Session>>, span: Span, doing: &str) -> PublishError {
        if linked.connection.is_blocked() {
            return self.blocked();
        }
        if linked.connection.has_answered_since(span.began) {
            return self.late(doing).limited_to(FailureScope::Message);
        }
        self.link.lost(linked);
        self.late(doing)
    }

    pub(crate) fn lost(&self, linked: &Linked<Arc<Session>>, error: &lapin::Error) -> PublishError {
        self.link.lost(linked);
        error::publish_error(error, &self.info.address)
    }

    fn blocked(&self) -> PublishError {
        let address = &self.info.address;
        PublishError::unavailable(format!("{address} is short of memory or disk, and lets publishers wait"))
    }
}

impl<'a> Batch<'a> {
    fn new(messages: &'a [Message], max_body: usize) -> Self {
        let refuse = |message| {
            let refusal = Route::of(message).err().or_else(|| envelope::refuse(message, max_body));
            refusal.map(Err)
        };
        Self { messages, receipts: messages.iter().map(refuse).collect() }
    }

    /// Refuses what has more headers than fit into a frame.
    fn refuse_headers(&mut self, frame_max: usize) {
        for UnconfirmedMessage { index, message, .. } in self.unconfirmed() {
            if let Some(refusal) = envelope::refuse_headers(message, frame_max) {
                self.settle(index, Err(refusal));
            }
        }
    }

    /// The messages without a receipt, and where they go.
    fn unconfirmed(&self) -> Vec<UnconfirmedMessage<'a>> {
        let unsettled =
            self.messages.iter().zip(&self.receipts).enumerate().filter(|(_, (_, receipt))| receipt.is_none());
        let open = |(index, (message, _))| Some(UnconfirmedMessage { index, message, route: Route::of(message).ok()? });
        unsettled.filter_map(open).collect()
    }

    fn settle(&mut self, index: usize, receipt: Receipt) {
        if let Some(open) = self.receipts.get_mut(index) {
            *open = Some(receipt);
        }
    }
}

fn size(message: &Message) -> usize {
    message.body.len() + message.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
}

fn nacked(target: &str) -> PublishError {
    let text = format!("{target}: the broker did not take it, as when a queue is full and refuses more");
    PublishError::unavailable(text).limited_to(FailureScope::Target)
}

/// The error of a message of which it is not known whether it has arrived, while others are acknowledged.
fn unknown_fate(target: &str, outcome: ChannelReply) -> PublishError {
    if outcome == ChannelReply::Unheard {
        let text = format!("{target}: the broker did not confirm it in time, as when a queue has lost its majority");
        return PublishError::unavailable(text).limited_to(FailureScope::Target);
    }
    let text = format!("{target}: the broker confirmed it, and others came back before it was told which");
    PublishError::unavailable(text).limited_to(FailureScope::Message)
}
