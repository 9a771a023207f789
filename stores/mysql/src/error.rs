use deadpool::managed::{PoolError, TimeoutType};
use mysql_async::{DriverError, Error, IoError, ServerError};
use pillarbox_connect::no_tls;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::refusal::{CLOSED, unmigrated};

/// The failure of a call, before it is known which call that was.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(Error),
    Pool(PoolError<Error>),
    /// Our own refusal.
    Refused(StoreErrorKind, String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl From<PoolError<Error>> for Failure {
    fn from(error: PoolError<Error>) -> Self {
        Self::Pool(error)
    }
}

impl Failure {
    /// True if the statement lost against another one, so that its whole transaction may be tried again at once.
    pub(crate) fn is_contention(&self) -> bool {
        matches!(self, Self::Driver(Error::Server(error)) if server(error).0 == StoreErrorKind::Contention)
    }

    /// True if the server has refused a statement, for another reason than its own shutdown.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Driver(Error::Server(error)) if error.code != 1053)
    }

    /// True if the statement has waited for a lock for as long as it may.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        matches!(self, Self::Driver(Error::Server(error)) if error.code == 1205)
    }

    /// True if a statement would have made a column or an index that is there.
    pub(crate) fn is_there_already(&self) -> bool {
        matches!(self, Self::Driver(Error::Server(error)) if matches!(error.code, 1060 | 1061))
    }

    /// True if the user lacks the privilege.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Driver(Error::Server(error)) if server(error).0 == StoreErrorKind::Denied)
    }

    /// The problem in words, without a kind.
    pub(crate) fn into_problem(self) -> String {
        match self {
            Self::Refused(_, problem) => problem,
            Self::Driver(error) | Self::Pool(PoolError::Backend(error)) => driver(&error).1,
            Self::Pool(error) => error.to_string(),
        }
    }

    /// The one place where the driver's errors become ours.
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
            Self::Pool(PoolError::Closed) => (StoreErrorKind::Unexpected, CLOSED.to_owned()),
            Self::Pool(error) => (StoreErrorKind::Unexpected, error.to_string()),
        };
        let ours = StoreError::new(kind, operation, message).at(address);
        match self {
            Self::Driver(error) | Self::Pool(PoolError::Backend(error)) => ours.with_source(error),
            Self::Pool(_) | Self::Refused(..) => ours,
        }
    }
}

fn driver(error: &Error) -> (StoreErrorKind, String) {
    use StoreErrorKind::{Config, Denied, Unavailable, Unexpected};
    match error {
        Error::Server(error) => server(error),
        Error::Io(IoError::Tls(error)) => (Denied, error.to_string()),
        Error::Io(IoError::Io(error)) => {
            let refused_certificate = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
            (if refused_certificate { Denied } else { Unavailable }, error.to_string())
        }
        Error::Driver(error @ (DriverError::ConnectionClosed | DriverError::PoolDisconnected)) => {
            (Unavailable, error.to_string())
        }
        Error::Driver(DriverError::NoClientSslFlagFromServer) => (Denied, no_tls("ssl-mode=disabled")),
        Error::Driver(
            error @ (DriverError::UnknownAuthPlugin { .. }
            | DriverError::MysqlOldPasswordDisabled
            | DriverError::CleartextPluginDisabled),
        ) => (Denied, error.to_string()),
        Error::Url(error) => (Config, error.to_string()),
        // The others may quote what was sent or received.
        Error::Driver(_) | Error::Other(_) => {
            (Unexpected, "the server and the driver misunderstood each other".to_owned())
        }
    }
}

fn server(error: &ServerError) -> (StoreErrorKind, String) {
    use StoreErrorKind::{Config, Contention, Denied, Schema, Unavailable, Unexpected};
    let message = &error.message;
    let plain = |kind| (kind, message.clone());
    let with = |kind, remedy: &str| (kind, format!("{message}; {remedy}"));
    match error.code {
        // Lock timeouts, deadlocks, MariaDB's "record has changed since last read", a table that a migration has just changed, and
        // a transaction that a group of servers has rolled back for another one.
        1020 | 1205 | 1213 | 1412 | 3101 => plain(Contention),
        1290 | 1792 | 1836 => with(Unavailable, "the server is read-only, probably a replica after a failover"),
        // Too many connections or locks, shutting down, offline, out of memory, threads or disk, killed, took too long, or a member of a
        // cluster that takes no statements. Numbers below 1000 are of the library under the server: of its files and its memory.
        1..=5
        | 14
        | 20
        | 23
        | 27
        | 1021
        | 1026
        | 1030
        | 1037
        | 1038
        | 1040
        | 1041
        | 1047
        | 1053
        | 1077
        | 1079
        | 1114
        | 1135
        | 1152
        | 1158..=1161
        | 1180
        | 1203
        | 1206
        | 1226
        | 1317
        | 1637
        | 1927
        | 1969
        | 3024
        | 3032
        | 3100
        | 4031 => plain(Unavailable),
        1044 | 1142 | 1143 | 1227 | 1370 => with(Denied, "grant the user the privilege"),
        1045 | 1129 | 1130 | 1251 | 1524 | 1698 | 3159 => plain(Denied),
        1049 => with(Config, "create the database, or name another one in the URL"),
        1046 => with(Config, "name a database in the URL, or with the table, as in `billing.outbox_event`"),
        1054 | 1072 | 1146 | 1176 => (Schema, unmigrated(message)),
        1153 => with(Unexpected, "raise `max_allowed_packet` on the server"),
        1665 => with(Config, "set `binlog_format` to ROW or MIXED on the server"),
        // By the class of the error the connection failed, or the transaction was rolled back.
        _ if error.state.starts_with("08") => plain(Unavailable),
        _ if error.state.starts_with("40") => plain(Contention),
        code => (Unexpected, format!("{message} (error {code}, SQLSTATE {})", error.state)),
    }
}

/// True if a connection attempt failed only because the server has no TLS.
pub(crate) fn lacks_tls(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Pool(PoolError::Backend(Error::Driver(DriverError::NoClientSslFlagFromServer)))
            | Failure::Driver(Error::Driver(DriverError::NoClientSslFlagFromServer))
    )
}

#[cfg(test)]
mod tests {
    use pillarbox_core::error::StoreErrorKind::{self, Contention, Schema, Unavailable, Unexpected};

    use super::*;

    fn kind(code: u16, state: &str) -> StoreErrorKind {
        server(&ServerError { code, message: "refused".to_owned(), state: state.to_owned() }).0
    }

    #[test]
    fn transient_errors_are_temporary() {
        // Numbers below 1000 are of the library under the server: of its files and its memory.
        for code in [3, 20, 1021, 1026, 1030, 1040, 1135, 1180, 1206, 1637, 3032, 3100] {
            assert_eq!(kind(code, "HY000"), Unavailable, "{code}");
        }
        for code in [1205, 1213, 1412, 3101] {
            assert_eq!(kind(code, "HY000"), Contention, "{code}");
        }
        assert_eq!(kind(1047, "08S01"), Unavailable);
    }

    #[test]
    fn the_class_of_an_unknown_error_tells_whether_it_passes() {
        let table = [("08S01", Unavailable), ("08004", Unavailable), ("40001", Contention), ("HY000", Unexpected)];
        for (state, expected) in table {
            assert_eq!(kind(9999, state), expected, "{state}");
        }
        assert_eq!(kind(9999, ""), Unexpected);
        assert_eq!(kind(1146, "42S02"), Schema);
        assert_eq!(kind(1153, "08S01"), Unexpected, "a packet that is too large is so the next time, too");
    }
}
