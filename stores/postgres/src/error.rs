use std::error::Error as _;
use std::io;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use pillarbox_connect::no_tls;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::refusal::{CLOSED, unmigrated};
use tokio_postgres::error::{DbError, SqlState};

/// The failure of a call, before it is known which call that was.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(tokio_postgres::Error),
    Pool(PoolError),
    /// Our own refusal.
    Refused(StoreErrorKind, String),
}

impl Failure {
    /// True if the server has refused a statement, for another reason than an intervention of its operator or a connection that it has lost, as a
    /// pooler tells of one to a server that has crashed (`08P01`, server conn crashed).
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Driver(error) => {
                error.code().is_some_and(|code| !code.code().starts_with("57") && !code.code().starts_with("08"))
            }
            Self::Pool(_) | Self::Refused(..) => false,
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}

/// Cannot happen: asked of a statement that always has a row.
pub(crate) fn no_row() -> Failure {
    Failure::Refused(StoreErrorKind::Unexpected, "the server returned no row".to_owned())
}

impl Failure {
    /// True if a statement waited for a lock for too long, or in a circle, so that it may be tried again.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        let Self::Driver(error) = self else { return false };
        matches!(error.code(), Some(code) if [&SqlState::LOCK_NOT_AVAILABLE, &SqlState::T_R_DEADLOCK_DETECTED].contains(&code))
    }

    /// True if the server has ended a statement, because of its time or at a request.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self, Self::Driver(error) if error.code() == Some(&SqlState::QUERY_CANCELED))
    }

    /// The one place where the driver's errors become ours.
    ///
    /// The message is the server's primary message without its detail, which may quote values of the row.
    pub(crate) fn during(self, operation: &'static str, address: &str) -> StoreError {
        let (kind, message) = match &self {
            Self::Refused(kind, message) => (*kind, message.clone()),
            Self::Pool(PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)))
            | Self::Driver(error) => driver(error),
            Self::Pool(PoolError::Timeout(TimeoutType::Create)) => (
                StoreErrorKind::Unavailable,
                "no connection came about in time; is the server running and reachable?".to_owned(),
            ),
            Self::Pool(PoolError::Timeout(_)) => {
                (StoreErrorKind::Unavailable, "all connections stayed busy; raise pool_size if it lasts".to_owned())
            }
            Self::Pool(PoolError::Closed) => (StoreErrorKind::Unexpected, CLOSED.to_owned()),
            Self::Pool(error) => (StoreErrorKind::Unexpected, error.to_string()),
        };
        let ours = StoreError::new(kind, operation, message).at(address);
        match self {
            Self::Driver(error)
            | Self::Pool(PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error))) => {
                ours.with_source(error)
            }
            Self::Pool(_) | Self::Refused(..) => ours,
        }
    }
}

fn driver(error: &tokio_postgres::Error) -> (StoreErrorKind, String) {
    if let Some(error) = error.as_db_error() {
        return server(error);
    }
    let message = match error.source() {
        // The driver has no type for it.
        Some(source) if source.to_string() == "server does not support TLS" => no_tls("sslmode=disable"),
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let kind = if error.is_closed() {
        StoreErrorKind::Unavailable
    } else if io.and_then(io::Error::get_ref).is_some_and(|inner| inner.is::<rustls::Error>()) {
        StoreErrorKind::Denied
    } else if io.is_some() {
        StoreErrorKind::Unavailable
    } else {
        // The other errors have no type to tell them by, only the driver's own constant text.
        match error.to_string().as_str() {
            "error performing TLS handshake" | "authentication error" => StoreErrorKind::Denied,
            "invalid configuration" | "invalid connection string" => StoreErrorKind::Config,
            _ => StoreErrorKind::Unexpected,
        }
    };
    (kind, message)
}

fn server(error: &DbError) -> (StoreErrorKind, String) {
    let message = error.message();
    let plain = |kind| (kind, message.to_owned());
    let with = |kind, remedy: &str| (kind, format!("{message}; {remedy}"));
    let code = error.code();
    if code == &SqlState::PROTOCOL_VIOLATION && message.contains("startup parameter") {
        return with(
            StoreErrorKind::Config,
            "this is a pooler: add `pgbouncer=true` to the URL, or in code use `.pooler(true)`",
        );
    }
    if code == &SqlState::UNDEFINED_OBJECT && message.starts_with("unrecognized configuration parameter") {
        return with(
            StoreErrorKind::Config,
            "this is no server of PostgreSQL 12 or later, or `options` of the URL names a setting that it does not know",
        );
    }
    match code.code() {
        "40001" | "40P01" | "55P03" => plain(StoreErrorKind::Contention),
        "25006" => with(
            StoreErrorKind::Unavailable,
            "the session is read-only: the server is a standby after a failover, or `default_transaction_read_only` is on",
        ),
        "57014" | "25P03" => plain(StoreErrorKind::Unavailable),
        "42501" if message.starts_with("must be owner") => {
            with(StoreErrorKind::Denied, "do it as its owner, or as a member of the owner's role")
        }
        "42501" => with(StoreErrorKind::Denied, "grant the user the privilege"),
        "3D000" => with(StoreErrorKind::Config, "create the database, or name another one in the URL"),
        "3F000" => (StoreErrorKind::Schema, unmigrated(message) + ", or name the schema, as in `billing.outbox_event`"),
        "42P01" | "42703" => (StoreErrorKind::Schema, unmigrated(message)),
        "26000" | "42P05" => with(
            StoreErrorKind::Config,
            "behind a pooler, add `pgbouncer=true` to the URL, or in code use `.pooler(true)`",
        ),
        code => match code.get(..2).unwrap_or_default() {
            "08" | "53" | "57" | "58" => plain(StoreErrorKind::Unavailable),
            "28" => plain(StoreErrorKind::Denied),
            _ => (StoreErrorKind::Unexpected, format!("{message} (SQLSTATE {code})")),
        },
    }
}
