//! The errors that all programs know, in one sentence, with an exit code.

use std::error::Error;
use std::process::ExitCode;

use pillarbox::error::{BoxError, ConfigError, StartError, StoreError, StoreErrorKind};

use crate::address::UnknownAddress;
use crate::report::plain;

/// The errors that every program knows. One with errors of its own holds it in a variant `Common`; see
/// [`common_failures`](crate::common_failures).
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// `--store` names no database.
    #[error(transparent)]
    Address(#[from] UnknownAddress),
    /// A setting of the outbox is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The outbox's side of the database failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The outbox did not start.
    #[error("{0}")]
    Start(#[from] StartError),
    /// A statement of the program's own failed, not of the outbox.
    #[error("could not {doing}")]
    Database {
        /// The purpose of the statement: "place an order".
        doing: &'static str,
        /// The driver's error.
        #[source]
        source: BoxError,
    },
    /// The operating system refused something.
    #[error("could not {doing}")]
    System {
        /// The purpose of the call.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The URL is fine for an outbox, but not for the service that the program plays.
    #[error("--store {0}")]
    Service(&'static str),
    /// The URL names a server of MySQL or MariaDB and no database.
    #[error(
        "--store names a server and no database; write `mysql://USER@HOST/DATABASE`, or name the database with the \
         table, as in `--table shop.outbox_event`"
    )]
    NoDatabase,
    /// Another process delivers from the database.
    #[error("{owner} delivers from this database and renews its lease; stop that process first")]
    OwnerAlive {
        /// The node's name.
        owner: String,
    },
    /// Events are left, and none makes progress.
    #[error("{done} of {events} events were delivered, then nothing moved for {seconds} s; RUST_LOG=info shows why")]
    Stalled {
        /// Events delivered.
        done: u64,
        /// Events in all.
        events: u64,
        /// Seconds without any progress.
        seconds: u64,
    },
    /// The result could not be written.
    #[error("could not write the result")]
    Output(#[from] std::io::Error),
    /// The result makes no JSON.
    #[error("could not render the result as JSON")]
    Json(#[from] serde_json::Error),
    /// A task of the program panicked.
    #[error("a task of the command panicked")]
    Task(#[from] tokio::task::JoinError),
}

impl Failure {
    /// For `map_err`: wraps an error of the database met while doing something.
    pub fn during<E: Into<BoxError>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Database { doing, source: error.into() }
    }

    /// As [`during`](Self::during), for an error of the operating system.
    pub fn of_system(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    /// 2 for an error on the command line, 1 for all others.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Address(_)
            | Self::Config(_)
            | Self::NoDatabase
            | Self::Service(_)
            | Self::Start(StartError::Config(_)) => ExitCode::from(2),
            Self::Store(error) if error.kind() == StoreErrorKind::Config => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// An error and its causes in one line; a cause that its parent quotes already is not repeated.
///
/// A [`StoreError`] says all itself: its cause is the driver's error, which may quote the values of a row.
#[must_use]
pub fn sentence(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut current = error;
    while !is_of_store(current)
        && let Some(cause) = current.source()
    {
        let next = cause.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        current = cause;
    }
    // A broker, or a row of another program, may have given words of it. A user of the program does not call the library.
    plain(&text.replace('\n', " ")).replace("run `store.migrate()` or `pillarbox migrate", "run `pillarbox migrate")
}

fn is_of_store(error: &(dyn Error + 'static)) -> bool {
    error.is::<StoreError>() || matches!(error.downcast_ref(), Some(StartError::Store(_)))
}

/// An error about a setting that came from an option, under the option's name.
#[must_use]
pub fn about_option(option: &'static str, error: &ConfigError) -> ConfigError {
    ConfigError::new(option, error.problem().to_owned(), error.remedy().to_owned())
}

/// Converts every source of a [`Failure`](crate::failure::Failure) into a program's own error. The type has a variant
/// `Common` that holds one.
#[macro_export]
macro_rules! common_failures {
    ($failure:ident) => {
        $crate::common_failures!(
            $failure:
            $crate::address::UnknownAddress,
            ::pillarbox::error::ConfigError,
            ::pillarbox::error::StoreError,
            ::pillarbox::error::StartError,
            ::std::io::Error,
            ::serde_json::Error,
            ::tokio::task::JoinError
        );

        impl $failure {
            /// As [`Failure::during`]($crate::failure::Failure::during).
            pub(crate) fn during<E: Into<::pillarbox::error::BoxError>>(doing: &'static str) -> impl FnOnce(E) -> Self {
                move |error| $crate::failure::Failure::during(doing)(error).into()
            }

            /// As [`Failure::of_system`]($crate::failure::Failure::of_system).
            pub(crate) fn of_system(doing: &'static str) -> impl FnOnce(::std::io::Error) -> Self {
                move |error| $crate::failure::Failure::of_system(doing)(error).into()
            }
        }
    };
    ($failure:ident: $($source:ty),+) => {
        $(impl From<$source> for $failure {
            fn from(source: $source) -> Self {
                Self::Common(source.into())
            }
        })+
    };
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// As PostgreSQL says it where a row violates a constraint.
    #[test]
    fn rows_that_the_driver_quotes_are_not_shown() {
        let refused = || {
            let detail = "db error: ERROR: a check failed\nDETAIL: Failing row contains (hunter2)";
            StoreError::new(StoreErrorKind::Unexpected, "replay rows", "a check failed (SQLSTATE 23514)")
                .with_source(io::Error::other(detail))
        };
        let errors: [Box<dyn Error>; 3] =
            [refused().into(), Failure::from(refused()).into(), Failure::from(StartError::from(refused())).into()];
        for error in errors {
            let text = sentence(&*error);
            assert!(text.ends_with("could not replay rows: a check failed (SQLSTATE 23514)"), "{text}");
        }
        let own = Failure::during("place an order")(io::Error::other("a check failed"));
        assert_eq!(sentence(&own), "could not place an order: a check failed");
    }
}
