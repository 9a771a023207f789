use pillarbox_core::publisher::{FailureScope, Message, Receipt};
use tokio::time::{Instant, timeout_at};

use crate::MqttPublisher;
use crate::call::{Call, Stop};
use crate::error::End;

/// The connections in a row that may end with no message answered in between, until a call gives up: a broker that ends each of
/// them is not to be connected to once for each message.
const MAX_ENDS_IN_A_ROW: usize = 6;

/// The outcome for messages that were sent.
enum Outcome {
    Answered,
    /// The connection has ended before all were answered, and one of them may be the reason; those are left.
    Ended(End),
    /// The broker is not there, or silent; nothing is left.
    Failed,
}

impl MqttPublisher {
    /// Sends all messages at once; those whose connection ends before their answer are sent again with care.
    pub(crate) async fn publish_all(&self, messages: &[Message]) -> Vec<Receipt> {
        let deadline = Instant::now() + self.options.timeout;
        let mut call = Call::new(messages, self.options.max_body, deadline);
        if call.left() > 0 {
            let has_ended = self.send_at_once(&mut call).await;
            self.send_with_care(&mut call, has_ended).await;
        }
        call.fail(&self.late("waiting for others").limited_to(FailureScope::Message));
        call.receipts()
    }

    /// Returns true if the connection has ended, possibly over a message that is left. While another call takes care, all are left.
    async fn send_at_once(&self, call: &mut Call<'_>) -> bool {
        let Ok(pace) = timeout_at(call.deadline, self.pace.read()).await else { return false };
        pace.is_full() && matches!(self.send(call, usize::MAX).await, Outcome::Ended(_))
    }

    /// Sends what is left in numbers that grow from one, while no other call sends, and so finds the message over which the broker
    /// ends the connection.
    async fn send_with_care(&self, call: &mut Call<'_>, has_ended: bool) {
        if call.left() == 0 {
            return;
        }
        let Ok(mut pace) = timeout_at(call.deadline, self.pace.write()).await else { return };
        if has_ended {
            pace.slow_down();
        }
        let mut ends_in_a_row = 0;
        while call.left() > 0 && Instant::now() < call.deadline {
            let (left, window) = (call.left(), pace.window());
            let outcome = self.send(call, window).await;
            if call.left() < left {
                ends_in_a_row = 0;
            }
            let end = match outcome {
                Outcome::Answered => {
                    pace.quicken();
                    continue;
                }
                Outcome::Ended(end) => end,
                Outcome::Failed => return,
            };
            pace.slow_down();
            ends_in_a_row += 1;
            if let (1, Some(message)) = (window.min(left), call.first())
                && let Some(error) = pace.classify_end(message, &end)
            {
                call.fail_first(error);
            }
            if ends_in_a_row == MAX_ENDS_IN_A_ROW {
                call.fail(&end.error);
            }
        }
    }

    /// Sends the first so many messages of what is left.
    async fn send(&self, call: &mut Call<'_>, count: usize) -> Outcome {
        let linked = match self.connected(call.deadline).await {
            Ok(linked) => linked,
            Err(error) => {
                call.fail(&error);
                return Outcome::Failed;
            }
        };
        match call.send(&linked.connection, count).await {
            Ok(()) => return Outcome::Answered,
            Err(Stop::Ended(end)) if end.suspicion.is_some() => return Outcome::Ended(end),
            Err(Stop::Ended(end)) => call.fail(&end.error),
            Err(Stop::Late(doing)) => {
                call.fail(&self.late(doing));
                // A silent connection is given up with all messages that wait behind it.
                self.link.lost(&linked);
            }
        }
        Outcome::Failed
    }
}
