use std::error::Error;
use std::process::ExitCode;

use pillarbox::error::{BoxError, ConfigError, StartError, StoreError, StoreErrorKind};
use pillarbox::store::refusal;

use crate::address::UnknownAddress;
use crate::args::Target;
use crate::report::plain;

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
    /// What the operating system refused.
    #[error("could not {doing}")]
    System {
        doing: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// The URL is fine for an outbox, but not for the service that a command plays.
    #[error("--store {0}")]
    Service(&'static str),
    #[error("{owner} delivers from this database and renews its lease; stop that process first")]
    OwnerAlive { owner: String },
    #[error("{done} of {events} events were delivered, then nothing moved for {seconds} s; RUST_LOG=info shows why")]
    Stalled { done: u64, events: u64, seconds: u64 },
    /// A question that has to be answered, and nobody there to answer it.
    #[error("there is no terminal to ask at whether to {about_to}; pass --yes to go ahead")]
    NobodyToAsk { about_to: String },
    #[error("not confirmed; nothing was changed")]
    Declined,
    #[error("--store names no file: `{file}` does not exist; check the path, or create the outbox with `{migrate}`")]
    NoFile { file: String, migrate: String },
    /// Tables that are missing or of another version, with the remedy for this outbox.
    #[error("{0}")]
    Schema(String),
    #[error(
        "--store names a server and no database; write `mysql://USER@HOST/DATABASE`, or name the database with the \
         table, as in `--table shop.outbox_event`"
    )]
    NoDatabase,
    #[error("{}", no_event(.0))]
    NoEvent(String),
    #[error("{}", no_row(*.0))]
    NoRow(i64),
    #[error("event `{event_id}` has no row for handler `{handler}`")]
    NotForHandler { event_id: String, handler: String },
    /// An id that names several rows, where one may be meant.
    #[error(
        "event `{event_id}` was given up by more than one handler: {handlers}; nothing was changed; choose one with \
         `--handler NAME`, or pass `--every-handler`"
    )]
    SeveralHandlers { event_id: String, handlers: String },
    #[error("could not open `{path}` to append to it")]
    Open {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the reader of {destination} went away; lines written: {lines}; those it did not read are lost with the pipe, and \
         the events of all others stay in the outbox for the next relay"
    )]
    ReaderGone { destination: String, lines: u64 },
    #[error(
        "could not write to {destination}; lines written: {lines}; the events of all others stay in the outbox for the \
         next relay"
    )]
    Unwritable {
        destination: String,
        lines: u64,
        #[source]
        source: std::io::Error,
    },
    #[error("{kind} at {address}: {problem}")]
    Broker { kind: &'static str, address: String, problem: String },
    #[error(transparent)]
    Relay(#[from] pillarbox_relay::RelayError),
    #[error("--metrics: {0}")]
    Endpoint(#[from] pillarbox_relay::ServeError),
    #[error("could not write the result")]
    Output(#[from] std::io::Error),
    #[error("could not render the result as JSON")]
    Json(#[from] serde_json::Error),
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
    #[error("a task of the command panicked")]
    Task(#[from] tokio::task::JoinError),
}

impl Failure {
    /// For `map_err`: wraps an error of the database met while doing something.
    pub(crate) fn during<E: Into<BoxError>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Database { doing, source: error.into() }
    }

    /// As [`during`](Self::during), for what the operating system refused.
    pub(crate) fn of_system(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    /// What the check of an outbox's tables found. The stores name the command that mends it, and here it can be named with
    /// its options.
    pub(crate) fn of_check(error: StoreError, target: &Target) -> Self {
        if error.kind() != StoreErrorKind::Schema {
            return error.into();
        }
        let migrate = target.command(&["migrate"]);
        Self::Schema(Self::from(error).sentence().replace("`pillarbox migrate`", &format!("`{migrate}`")))
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
        // Who runs the program calls no library.
        text.replace('\n', " ").replace(refusal::MIGRATE, "run `pillarbox migrate`")
    }

    /// 2 for what is wrong on the command line, 1 for all else.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Address(_)
            | Self::Config(_)
            | Self::NoDatabase
            | Self::Service(_)
            | Self::Start(StartError::Config(_)) => ExitCode::from(2),
            Self::Store(error) if error.kind() == StoreErrorKind::Config => ExitCode::from(2),
            Self::Relay(error) if error.is_in_the_file() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// The error for an id that no event has. A number may be meant as that of a row, which logs name too.
pub(crate) fn no_event(id: &str) -> String {
    let meant = match id.parse::<i64>() {
        Ok(seq) => format!("; to name a row by its number, pass `--seq {seq}`"),
        Err(_) => String::new(),
    };
    format!("there is no event `{}` in this outbox{meant}", plain(id))
}

/// The error for a number that no row has.
pub(crate) fn no_row(seq: i64) -> String {
    format!("no row has the number {seq} in this outbox; it may have been purged or discarded")
}

/// An error about a setting that came from an option, by the name it has on the command line.
pub(crate) fn about_option(option: &'static str, error: &ConfigError) -> ConfigError {
    ConfigError::new(option, error.problem().to_owned(), error.remedy().to_owned())
}
