use std::error::Error;
use std::process::ExitCode;

use pillarbox::error::{BoxError, ConfigError, StartError, StoreError, StoreErrorKind};

use crate::address::UnknownAddress;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Address(#[from] UnknownAddress),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Start(#[from] StartError),
    /// A statement of the command's own, not of the outbox.
    #[error("could not {doing}")]
    Database {
        doing: &'static str,
        #[source]
        source: BoxError,
    },
    /// The URL is fine for an outbox, but not for the service that a command plays.
    #[error("--store {0}")]
    Service(&'static str),
    #[error("{owner} delivers from this database and renews its lease; stop that process first")]
    OwnerAlive { owner: String },
    #[error("{done} of {events} events were delivered, then nothing moved for {seconds} s; RUST_LOG=info shows why")]
    Stalled { done: u64, events: u64, seconds: u64 },
    #[error("could not write the result")]
    Output(#[from] std::io::Error),
    #[error("could not render the result as JSON")]
    Json(#[from] serde_json::Error),
    #[error("a task of the command panicked")]
    Task(#[from] tokio::task::JoinError),
}

impl Failure {
    /// For `map_err`: wraps an error of the database met while doing something.
    pub(crate) fn during<E: Into<BoxError>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Database { doing, source: error.into() }
    }

    /// The error and its causes in one line; a cause that its parent quotes already is not repeated.
    pub(crate) fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(current) = cause {
            let next = current.to_string();
            if !text.contains(&next) {
                text = format!("{text}: {next}");
            }
            cause = current.source();
        }
        text.replace('\n', " ")
    }

    /// 2 for what is wrong on the command line, 1 for all else.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Address(_) | Self::Config(_) | Self::Service(_) => ExitCode::from(2),
            Self::Store(error) if error.kind() == StoreErrorKind::Config => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}
