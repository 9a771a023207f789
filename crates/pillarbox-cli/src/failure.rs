use std::process::ExitCode;

use pillarbox::error::{StartError, StoreError};
use pillarbox_program::failure::{Failure as Common, sentence};
use pillarbox_program::report::{counted, plain};
use pillarbox_relay::RelayError;

use crate::args::Target;

/// The error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Common(#[from] Common),
    /// A confirmation is needed, and cannot ask for confirmation without a terminal.
    #[error("cannot ask for confirmation without a terminal; pass --yes to {about_to}")]
    NobodyToAsk { about_to: String },
    #[error("not confirmed; nothing was changed")]
    Declined,
    #[error("--store names no file: `{file}` does not exist; check the path, or create the outbox with `{migrate}`")]
    NoFile { file: String, migrate: String },
    /// Neither a database nor a file that names some. `purposes` says what each of the two is for, with a command.
    #[error(
        "--store and --config are missing; pass {purposes}; the variable PILLARBOX_STORE may name the database in the place of --store"
    )]
    NoSource { purposes: &'static str },
    /// An error whose remedy is a command on this outbox, such as tables that are missing or of another version.
    #[error("{0}")]
    Remedied(String),
    #[error("{}", no_event(.0))]
    NoEvent(String),
    #[error("{}", no_row(*.0))]
    NoRow(i64),
    #[error(
        "event `{event_id}` has no row for handler `{handler}`; `pillarbox events show {event_id}` lists its handlers"
    )]
    NotForHandler { event_id: String, handler: String },
    /// An id that names several rows, where one may be meant.
    #[error(
        "event `{event_id}` {state} more than one handler: {handlers}; nothing was changed; choose one with \
         `--handler NAME`, or pass `--every-handler`"
    )]
    SeveralHandlers { event_id: String, state: &'static str, handlers: String },
    /// A change of many rows has failed, and what it had changed before stays so.
    #[error("{done} before: {}", sentence(.failure.as_ref()))]
    Partly {
        /// The rows, and what was done to them: "500 rows were replayed".
        done: String,
        rows: u64,
        failure: Box<Failure>,
    },
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
    #[error(
        "the relay has not started before the deadline, and nothing was delivered; raise --deadline, or see above why it could not start"
    )]
    NotInTime,
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// The console may not be served as the options say.
    #[error(transparent)]
    Console(pillarbox_relay::ConsoleError),
    #[error("--listen: {0}")]
    ConsoleAddress(pillarbox_relay::ServeError),
    #[error("--metrics: {0}")]
    Endpoint(#[from] pillarbox_relay::ServeError),
    #[error(
        "`{program}` does not exist; the benchmarks are a program of their own: put it beside `pillarbox`, or run \
         `cargo run --release -p pillarbox-bench -- ARGS` in a clone"
    )]
    NoBench { program: String },
    #[error("could not run `{program}`")]
    Bench {
        program: String,
        #[source]
        source: std::io::Error,
    },
}

pillarbox_program::common_failures!(Failure);

impl Failure {
    /// The error of a check of an outbox's tables. The stores name the command that repairs them; here it has its
    /// options too.
    pub(crate) fn of_check(error: StoreError, target: &Target) -> Self {
        let said = sentence(&error);
        let text = target.in_commands(&said);
        // Of another kind, it may be a temporary one.
        if text == said { error.into() } else { Self::Remedied(text) }
    }

    /// The same error with the options of this outbox in the commands that it names.
    pub(crate) fn on(self, target: &Target) -> Self {
        match self {
            Self::Common(Common::Store(error) | Common::Start(StartError::Store(error))) => {
                Self::of_check(error, target)
            }
            Self::NotForHandler { .. } => Self::Remedied(target.in_commands(&self.to_string())),
            Self::Partly { done, rows, failure } => Self::Partly { done, rows, failure: Box::new(failure.on(target)) },
            other => other,
        }
    }

    /// The error in sentences, one for each thing that is wrong.
    pub(crate) fn sentences(&self) -> Vec<String> {
        match self {
            Self::Relay(RelayError::File(error)) => error.lines(),
            failure => vec![sentence(failure)],
        }
    }

    /// The same error of a change that has `rows` behind it. `noun` and `participle` say what they are and what was done to them: "row",
    /// "replayed".
    pub(crate) fn after(self, rows: u64, noun: &str, participle: &str) -> Self {
        if rows == 0 {
            return self;
        }
        let were = if rows == 1 { "was" } else { "were" };
        Self::Partly { done: format!("{} {were} {participle}", counted(rows, noun)), rows, failure: Box::new(self) }
    }

    /// The rows that a change had made before it failed, as far as they are known.
    pub(crate) fn rows_before(&self) -> Option<u64> {
        match self {
            Self::Partly { rows, .. } => Some(*rows),
            _ => None,
        }
    }

    /// 2 for an error on the command line or in the relay's file, 1 for all others.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Common(common) => common.exit_code(),
            Self::Partly { failure, .. } => failure.exit_code(),
            Self::Console(_) | Self::NoSource { .. } => ExitCode::from(2),
            Self::Relay(error) if error.is_in_the_file() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// The error for an id that no event has. A number may be meant as that of a row, since logs name rows too.
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
