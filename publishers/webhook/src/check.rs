use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use pillarbox_core::publisher::PublishError;
use reqwest::{Method, StatusCode};
use tokio::time::{Instant, timeout_at};

use crate::WebhookPublisher;
use crate::error::Failure;
use crate::target::shown;

impl WebhookPublisher {
    /// Asks each target by HEAD, which changes nothing there.
    pub(crate) async fn check_each(&self, targets: &[String]) -> Result<(), PublishError> {
        self.open()?;
        let deadline = Instant::now() + self.timeout;
        stream::iter(targets.to_vec())
            .map(|target| self.check_one(target, deadline))
            .buffer_unordered(self.concurrency)
            .try_collect()
            .await
    }

    /// An endpoint for POST may answer HEAD as it likes, so any answer shows that somebody is there; only one about
    /// credentials that HEAD has too is believed. Whether a signature is accepted shows in the first message.
    async fn check_one(&self, target: String, deadline: Instant) -> Result<(), PublishError> {
        let url = self.targets.url(&target)?;
        let place = shown(&url);
        let request = self.request(Method::HEAD, url);
        match timeout_at(deadline, self.client.execute(request)).await {
            Ok(Ok(answer)) => {
                let authorized = self.authorization.is_some() && !self.signing.is_on();
                if authorized && answer.status() == StatusCode::UNAUTHORIZED {
                    return Err(PublishError::misconfigured(format!(
                        "{place} answered 401; correct `token`, `username` or `password`"
                    )));
                }
                Ok(())
            }
            Ok(Err(error)) => Err(Failure::of(&error).into_error(&place, &Failure::problem(error))),
            Err(_) => Err(Failure::Slow.into_error(&place, "")),
        }
    }
}
