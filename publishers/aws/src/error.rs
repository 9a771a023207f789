//! The meaning of the services' refusals.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use pillarbox_core::publisher::{FailureScope, PublishError};

/// The code of an answer that has none. A proxy gave it, say, and not the service.
const NO_CODE: &str = "no code";

/// The reason why a call failed, as far as it decides the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// Nobody answered.
    Silence(String),
    /// The host that answered is not proven to be the service.
    Stranger(String),
    /// There was nothing to sign with.
    NoCredentials(String),
    /// The service answered with an error of its own. Its status is 0 in the answer to a single message.
    Refusal { status: u16, code: String, message: String, sender_fault: bool },
}

impl Problem {
    pub(crate) fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: Error + ProvideErrorMetadata + 'static,
    {
        let text = || DisplayErrorContext(error).to_string();
        match error {
            SdkError::ServiceError(service) => {
                let status = service.raw().status().as_u16();
                Self::Refusal {
                    status,
                    code: service.err().code().unwrap_or(NO_CODE).to_owned(),
                    message: service.err().message().unwrap_or_default().to_owned(),
                    sender_fault: (400..500).contains(&status),
                }
            }
            // The client's own error tells this in its text only, here and below.
            SdkError::DispatchFailure(_) if text().contains("invalid peer certificate") => Self::Stranger(text()),
            SdkError::DispatchFailure(failure)
                if !(failure.is_io() || failure.is_timeout()) && text().contains("redential") =>
            {
                Self::NoCredentials(text())
            }
            SdkError::ConstructionFailure(_) => Self::NoCredentials(text()),
            _ => Self::Silence(text()),
        }
    }

    /// The refusal of a single message, in the words of the batch's answer.
    pub(crate) fn of_message(code: String, message: Option<String>, sender_fault: bool) -> Self {
        Self::Refusal { status: 0, code, message: message.unwrap_or_default(), sender_fault }
    }

    /// A message that no request can be made of.
    pub(crate) fn impossible(error: impl Error) -> Self {
        Self::of_message("NoRequest".to_owned(), Some(error.to_string()), true)
    }

    /// True if one message may have spoilt its whole batch.
    pub(crate) fn may_be_of_one(&self) -> bool {
        matches!(self, Self::Refusal { status, code, message, sender_fault: true }
            if matches!(about(*status, code, message), About::Message | About::Unclear))
    }

