//! The messages of one call on their way through a connection.

use std::collections::VecDeque;

use pillarbox_core::publisher::{Message, PublishError, Receipt};
use rumqttc::PublishNotice;
use tokio::time::{Instant, timeout_at};

use crate::error::{self, End};
use crate::packet;
use crate::session::Session;

pub(crate) struct Call<'a> {
    pub(crate) deadline: Instant,
    max_body: usize,
    /// The messages without a receipt, in their order.
    left: VecDeque<Entry<'a>>,
    receipts: Vec<(usize, Receipt)>,
}

/// A message and its place in the call.
#[derive(Clone, Copy)]
struct Entry<'a> {
    index: usize,
    message: &'a Message,
}

/// The reason why messages were left without an answer.
#[derive(Clone)]
pub(crate) enum Stop {
    /// The connection has ended.
    Ended(End),
    /// The time was up, while this was being done.
    Late(&'static str),
}

impl<'a> Call<'a> {
    pub(crate) fn new(messages: &'a [Message], max_body: usize, deadline: Instant) -> Self {
        let left = messages.iter().enumerate().map(|(index, message)| Entry { index, message }).collect();
        Self { deadline, max_body, left, receipts: Vec::with_capacity(messages.len()) }
    }

    /// The number of messages without a receipt.
    pub(crate) fn left(&self) -> usize {
        self.left.len()
    }

    /// The first message without a receipt.
    pub(crate) fn first(&self) -> Option<&'a Message> {
        self.left.front().map(|entry| entry.message)
    }

    /// Gives the first message without a receipt this error.
    pub(crate) fn fail_first(&mut self, error: PublishError) {
        self.receipts.extend(self.left.pop_front().map(|entry| (entry.index, Err(error))));
    }

    /// Gives all messages without a receipt this error.
    pub(crate) fn fail(&mut self, error: &PublishError) {
        self.receipts.extend(self.left.drain(..).map(|entry| (entry.index, Err(error.clone()))));
    }

    /// The receipts in the order of the messages.
    pub(crate) fn receipts(mut self) -> Vec<Receipt> {
        self.receipts.sort_unstable_by_key(|(index, _)| *index);
        self.receipts.into_iter().map(|(_, receipt)| receipt).collect()
    }

    /// Hands the first so many messages to the client, one after the other and without waiting for acknowledgements, and then collects
    /// these.
    ///
    /// # Errors
    /// When messages had no answer; these are left.
    pub(crate) async fn send(&mut self, session: &Session, count: usize) -> Result<(), Stop> {
        let rest = self.left.split_off(count.min(self.left.len()));
        let mut stop = Ok(());
        let mut sent = Vec::with_capacity(self.left.len());
        for entry in self.left.drain(..) {
            let notice = match packet::refuse(entry.message, self.max_body, session.max_packet) {
                Some(refusal) => Sent::Refused(refusal),
                // It must not overtake one before it that has its key.
                None if stop.is_err() => Sent::Left,
                None => match hand_over(session, entry.message, self.deadline).await {
                    Ok(notice) => Sent::Awaiting(notice),
                    Err(reason) => {
                        stop = Err(reason);
                        Sent::Left
                    }
                },
            };
            sent.push((entry, notice));
        }
        for (entry, sent) in sent {
            let answer = match sent {
                Sent::Refused(refusal) => Some(Err(refusal)),
                Sent::Left => None,
                Sent::Awaiting(notice) => match answer(session, entry.message, notice, self.deadline).await {
                    Ok(receipt) => Some(receipt),
                    Err(reason) => {
                        stop = stop.and(Err(reason));
                        None
                    }
                },
            };
            match answer {
                Some(receipt) => self.receipts.push((entry.index, receipt)),
                None => self.left.push_back(entry),
            }
        }
        self.left.extend(rest);
        stop
    }
}

/// A message after it was handed to the client.
enum Sent {
    Refused(PublishError),
    Awaiting(PublishNotice),
    Left,
}

async fn hand_over(session: &Session, message: &Message, deadline: Instant) -> Result<PublishNotice, Stop> {
    let publish = session.client.publish_tracked(&*message.target, message.body.clone(), packet::options(message));
    match timeout_at(deadline, session.alive(publish)).await {
        Ok(Ok(Ok(notice))) => Ok(notice),
        Ok(Ok(Err(_))) => Err(Stop::Ended(session.end())),
        Ok(Err(end)) => Err(Stop::Ended(end)),
        Err(_) => Err(Stop::Late("sending")),
    }
}

async fn answer(
    session: &Session,
    message: &Message,
    notice: PublishNotice,
    deadline: Instant,
) -> Result<Receipt, Stop> {
    match timeout_at(deadline, session.alive(notice.wait_async())).await {
        Ok(Ok(Ok(result))) => Ok(error::receipt(&result, &message.target)),
        Ok(Ok(Err(_))) => Err(Stop::Ended(session.end())),
        Ok(Err(end)) => Err(Stop::Ended(end)),
        Err(_) => Err(Stop::Late("waiting for the acknowledgement")),
    }
}
