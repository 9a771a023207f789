//! Sends the messages of one call: keys beside one another, the messages of a key one after the other.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt as _, stream};
use pillarbox_core::publisher::{FailureScope, Message, PublishError, PublishErrorKind, Receipt};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderValue};
use reqwest::{Method, Request};
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use crate::answer::Answer;
use crate::error::Failure;
use crate::headers::SIGNATURE;
use crate::permits::{Permits, ServerPermits};
use crate::target::shown;
use crate::{WebhookPublisher, headers};

impl WebhookPublisher {
    pub(crate) async fn publish_all(&self, messages: Vec<Message>) -> Vec<Receipt> {
        if let Err(closed) = self.open() {
            return vec![Err(closed); messages.len()];
        }
        let call = Call { deadline: Instant::now() + self.timeout, known: Mutex::default() };
        let mut servers = by_server(messages, |message| self.targets.server(&message.target));
        // Those that were silent at last come last.
        servers.sort_by_key(|(server, _)| server.as_ref().is_some_and(|server| self.silences.contain(server)));
        let (all, permits) = (servers.len(), Permits::new(self.concurrency, servers.len()));
        let mut sent = stream::iter(servers)
            .map(|(_, lanes)| self.send_to_server(lanes, &call, permits.of_a_server()))
            .buffer_unordered(all.max(1))
            .concat()
            .await;
        sent.sort_unstable_by_key(|(index, _)| *index);
        let mut receipts: Vec<_> = sent.into_iter().map(|(_, receipt)| receipt).collect();
        self.blame_silent_servers(call, &mut receipts);
        receipts
    }

    async fn send_to_server(&self, lanes: Vec<Lane>, call: &Call, permits: ServerPermits<'_>) -> Vec<(usize, Receipt)> {
        let lanes = stream::iter(lanes).map(|lane| self.send_in_order(lane, call, &permits));
        lanes.buffer_unordered(self.concurrency).concat().await
    }

    /// Sends the messages of a key until one is not taken that may be later.
    async fn send_in_order(&self, lane: Lane, call: &Call, permits: &ServerPermits<'_>) -> Vec<(usize, Receipt)> {
        let _permit = permits.take().await;
        let mut receipts = Vec::with_capacity(lane.len());
        let mut behind: Option<(Arc<str>, PublishError)> = None;
        for (index, message) in lane {
            let target = Arc::clone(&message.target);
            let receipt = match &behind {
                Some((failed, error)) => Err(held_back(error, *failed == target)),
                None => self.send(index, message, call, permits).await,
            };
            if let (None, Err(error)) = (&behind, &receipt)
                && error.kind() != PublishErrorKind::Permanent
            {
                behind = Some((target, error.clone()));
            }
            receipts.push((index, receipt));
        }
        receipts
    }

    /// Gives the silence of endpoints to their server where several of it are silent and none answers.
    fn blame_silent_servers(&self, call: Call, receipts: &mut [Receipt]) {
        let known = call.known.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (server, silent) in known.silent.into_iter().filter(|(server, _)| !known.answered.contains(server)) {
            let mut is_the_server = false;
            for (_, endpoint) in &silent {
                is_the_server = self.silences.note(&server, endpoint);
            }
            for (index, _) in silent.into_iter().filter(|_| is_the_server) {
                if let Some(Err(error)) = receipts.get_mut(index) {
                    *error = error.clone().limited_to(self.targets.scope_of_server());
                }
            }
        }
    }

    async fn send(&self, index: usize, message: Message, call: &Call, permits: &ServerPermits<'_>) -> Receipt {
        let of_target = |error: PublishError| error.limited_to(FailureScope::Target);
        let url = self.targets.url(&message.target).map_err(of_target)?;
        let place = shown(&url);
        let (host, endpoint) = (url.origin().ascii_serialization(), url[..Position::AfterPath].to_owned());
        if let Some(error) = call.known(&host).or_else(|| call.known(&endpoint)) {
            return Err(error);
        }
        if Instant::now() >= call.deadline {
            let error = PublishError::unavailable(format!("{place}: no time was left to send this message"));
            return Err(error.limited_to(FailureScope::Message));
        }
        let request = self.message_request(url.clone(), message)?;
        let is_signed = request.headers().contains_key(SIGNATURE);
        match timeout_at(call.deadline, self.client.execute(request)).await {
            Ok(Ok(response)) => {
                permits.answered();
                self.silences.end(&host);
                call.answered(host);
                let answer = Answer::read(response, &url, call.deadline, self.clock.now(), &self.secrets).await;
                let receipt = answer.receipt(&place, is_signed).map_err(of_target);
                if let (true, Err(error)) = (answer.wants_a_pause(), &receipt) {
                    call.learn(endpoint, error);
                }
                receipt
            }
            Ok(Err(error)) => {
                let (failure, problem) = Failure::of(error);
                let scope =
                    if failure.is_of_the_host() { self.targets.scope_of_server() } else { FailureScope::Target };
                let error = failure.into_error(&place, &problem).limited_to(scope);
                if failure.is_of_the_host() {
                    call.learn(host, &error);
                }
                Err(error)
            }
            Err(_) => {
                call.silent(host, index, endpoint);
                Err(of_target(Failure::Slow.into_error(&place, "")))
            }
        }
    }