    /// The publish error of this problem, for a message to `target`.
    pub(crate) fn publish_error(&self, target: &str) -> PublishError {
        match self {
            Self::Silence(text) => PublishError::unavailable(format!("the service does not answer: {}", short(text))),
            Self::Stranger(text) => PublishError::misconfigured(format!(
                "the service shows no certificate that is trusted: {}; correct `endpoint_url`, or name its authority with `ca_file`",
                short(text)
            )),
            Self::NoCredentials(text) => PublishError::misconfigured(format!(
                "no request can be made: {}; set credentials and a region",
                short(text)
            )),
            Self::Refusal { status, code, message, sender_fault } => {
                let text = match code.as_str() {
                    NO_CODE => format!(
                        "{target}: the answer has status {status} and no code of the service; look at what answers for it, such as a proxy"
                    ),
                    code if names_the_topic(code, message) => format!(
                        "{target}: {code}: {}; correct the topic, or set the `region` in which it is",
                        short(message)
                    ),
                    code => format!("{target}: {code}: {}", short(message)),
                };
                match about(*status, code, message) {
                    About::Load => PublishError::unavailable(text).limited_to(scope_of_load(*status, code, target)),
                    About::Setup => PublishError::misconfigured(text).limited_to(scope(code)),
                    About::Message if *sender_fault => PublishError::permanent(text),
                    About::Message | About::Unclear => PublishError::temporary(text),
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Load,
    Setup,
    Message,
    /// Of a whole request, with a code that is not known to be about one message.
    Unclear,
}

/// The part of the destination that a code for a wrong setup concerns: credentials that are wrong are so for every queue.
fn scope(code: &str) -> FailureScope {
    const CREDENTIALS: [&str; 4] = ["ClientToken", "Signature", "ExpiredToken", "MissingAuthentication"];
    if CREDENTIALS.iter().any(|part| code.contains(part)) { FailureScope::Broker } else { FailureScope::Target }
}

/// The part of the destination that is overloaded. Quotas are those of a queue, of a FIFO topic, or of a key of KMS, but for
/// standard topics: theirs are the account's in the region.
fn scope_of_load(status: u16, code: &str, target: &str) -> FailureScope {
    let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    let is_a_standard_topic = target.starts_with("arn:") && !target.ends_with(".fifo");
    match status {
        0 => FailureScope::Target,
        503 => FailureScope::Broker,
        _ if has(&["Kms", "KMS"]) => FailureScope::Target,
        _ if has(&["Throttl", "OverLimit"]) && !is_a_standard_topic => FailureScope::Target,
        _ => FailureScope::Broker,
    }
}

/// The subject of a refusal. Services write the same code with prefixes and suffixes of their own.
fn about(status: u16, code: &str, message: &str) -> About {
    const LOAD: [&str; 9] = [
        "Throttl",
        "TooManyRequests",
        "RequestLimitExceeded",
        "SlowDown",
        "ServiceUnavailable",
        "OverLimit",
        "RequestTimeout",
        "RequestExpired",
        "RequestAborted",
    ];
    const SETUP: [&str; 16] = [
        "AccessDenied",
        "Authorization",
        "Authorized",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "NotFound",
        "Kms",
        "KMS",
        "Signature",
        "UnrecognizedClient",
        "InvalidClientTokenId",
        "ExpiredToken",
        "InvalidSecurity",
        "OptInRequired",
        "InvalidAddress",
        "MissingAuthenticationToken",
    ];
    const MESSAGE: [&str; 4] =
        ["InvalidMessageContents", "InvalidParameter", "InvalidAttributeValue", "BatchRequestTooLong"];
    let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    match status {
        _ if has(&LOAD) => About::Load,
        _ if has(&SETUP) || names_the_topic(code, message) => About::Setup,
        503 => About::Load,
        // A message's own entry in the answer, or one that is too large.
        0 | 413 => About::Message,
        // Of an account that is suspended, say.
        401 | 403 | 404 => About::Setup,
        408 | 429 => About::Load,
        _ if has(&MESSAGE) => About::Message,
        _ if code != NO_CODE => About::Unclear,
        // A proxy's page says nothing about a message.
        502 | 504 => About::Load,
        400..=499 => About::Setup,
        _ => About::Unclear,
    }
}

/// True if SNS refuses the topic: one of another region, or one that it cannot read.
fn names_the_topic(code: &str, message: &str) -> bool {
    code.contains("InvalidParameter") && message.contains("TopicArn")
}

/// The beginning of a text, in one line.
fn short(text: &str) -> String {
    let line: Vec<_> = text.split_whitespace().collect();
    line.join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use pillarbox_core::publisher::PublishErrorKind::{self, Misconfigured, Permanent, Temporary, Unavailable};

    use super::*;

    #[test]
    fn each_refusal_says_whose_fault_it_is() {
        let cases: [(u16, &str, bool, PublishErrorKind); 41] = [
            (0, "InvalidMessageContents", true, Permanent),
            (0, "InternalError", false, Temporary),
            (0, "ThrottlingException", true, Unavailable),
            (0, "KmsThrottled", true, Unavailable),
            (0, "KMSAccessDenied", true, Misconfigured),
            (400, "InvalidParameterValue", true, Permanent),
            (400, "AWS.SimpleQueueService.NonExistentQueue", true, Misconfigured),
            (400, "QueueDoesNotExist", true, Misconfigured),
            (404, "NotFound", true, Misconfigured),
            (403, "AuthorizationError", true, Misconfigured),
            (403, "AccessDeniedException", true, Misconfigured),
            (403, "InvalidClientTokenId", true, Misconfigured),
            (403, "SignatureDoesNotMatch", true, Misconfigured),
            (403, "ExpiredToken", true, Misconfigured),
            (400, "RequestThrottled", true, Unavailable),
            (429, "TooManyRequestsException", true, Unavailable),
            (503, "ServiceUnavailable", false, Unavailable),
            (503, "no code", false, Unavailable),
            (500, "InternalFailure", false, Temporary),
            (408, "RequestTimeoutException", true, Unavailable),
            (400, "RequestExpired", true, Unavailable),
            (400, "RequestAborted", true, Unavailable),
            (400, "InvalidMessageContents", true, Permanent),
            (400, "AWS.SimpleQueueService.BatchRequestTooLong", true, Permanent),
            (413, "RequestEntityTooLarge", true, Permanent),
            (0, "SomethingNew", true, Permanent),
            // Codes that nobody knows here: the account's, not the message's.
            (401, "SomethingNew", true, Misconfigured),
            (403, "AccountProblem", true, Misconfigured),
            (404, "SomethingNew", true, Misconfigured),
            (400, "UserErrorException", true, Temporary),
            (400, "UnsupportedOperation", true, Temporary),
            (405, "MethodNotAllowed", true, Temporary),
            (408, "SomethingNew", true, Unavailable),
            (429, "SomethingNew", true, Unavailable),
            // The pages of a proxy.
            (403, "no code", true, Misconfigured),
            (404, "no code", true, Misconfigured),
            (408, "no code", true, Unavailable),
            (429, "no code", true, Unavailable),
            (413, "no code", true, Permanent),
            (502, "no code", false, Unavailable),
            (500, "no code", false, Temporary),
        ];
        for (status, code, sender_fault, kind) in cases {
            let problem = Problem::Refusal { status, code: code.to_owned(), message: String::new(), sender_fault };
            assert_eq!(problem.publish_error("queue").kind(), kind, "{status} {code}");
        }
        for (message, kind, may_be_of_one) in [
            ("Invalid parameter: TopicArn", Misconfigured, false),
            ("Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements", Misconfigured, false),
            ("Invalid parameter: Message too long", Permanent, true),
        ] {
            let (code, message) = ("InvalidParameter".to_owned(), message.to_owned());
            let problem = Problem::Refusal { status: 400, code, message, sender_fault: true };
            assert_eq!(
                (problem.publish_error("topic").kind(), problem.may_be_of_one()),
                (kind, may_be_of_one),
                "{problem:?}"
            );
        }
        let unclear = Problem::Refusal {
            status: 400,
            code: "SomethingNew".to_owned(),
            message: String::new(),
            sender_fault: true,
        };
        assert!(unclear.may_be_of_one(), "each is sent alone before it is tried again for nothing");
        assert_eq!(Problem::Silence(String::new()).publish_error("q").kind(), Unavailable);
        assert_eq!(Problem::Stranger(String::new()).publish_error("q").kind(), Misconfigured);
        assert_eq!(Problem::NoCredentials(String::new()).publish_error("q").kind(), Misconfigured);
    }

    #[test]
    fn load_of_one_queue_is_no_load_of_others() {
        const FIFO: &str = "arn:aws:sns:eu-central-1:123456789012:orders.fifo";
        const STANDARD: &str = "arn:aws:sns:eu-central-1:123456789012:orders";
        let cases = [
            (0, "RequestThrottled", "orders", FailureScope::Target),
            (0, "Throttled", STANDARD, FailureScope::Target),
            (400, "RequestThrottled", "orders.fifo", FailureScope::Target),
            (400, "ThrottlingException", "orders", FailureScope::Target),
            (403, "AWS.SimpleQueueService.OverLimit", "orders", FailureScope::Target),
            (400, "KmsThrottled", "orders", FailureScope::Target),
            (400, "KMSThrottling", STANDARD, FailureScope::Target),
            (429, "Throttled", FIFO, FailureScope::Target),
            (429, "Throttled", STANDARD, FailureScope::Broker),
            (503, "ServiceUnavailable", "orders", FailureScope::Broker),
            (503, NO_CODE, "orders", FailureScope::Broker),
            (408, NO_CODE, "orders", FailureScope::Broker),
            (429, NO_CODE, "orders", FailureScope::Broker),
            (502, NO_CODE, "orders", FailureScope::Broker),
            (504, NO_CODE, "orders", FailureScope::Broker),
            (400, "RequestExpired", "orders", FailureScope::Broker),
        ];
        for (status, code, target, scope) in cases {
            let problem =
                Problem::Refusal { status, code: code.to_owned(), message: String::new(), sender_fault: true };
            let error = problem.publish_error(target);
            assert_eq!((error.kind(), error.scope()), (Unavailable, scope), "{status} {code} {target}");
        }
    }
}
