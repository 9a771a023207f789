use std::process::ExitCode;

use pillarbox::error::BoxError;
use pillarbox_program::failure::Failure as Common;

/// The error of a bench or of a report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Common(#[from] Common),
    #[error("{kind} at {address}: {problem}")]
    Broker { kind: &'static str, address: String, problem: String },
    #[error("could not draw a plot")]
    Plot(#[source] BoxError),
    #[error("--report: could not write `{path}`; name a folder that you may write to")]
    Unreportable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("stopped by a signal; the report has what was measured until then")]
    Stopped,
    #[error(transparent)]
    Relay(#[from] pillarbox_relay::RelayError),
}

pillarbox_program::common_failures!(Failure);

impl Failure {
    /// 2 for an error on the command line, 1 for all others.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Common(common) => common.exit_code(),
            _ => ExitCode::FAILURE,
        }
    }
}
