//! Failures of requests that were not answered.

use pillarbox_connect::tls;
use pillarbox_core::publisher::PublishError;
use rustls::Error::{InvalidCertificate, NoCertificatesPresented};

use crate::names::PrivateName;

/// The point at which a request failed, as far as it matters for the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The name leads to an address that is not connected to.
    PrivateAddress,
    /// The host is not the one that the URL means, or cannot prove it.
    Certificate,
    /// Nobody is connected to.
    NotConnected,
    /// No answer in time.
    Slow,
    /// The connection ended before the answer.
    CutOff,
}

impl Failure {
    /// Reads the client's error.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        if tls::causes(error).any(|cause| cause.is::<PrivateName>()) {
            Self::PrivateAddress
        } else if matches!(tls::failure(error), Some(InvalidCertificate(_) | NoCertificatesPresented)) {
            Self::Certificate
        } else if error.is_connect() {
            Self::NotConnected
        } else if error.is_timeout() {
            Self::Slow
        } else {
            Self::CutOff
        }
    }

    /// The client's words for what happened. What it shows of the URL may be secret, so that is left out.
    pub(crate) fn problem(error: reqwest::Error) -> String {
        let error = error.without_url();
        // The innermost says what happened; the others, where in the client.
        tls::causes(&error).last().map_or_else(|| error.to_string(), ToString::to_string)
    }

    /// True if the next request to the same server would end the same way.
    pub(crate) fn is_of_the_server(self) -> bool {
        matches!(self, Self::PrivateAddress | Self::Certificate | Self::NotConnected)
    }

    pub(crate) fn into_error(self, place: &str, problem: &str) -> PublishError {
        match self {
            Self::PrivateAddress => PublishError::misconfigured(format!("{place} is not connected to: {problem}")),
            Self::Certificate => PublishError::misconfigured(format!(
                "{place} shows no certificate that is trusted: {problem}; correct the URL, or name its authority with `ca_file`"
            )),
            Self::NotConnected => PublishError::unavailable(format!("{place} cannot be connected to: {problem}")),
            Self::Slow => PublishError::unavailable(format!("{place} did not answer in time")),
            Self::CutOff => {
                PublishError::unavailable(format!("{place} ended the connection without an answer: {problem}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::publisher::PublishErrorKind::{self, Misconfigured, Unavailable};

    use super::*;

    #[test]
    fn no_failure_on_the_way_is_the_messages_fault() {
        let cases: [(Failure, PublishErrorKind, bool); 5] = [
            (Failure::PrivateAddress, Misconfigured, true),
            (Failure::Certificate, Misconfigured, true),
            (Failure::NotConnected, Unavailable, true),
            (Failure::Slow, Unavailable, false),
            (Failure::CutOff, Unavailable, false),
        ];
        for (failure, kind, of_the_server) in cases {
            let error = failure.into_error("https://h.example", "why");
            assert_eq!((error.kind(), failure.is_of_the_server()), (kind, of_the_server), "{error}");
            assert!(error.to_string().starts_with("https://h.example "), "{error}");
        }
    }
}
