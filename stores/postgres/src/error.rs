use std::error::Error as _;
use std::io;

use deadpool_postgres::{PoolError, TimeoutType};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use tokio_postgres::error::{DbError, SqlState};

/// What a call stumbled over, before it is known which call that was.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(tokio_postgres::Error),
    Pool(PoolError),
    /// Our own refusal.
    Refused(StoreErrorKind, String),
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

const MIGRATE: &str = "run `store.migrate()` or `pillarbox migrate`";

/// The remedy for tables that are not there, or not as this release needs them.
pub(crate) fn migrate_remedy(problem: &str) -> String {
    format!("{problem}; {MIGRATE}")
}

/// Cannot happen: asked of a statement that always has a row.
pub(crate) fn no_row() -> Failure {
    Failure::Refused(StoreErrorKind::Unexpected, "the server returned no row".to_owned())
}

impl Failure {
    /// The one place where the driver's errors become ours.
    ///
    /// The message is the server's primary message without its detail, which may quote values of the row.
    pub(crate) fn during(self, operation: &'static str, address: &str) -> StoreError {
        let (kind, message) = match &self {
            Self::Refused(kind, message) => (*kind, message.clone()),
            Self::Pool(PoolError::Backend(error)) | Self::Driver(error) => driver(error),
            Self::Pool(PoolError::Timeout(TimeoutType::Create)) => (
                StoreErrorKind::Unavailable,
                "no connection came about in time; is the server running and reachable?".to_owned(),
            ),
            Self::Pool(PoolError::Timeout(_)) => {
                (StoreErrorKind::Unavailable, "all connections stayed busy; raise pool_size if it lasts".to_owned())
            }
            Self::Pool(PoolError::Closed) => (StoreErrorKind::Unexpected, "the store has been closed".to_owned()),
            Self::Pool(error) => (StoreErrorKind::Unexpected, error.to_string()),
        };
        let ours = StoreError::new(kind, operation, message).at(address);
        match self {
            Self::Driver(error) | Self::Pool(PoolError::Backend(error)) => ours.with_source(error),
            Self::Pool(_) | Self::Refused(..) => ours,
        }
    }
}

fn driver(error: &tokio_postgres::Error) -> (StoreErrorKind, String) {
    if let Some(error) = error.as_db_error() {
        return server(error);
    }
    let message = match error.source() {
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
        // What is left has no type to tell it by, only the driver's own constant text.
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
            "this is a pooler: use `.pooler(true)` or add `pgbouncer=true` to the URL",
        );
    }
    match code.code() {
        "40001" | "40P01" | "55P03" => plain(StoreErrorKind::Contention),
        "25006" => with(StoreErrorKind::Unavailable, "the server is read-only, probably a standby after a failover"),
        "57014" | "25P03" => plain(StoreErrorKind::Unavailable),
        "42501" => with(StoreErrorKind::Denied, "grant the user the privilege"),
        "3D000" => with(StoreErrorKind::Config, "create the database, or name another one in the URL"),
        "3F000" => {
            (StoreErrorKind::Schema, migrate_remedy(message) + ", or name the schema, as in `billing.outbox_event`")
        }
        "42P01" | "42703" => (StoreErrorKind::Schema, migrate_remedy(message)),
        "26000" | "42P05" => {
            with(StoreErrorKind::Config, "behind a pooler, use `.pooler(true)` or add `pgbouncer=true` to the URL")
        }
        code => match code.get(..2).unwrap_or_default() {
            "08" | "53" | "57" | "58" => plain(StoreErrorKind::Unavailable),
            "28" => plain(StoreErrorKind::Denied),
            _ => (StoreErrorKind::Unexpected, format!("{message} (SQLSTATE {code})")),
        },
    }
}
