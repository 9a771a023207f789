//! Sends the messages of one call: keys beside one another, the messages of a key one after the other.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::{StreamExt as _, stream};
use pillarbox_core::publisher::{Message, PublishError, Receipt};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderValue};
use reqwest::{Method, Request};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::answer::Answer;
use crate::error::Failure;
use crate::target::shown;
use crate::{WebhookPublisher, closed, headers};

impl WebhookPublisher {
    pub(crate) async fn publish_all(&self, messages: Vec<Message>) -> Vec<Receipt> {
        if self.is_closed() {
            return vec![Err(closed()); messages.len()];
        }
        let call = Call { deadline: Instant::now() + self.timeout, silent: Mutex::default() };
        let count = messages.len();
        let sent = stream::iter(lanes(messages))
            .map(|lane| self.send_in_order(lane, &call))
            .buffer_unordered(self.concurrency)
            .concat()
            .await;
        in_order(count, sent)
    }

    /// Sends the messages of a key until one is not taken.
    async fn send_in_order(&self, lane: Vec<(usize, Message)>, call: &Call) -> Vec<(usize, Receipt)> {
        let mut receipts = Vec::with_capacity(lane.len());
        let mut behind = None;
        for (index, message) in lane {
            let receipt = match &behind {
                Some(failed) => Err(held_back(failed)),
                None => self.send(message, call).await,
            };
            if let (None, Err(error)) = (&behind, &receipt) {
                behind = Some(error.clone());
            }
            receipts.push((index, receipt));
        }
        receipts
    }

    async fn send(&self, message: Message, call: &Call) -> Receipt {
        let url = self.targets.url(&message.target)?;
        let place = shown(&url);
        let (host, endpoint) = (url.origin().ascii_serialization(), place.clone());
        if let Some(error) = call.known(&host).or_else(|| call.known(&endpoint)) {
            return Err(error);
        }
        if Instant::now() >= call.deadline {
            return Err(PublishError::unavailable(format!("{place}: no time was left to send this message")));
        }
        let request = self.request(Method::POST, url, Some(message))?;
        match timeout_at(call.deadline, self.client.execute(request)).await {
            Ok(Ok(response)) => {
                let answer = Answer::read(response, call.deadline, self.clock.now(), &self.secrets).await;
                let receipt = answer.receipt(&place);
                if let (true, Err(error)) = (answer.wants_a_pause(), &receipt) {
                    call.learn(endpoint, error);
                }
                receipt
            }
            Ok(Err(error)) => {
                let (failure, problem) = Failure::of(error);
                let error = failure.into_error(&place, &problem);
                if failure.is_of_the_host() {
                    call.learn(host, &error);
                }
                Err(error)
            }
            Err(_) => Err(Failure::Slow.into_error(&place, "")),
        }
    }

    /// A request with credentials, and with what belongs to a message.
    pub(crate) fn request(&self, method: Method, url: Url, message: Option<Message>) -> Result<Request, PublishError> {
        let mut request = Request::new(method, url);
        if let Some(message) = message {
            let seconds = self.clock.now().as_micros().div_euclid(1_000_000);
            *request.headers_mut() = headers::of(&message, &self.keys, seconds)?;
            if message.body.is_empty() {
                // Without it, an endpoint cannot tell that there is no body to come.
                request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            *request.body_mut() = Some(message.body.into());
        }
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        Ok(request)
    }
}

/// What the requests of one call share.
struct Call {
    deadline: Instant,
    /// Hosts that cannot be connected to, and endpoints that asked for a pause: to try them again for each message of the call
    /// would be a storm.
    silent: Mutex<HashMap<String, PublishError>>,
}

impl Call {
    fn known(&self, place: &str) -> Option<PublishError> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    fn learn(&self, place: String, error: &PublishError) {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).insert(place, error.clone());
    }
}

/// Messages that wait for one another, with their places in the call.
fn lanes(messages: Vec<Message>) -> Vec<Vec<(usize, Message)>> {
    let mut lanes: Vec<Vec<(usize, Message)>> = Vec::new();
    let mut of_key: HashMap<Box<str>, usize> = HashMap::new();
    for (index, message) in messages.into_iter().enumerate() {
        let lane = match &message.key {
            Some(key) => *of_key.entry(key.clone()).or_insert(lanes.len()),
            None => lanes.len(),
        };
        match lanes.get_mut(lane) {
            Some(lane) => lane.push((index, message)),
            None => lanes.push(vec![(index, message)]),
        }
    }
    lanes
}

/// What became of a message that was not sent, since the one before it was not taken.
fn held_back(failed: &PublishError) -> PublishError {
    let text = format!("not sent, since an earlier message of its key was not taken: {failed}");
    if !failed.blames_the_destination() {
        return PublishError::temporary(text);
    }
    let error = PublishError::unavailable(text);
    match failed.delay() {
        Some(delay) => error.retry_after(delay),
        None => error,
    }
}

fn in_order(count: usize, sent: Vec<(usize, Receipt)>) -> Vec<Receipt> {
    let mut receipts: Vec<Receipt> = vec![Err(PublishError::unavailable("was not sent")); count];
    for (index, receipt) in sent {
        if let Some(place) = receipts.get_mut(index) {
            *place = receipt;
        }
    }
    receipts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pillarbox_core::event::EventId;
    use pillarbox_core::publisher::PublishErrorKind::{Temporary, Unavailable};

    use super::*;

    #[test]
    fn messages_of_a_key_stand_in_one_lane() {
        let keys = [Some("a"), None, Some("b"), Some("a"), None, Some("b"), Some("a")];
        let messages = keys.map(|key| {
            let mut message = Message::new("x", EventId::new("1").expect("an id"), "");
            message.key = key.map(Into::into);
            message
        });
        let places: Vec<Vec<usize>> =
            lanes(messages.into()).into_iter().map(|lane| lane.into_iter().map(|(index, _)| index).collect()).collect();
        assert_eq!(places, [vec![0, 3, 6], vec![1], vec![2, 5], vec![4]]);
    }

    #[test]
    fn what_is_held_back_is_blamed_for_nothing_that_the_destination_did() {
        let pause = Duration::from_secs(3);
        for (failed, kind, delay) in [
            (PublishError::unavailable("x").retry_after(pause), Unavailable, Some(pause)),
            (PublishError::misconfigured("x"), Unavailable, None),
            (PublishError::temporary("x"), Temporary, None),
            (PublishError::permanent("x"), Temporary, None),
        ] {
            let error = held_back(&failed);
            assert_eq!((error.kind(), error.delay()), (kind, delay), "{failed:?}");
        }
    }
}
