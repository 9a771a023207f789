use std::io;
use std::path::Path;
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
    #[error("{option}: could not write `{path}`; name one that you may write to")]
    Unwritable {
        option: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("stopped by a signal; the report has what was measured until then")]
    Stopped,
    #[error(transparent)]
    Relay(#[from] pillarbox_relay::RelayError),
}

pillarbox_program::common_failures!(Failure);

impl Failure {
    /// For a failed write into a file that an option names.
    pub(crate) fn unwritable(option: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Unwritable { option, path, source }
    }

    /// 2 for an error on the command line, 1 for all others.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Common(common) => common.exit_code(),
            _ => ExitCode::FAILURE,
        }
    }
}
