//! Sends the messages of one call: tenants, servers and keys beside one another, the messages of a key one after the other.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use pillarbox_core::publisher::{FailureScope, Message, PublishError, PublishErrorKind, Receipt};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderValue};
use reqwest::{Error, Method, Request, Response};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use url::{Position, Url};

use crate::answer::Answer;
use crate::call::{Call, Known};
use crate::cut_off::{is_cut_off, over_message};
use crate::error::Failure;
use crate::headers::SIGNATURE;
use crate::key_groups::{KeyGroup, KeyGroupsByServer, by_tenant};
use crate::permits::{Permit, Permits};
use crate::servers::ServerHealth;
use crate::target::shown;
use crate::{WebhookPublisher, headers};

/// The time without an answer after which others may use the permit of a request meanwhile.
const MAKE_ROOM_AFTER: Duration = Duration::from_secs(1);

/// The requests of all calls, at most, that are under way beyond the permits, since they have had no answer for a while.
pub(crate) const MAX_SLOW: usize = 128;

/// The time for which servers that have answered are sent to before the others, at most; no more than a quarter of a call.
const HEAD_START: Duration = Duration::from_secs(1);

/// The messages to one server that a call sends again at most.
const MAX_SENT_AGAIN: usize = 4;

impl WebhookPublisher {
    pub(crate) async fn publish_all(&self, messages: Vec<Message>) -> Vec<Receipt> {
        if let Err(closed) = self.open() {
            return vec![Err(closed); messages.len()];
        }
        let call = Call::until(Instant::now() + self.timeout);
        let tenants = by_tenant(messages, |message| self.targets.server(&message.target));
        let (all, permits) = (tenants.len(), Permits::new(self.concurrency));
        let mut sent = stream::iter(tenants.into_values())
            .map(|servers| self.send_of_tenant(servers, &call, permits.share(all)))
            .buffer_unordered(all.max(1))
            .concat()
            .await;
        sent.sort_unstable_by_key(|(index, _)| *index);
        let mut receipts: Vec<_> = sent.into_iter().map(|(_, receipt)| receipt).collect();
        let known = call.into_known();
        self.count_cut_offs(&known, &mut receipts);
        self.find_silent_servers(known, &mut receipts);
        receipts
    }

    async fn send_of_tenant(
        &self,
        servers: KeyGroupsByServer,
        call: &Call,
        permits: Permits<'_>,
    ) -> Vec<(usize, Receipt)> {
        // Servers that have answered get a head start: the others may be many, and none of them may answer.
        let (first, then) = self.by_health(servers);
        let (first_count, then_count) = (first.len(), then.len());
        let mut first = std::pin::pin!(self.send_to_servers(first, first_count, call, &permits));
        match timeout(HEAD_START.min(self.timeout / 4), &mut first).await {
            Ok(sent) => [sent, self.send_to_servers(then, then_count, call, &permits).await].concat(),
            Err(_) => {
                let then = self.send_to_servers(then, first_count + then_count, call, &permits);
                <[_; 2]>::from(futures_util::join!(first, then)).concat()
            }
        }
    }

    /// The servers that have answered, and the others, of which the silent ones come last.
    fn by_health(&self, mut servers: KeyGroupsByServer) -> (KeyGroupsByServer, KeyGroupsByServer) {
        let health = |server: &Option<String>| {
            server.as_ref().map_or(ServerHealth::Unknown, |server| self.servers.health(server))
        };
        servers.sort_by_cached_key(|server, _| health(server));
        let answering = servers.keys().take_while(|server| health(server) == ServerHealth::Answers).count();
        let others = servers.split_off(answering);
        (servers, others)
    }

    /// Sends to servers, of which each has one share of so many.
    async fn send_to_servers(
        &self,
        servers: KeyGroupsByServer,
        among: usize,
        call: &Call,
        permits: &Permits<'_>,
    ) -> Vec<(usize, Receipt)> {
        let all = servers.len();
        stream::iter(servers.into_values())
            .map(|groups| self.send_to_server(groups, call, permits.share(among)))
            .buffer_unordered(all.max(1))
            .concat()
            .await
    }

    async fn send_to_server(&self, groups: Vec<KeyGroup>, call: &Call, permits: Permits<'_>) -> Vec<(usize, Receipt)> {
        let groups = stream::iter(groups).map(|group| self.send_in_order(group, call, &permits));
        groups.buffer_unordered(self.concurrency).concat().await
    }

    /// Sends the messages of a key until one is not taken that may be later.
    async fn send_in_order(&self, group: KeyGroup, call: &Call, permits: &Permits<'_>) -> Vec<(usize, Receipt)> {
        let mut receipts = Vec::with_capacity(group.len());
        let mut behind: Option<(Arc<str>, PublishError)> = None;
        for (index, message) in group {
            let receipt = match &behind {
                Some((failed, error)) => Err(held_back(error, *failed == message.target)),
                None => self.send(index, &message, call, permits).await,
            };
            if let (None, Err(error)) = (&behind, &receipt)
                && error.kind() != PublishErrorKind::Permanent
            {
                behind = Some((message.target, error.clone()));
            }
            receipts.push((index, receipt));
        }
        receipts
    }

    /// Counts the attempts of messages that are the reason why their connections end.
    fn count_cut_offs(&self, known: &Known, receipts: &mut [Receipt]) {
        // A message that is cut off in this call needs an answer of a later one.
        self.cut_offs.note_taken(&known.taken);
        for (index, target, message) in &known.cut_off {
            if self.cut_offs.note_cut_off(target, message)
                && let Some(Err(error)) = receipts.get_mut(*index)
            {
                *error = over_message(error);
            }
        }
    }

