//! Messages over which a connection has ended without an answer: by chance, or because of the message.

use std::time::Duration;

use pillarbox_core::publisher::{FailureScope, PublishError};
use reqwest::{Error, Request, Response};
use tokio::time::{Instant, sleep, timeout_at};

use crate::WebhookPublisher;
use crate::error::Failure;

/// The pauses before the times that such a message is sent alone. On a network that ends connections at random, an innocent one is
/// answered at one of them.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(250)];

impl WebhookPublisher {
    /// Sends a message again, each time on a connection of its own, until one ends otherwise; `None` if the time is up before.
    pub(crate) async fn send_alone(
        &self,
        deadline: Instant,
        request: impl Fn() -> Result<Request, PublishError>,
    ) -> Option<Result<Response, Error>> {
        let mut last = None;
        for pause in PAUSES {
            let sent = async {
                sleep(pause).await;
                Some(self.alone.execute(request().ok()?).await)
            };
            let result = timeout_at(deadline, sent).await.ok()??;
            if !result.as_ref().is_err_and(|error| Failure::of(error) == Failure::CutOff) {
                return Some(result);
            }
            last = Some(result);
        }
        last
    }
}

/// The error of a message to blame: its endpoint has answered others of the call meanwhile. The attempt counts.
pub(crate) fn blamed(cut_off: &PublishError) -> PublishError {
    PublishError::temporary(format!(
        "{cut_off}; so it did at each of {} more times, and answers other messages: see why it, or what stands before it, does not bear \
         this one",
        PAUSES.len()
    ))
    .limited_to(FailureScope::Target)
}