    /// A message, signed for its tenant.
    fn message_request(&self, url: Url, message: Message) -> Result<Request, PublishError> {
        let mut request = self.request(Method::POST, url);
        let seconds = self.clock.now().as_micros().div_euclid(1_000_000);
        let mut headers = headers::of(&message, self.signing.keys(message.tenant.as_deref())?, seconds)?;
        if message.body.is_empty() {
            // Without it, an endpoint cannot tell that there is no body to come.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        headers.extend(std::mem::take(request.headers_mut()));
        *request.headers_mut() = headers;
        *request.body_mut() = Some(message.body.into());
        Ok(request)
    }

    /// A request with credentials.
    pub(crate) fn request(&self, method: Method, url: Url) -> Request {
        let mut request = Request::new(method, url);
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        request
    }
}

/// The state that the requests of one call share.
struct Call {
    deadline: Instant,
    known: Mutex<Known>,
}

/// The knowledge of a call about the places that it sends to.
#[derive(Default)]
struct Known {
    /// Hosts that cannot be connected to, and endpoints that asked for a pause: to try them again for each message of the call
    /// would be a storm.
    closed: HashMap<String, PublishError>,
    /// Hosts that have answered.
    answered: HashSet<String>,
    /// The messages that had no answer in time, by host, with their endpoints.
    silent: HashMap<String, Vec<(usize, String)>>,
}

impl Call {
    fn known(&self, place: &str) -> Option<PublishError> {
        self.lock().closed.get(place).cloned()
    }

    fn learn(&self, place: String, error: &PublishError) {
        self.lock().closed.insert(place, error.clone());
    }

    fn answered(&self, host: String) {
        self.lock().answered.insert(host);
    }

    fn silent(&self, host: String, index: usize, endpoint: String) {
        self.lock().silent.entry(host).or_default().push((index, endpoint));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages that wait for one another, with their places in the call.
type Lane = Vec<(usize, Message)>;

/// The messages for each server, and among them those of a key in a lane.
fn by_server(messages: Vec<Message>, server: impl Fn(&Message) -> Option<String>) -> Vec<(Option<String>, Vec<Lane>)> {
    let mut servers: Vec<(Option<String>, Vec<Lane>)> = Vec::new();
    let mut numbers: HashMap<Option<String>, usize> = HashMap::new();
    let mut of_key: HashMap<(usize, Box<str>), usize> = HashMap::new();
    for (index, message) in messages.into_iter().enumerate() {
        let server = server(&message);
        let number = *numbers.entry(server.clone()).or_insert(servers.len());
        if number == servers.len() {
            servers.push((server, Vec::new()));
        }
        let Some((_, lanes)) = servers.get_mut(number) else { continue };
        let lane = match &message.key {
            Some(key) => *of_key.entry((number, key.clone())).or_insert(lanes.len()),
            None => lanes.len(),
        };
        match lanes.get_mut(lane) {
            Some(lane) => lane.push((index, message)),
            None => lanes.push(vec![(index, message)]),
        }
    }
    servers
}

/// The error of a message that was not sent, since the one before it was not taken; a pause that was asked for holds for the same
/// target only.
fn held_back(failed: &PublishError, same_target: bool) -> PublishError {
    let text = format!("not sent, since an earlier message of its key was not taken: {failed}");
    let error = PublishError::unavailable(text).limited_to(FailureScope::Message);
    match failed.delay().filter(|_| same_target) {
        Some(delay) => error.retry_after(delay),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pillarbox_core::event::EventId;
    use pillarbox_core::publisher::PublishErrorKind::Unavailable;

    use super::*;

    #[test]
    fn messages_of_a_key_and_a_server_stand_in_one_lane() {
        let messages = |keys: &[(&'static str, Option<&'static str>)]| {
            let message = |(target, key): &(&'static str, Option<&'static str>)| {
                let mut message = Message::new(*target, EventId::new("1").expect("an id"), "");
                message.key = key.map(Into::into);
                message
            };
            keys.iter().map(message).collect::<Vec<_>>()
        };
        let places = |keys: &[(&'static str, Option<&'static str>)]| -> Vec<Vec<Vec<usize>>> {
            let server = |message: &Message| message.target.split('/').next().map(str::to_owned);
            let lanes = |lanes: Vec<Lane>| {
                lanes.into_iter().map(|lane| lane.into_iter().map(|(index, _)| index).collect()).collect()
            };
            by_server(messages(keys), server).into_iter().map(|(_, of_server)| lanes(of_server)).collect()
        };
        let one = [Some("a"), None, Some("b"), Some("a"), None, Some("b"), Some("a")].map(|key| ("x", key));
        assert_eq!(places(&one), [[vec![0, 3, 6], vec![1], vec![2, 5], vec![4]]]);
        let two = [("x/1", Some("a")), ("y/1", Some("a")), ("x/2", Some("a")), ("y/1", None)];
        assert_eq!(places(&two), [vec![vec![0, 2]], vec![vec![1], vec![3]]]);
    }

    #[test]
    fn what_is_held_back_is_blamed_for_nothing_that_the_destination_did() {
        let pause = Duration::from_secs(3);
        let busy = || PublishError::unavailable("x").retry_after(pause);
        for (failed, same, delay) in [
            (busy(), true, Some(pause)),
            (busy(), false, None),
            (PublishError::misconfigured("x"), true, None),
            (PublishError::temporary("x"), true, None),
        ] {
            let error = held_back(&failed, same);
            let found = (error.kind(), error.delay(), error.scope());
            assert_eq!(found, (Unavailable, delay, FailureScope::Message), "{failed:?}");
        }
    }
}