    /// Gives the silence of endpoints to their server where several of it are silent and none answers.
    fn find_silent_servers(&self, known: Known, receipts: &mut [Receipt]) {
        for (server, silent) in known.silent.into_iter().filter(|(server, _)| !known.answered.contains(server)) {
            let mut is_the_server = false;
            for (_, endpoint) in &silent {
                is_the_server = self.servers.note_silence(&server, endpoint);
            }
            for (index, _) in silent.into_iter().filter(|_| is_the_server) {
                if let Some(Err(error)) = receipts.get_mut(index) {
                    *error = error.clone().limited_to(self.targets.scope_of_server());
                }
            }
        }
    }

    async fn send(&self, index: usize, message: &Message, call: &Call, permits: &Permits<'_>) -> Receipt {
        let of_target = |error: PublishError| error.limited_to(FailureScope::Target);
        let url = self.targets.url(&message.target).map_err(of_target)?;
        let post = Post::new(index, message, url);
        let place = shown(&post.url);
        let mut permit = permits.take().await;
        if let Some(error) = call.closed(&post.server).or_else(|| call.closed(&post.endpoint)) {
            return Err(error);
        }
        if Instant::now() >= call.deadline {
            let error = PublishError::unavailable(format!("{place}: no time was left to send this message"));
            return Err(error.limited_to(FailureScope::Message));
        }
        let request = self.message_request(&post)?;
        let is_signed = request.headers().contains_key(SIGNATURE);
        match self.making_room(self.execute(request, &post, call), call, &mut permit).await {
            Some(Ok(response)) => {
                permits.answered();
                self.servers.note_answer(&post.server);
                call.answered(&post.server);
                if response.status().is_success() {
                    call.taken(&post.server, &message.target);
                }
                let answer = Answer::read(response, &post.url, call.deadline, self.clock.now(), &self.secrets).await;
                let receipt = answer.receipt(&place, is_signed).map_err(of_target);
                if let (true, Err(error)) = (answer.wants_a_pause(), &receipt) {
                    call.close(post.endpoint, error);
                }
                receipt
            }
            Some(Err(error)) => {
                let failure = Failure::of(&error);
                let scope =
                    if failure.is_of_the_server() { self.targets.scope_of_server() } else { FailureScope::Target };
                let error = failure.into_error(&place, &Failure::problem(error)).limited_to(scope);
                self.servers.forget_answers(&post.server);
                if failure.is_of_the_server() {
                    call.close(post.server, &error);
                }
                Err(error)
            }
            None => {
                call.silent(post.server, index, post.endpoint);
                Err(of_target(Failure::Slow.into_error(&place, "")))
            }
        }
    }

    /// Sends a request; if its connection ends, the message again. `None` if the time is up before it is answered.
    async fn execute(&self, request: Request, post: &Post<'_>, call: &Call) -> Option<Result<Response, Error>> {
        let first = timeout_at(call.deadline, self.client.execute(request)).await.ok()?;
        if !is_cut_off(&first) {
            return Some(first);
        }
        let sent_again = call.sent_again(&post.server);
        let Ok(mut sent_again) = timeout_at(call.deadline, sent_again.lock()).await else { return Some(first) };
        // If the server ends every connection, one message finds that out for all.
        if *sent_again == MAX_SENT_AGAIN || call.is_ending(&post.server) || call.closed(&post.endpoint).is_some() {
            return Some(first);
        }
        *sent_again += 1;
        let (last, each_was_cut_off) = self.send_again(call.deadline, first, || self.message_request(post)).await?;
        if each_was_cut_off {
            call.cut_off(&post.server, post.index, Arc::clone(&post.message.target), post.message.id.clone());
        }
        Some(last)
    }

    /// Waits for the answer to a request, whose permit others may use meanwhile if that takes long.
    async fn making_room<T>(&self, answer: impl Future<Output = T>, call: &Call, permit: &mut Permit<'_>) -> T {
        let mut answer = std::pin::pin!(answer);
        let room = async {
            sleep(MAKE_ROOM_AFTER).await;
            (call.slow.acquire().await, self.slow.acquire().await)
        };
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            _slow = room => {
                permit.make_room();
                answer.await
            }
        }
    }

    /// The request of a message, signed for its tenant.
    fn message_request(&self, post: &Post<'_>) -> Result<Request, PublishError> {
        let message = post.message;
        let mut request = self.request(Method::POST, post.url.clone());
        let seconds = self.clock.now().as_micros().div_euclid(1_000_000);
        let mut headers = headers::of(message, self.signing.keys(message.tenant.as_deref())?, seconds)?;
        if message.body.is_empty() {
            // Without it, an endpoint cannot tell that there is no body to come.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        headers.extend(std::mem::take(request.headers_mut()));
        *request.headers_mut() = headers;
        *request.body_mut() = Some(message.body.clone().into());
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

/// A message on its way.
struct Post<'a> {
    /// Its place in the call.
    index: usize,
    message: &'a Message,
    url: Url,
    server: String,
    endpoint: String,
}

impl<'a> Post<'a> {
    fn new(index: usize, message: &'a Message, url: Url) -> Self {
        let (server, endpoint) = (url.origin().ascii_serialization(), url[..Position::AfterPath].to_owned());
        Self { index, message, url, server, endpoint }
    }
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

    use pillarbox_core::publisher::PublishErrorKind::Unavailable;

    use super::*;

    #[test]
    fn messages_held_back_are_not_blamed_for_failures_of_the_destination() {
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
