use pillarbox_core::publisher::{Message, PublishError, Receipt};
use rumqttc::PublishNotice;
use tokio::time::{Instant, timeout_at};

use crate::session::{End, Session, UnderWay};
use crate::{MqttPublisher, error, packet};

/// A message after it was handed to the client.
enum Sent {
    Refused(PublishError),
    Awaiting(PublishNotice, UnderWay),
    /// The connection had ended, or the time was up.
    Left,
}

impl MqttPublisher {
    /// Hands all messages to the client, one after the other and without waiting for acknowledgements, and then collects these.
    pub(crate) async fn publish_all(&self, messages: &[Message]) -> Vec<Receipt> {
        if messages.is_empty() {
            return Vec::new();
        }
        let deadline = Instant::now() + self.options.timeout;
        let linked = match self.connected(deadline).await {
            Ok(linked) => linked,
            Err(error) => return vec![Err(error); messages.len()],
        };
        let session = &*linked.connection;
        let mut late = false;
        let mut sent = Vec::with_capacity(messages.len());
        for message in messages {
            sent.push(self.send(session, message, deadline, &mut late).await);
        }
        let mut receipts = Vec::with_capacity(messages.len());
        for (message, sent) in messages.iter().zip(sent) {
            receipts.push(match sent {
                Sent::Refused(error) => Err(error),
                Sent::Left if late => Err(self.late("sending")),
                Sent::Left => Err(session.failure().error),
                Sent::Awaiting(notice, _under_way) => {
                    match timeout_at(deadline, session.alive(notice.wait_async())).await {
                        Ok(Ok(Ok(result))) => error::receipt(&result, &message.target),
                        Ok(Ok(Err(_))) => Err(blame(message, session.failure())),
                        Ok(Err(end)) => Err(blame(message, end)),
                        Err(_) => {
                            late = true;
                            Err(self.late("waiting for the acknowledgement"))
                        }
                    }
                }
            });
        }
        if late {
            // What is silent is given up with all that waits behind it.
            self.link.lost(&linked);
        }
        receipts
    }

    async fn send(&self, session: &Session, message: &Message, deadline: Instant, late: &mut bool) -> Sent {
        if let Some(refusal) = packet::refuse(message, self.options.max_body, session.max_packet) {
            return Sent::Refused(refusal);
        }
        // One that is late must not be overtaken by the next of its key.
        if *late {
            return Sent::Left;
        }
        let under_way = session.under_way(message.body.len());
        let publish = session.client.publish_tracked(&*message.target, message.body.clone(), packet::options(message));
        match timeout_at(deadline, session.alive(publish)).await {
            Ok(Ok(Ok(notice))) => Sent::Awaiting(notice, under_way),
            Ok(Ok(Err(_)) | Err(_)) => Sent::Left,
            Err(_) => {
                *late = true;
                Sent::Left
            }
        }
    }
}

/// The error of a message that was not acknowledged before the connection ended.
fn blame(message: &Message, end: End) -> PublishError {
    if end.too_large == Some(message.body.len()) {
        let bytes = message.body.len();
        return PublishError::permanent(format!(
            "{}: the broker finds {bytes} bytes too large; set `max_body` to its limit, so that it need not cut the connection",
            message.target
        ));
    }
    end.error
}
