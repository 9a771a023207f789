use async_nats::jetstream::context::GetStreamByNameErrorKind;
use pillarbox_core::publisher::PublishError;
use tokio::time::{Instant, timeout_at};

use crate::connection::Connection;
use crate::error::{Failure, publish_error};
use crate::refusals::Refusal;
use crate::{NatsPublisher, message};

impl NatsPublisher {
    /// Connects, and verifies that JetStream is on and that a stream takes each subject.
    pub(crate) async fn check_subjects(&self, targets: &[String], deadline: Instant) -> Result<(), PublishError> {
        for target in targets {
            if let Some(problem) = message::complaint(target) {
                let shown = target.escape_debug();
                return Err(PublishError::misconfigured(format!(
                    "`{shown}` is no subject to publish to: it {problem}"
                )));
            }
        }
        let connection = self.connection(deadline).await?.connection;
        let checking = async {
            if targets.is_empty() {
                return enabled(&connection).await;
            }
            for target in targets {
                self.check_stream(&connection, target).await?;
            }
            Ok(())
        };
        timeout_at(deadline, checking).await.unwrap_or_else(|_| Err(self.late()))
    }

    /// Connects, and verifies that a stream takes some subject that begins with `prefix`; false if this user may not ask, or if it
    /// cannot be told which stream that would be.
    pub(crate) async fn check_subjects_below(&self, prefix: &str, deadline: Instant) -> Result<bool, PublishError> {
        let pattern = pattern(prefix);
        let connection = self.connection(deadline).await?.connection;
        let asking = permitted(&connection, stream_of(&connection, &pattern));
        match timeout_at(deadline, asking).await.unwrap_or_else(|_| Err(self.late()))? {
            None => Ok(false),
            Some(None) => Err(publish_error(&Failure::NoStream(&pattern))),
            // Of several streams, the first one is named.
            Some(Some(name)) => Ok(self.options.expected_stream.as_ref().is_none_or(|expected| *expected == name)),
        }
    }

    /// Checks that a stream takes the subject, and that it is the right one.
    async fn check_stream(&self, connection: &Connection, target: &str) -> Result<(), PublishError> {
        let Some(name) = permitted(connection, stream_of(connection, target)).await? else { return Ok(()) };
        match (name, &self.options.expected_stream) {
            (None, _) => Err(publish_error(&Failure::NoStream(target))),
            (Some(name), Some(expected)) if *expected != name => Err(PublishError::misconfigured(format!(
                "the subject `{target}` is taken by the stream `{name}`, and the option `expected_stream` says `{expected}`; \
                 change one of them"
            ))),
            (Some(_), _) => Ok(()),
        }
    }
}

/// All subjects that begin so, as far as wildcards can say it: whole tokens.
fn pattern(prefix: &str) -> String {
    match prefix.rsplit_once('.') {
        Some((tokens, _)) => format!("{tokens}.>"),
        None => ">".to_owned(),
    }
}

const REQUEST: &str = "$JS.API.STREAM.NAMES";

/// `None` if this user may not ask, which says nothing about publishing.
async fn permitted<T>(
    connection: &Connection,
    answer: impl Future<Output = Result<T, PublishError>>,
) -> Result<Option<T>, PublishError> {
    let since = Instant::now();
    tokio::select! {
        biased;
        answer = answer => answer.map(Some),
        refusal = connection.refusals.wait(REQUEST, since) => match refusal {
            Refusal::Publish => Ok(None),
            Refusal::Confirmations => Err(publish_error(&Failure::Refused(refusal, REQUEST))),
        },
    }
}

/// Checks that JetStream is on. A server describes an account in words that change between its versions; all versions answer this
/// question.
async fn enabled(connection: &Connection) -> Result<(), PublishError> {
    permitted(connection, stream_of(connection, "pillarbox.check")).await.map(drop)
}

pub(crate) async fn stream_of(connection: &Connection, subject: &str) -> Result<Option<String>, PublishError> {
    match connection.context.stream_by_subject(subject).await {
        Ok(name) => Ok(Some(name)),
        Err(failure) if failure.kind() == GetStreamByNameErrorKind::NotFound => Ok(None),
        Err(failure) => Err(publish_error(&Failure::Stream(&failure))),
    }
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn a_prefix_becomes_its_whole_tokens() {
        for (prefix, expected) in [("", ">"), ("ord", ">"), ("orders.", "orders.>"), ("a.b.c", "a.b.>")] {
            assert_eq!(pattern(prefix), expected, "{prefix}");
        }
    }
}
