use std::path::PathBuf;
use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::TableName;

use crate::MysqlStore;
use crate::error::{Failure, lacks_tls};
use crate::schema;
use crate::session::Sessions;
use crate::tls::SslMode;
use crate::url::Target;

/// How to connect to a database, beyond what its URL says.
///
/// `Debug` leaves out the password.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until connect() is called"]
pub struct MysqlOptions {
    target: Target,
    table: String,
    pool_size: usize,
    connect_timeout: Duration,
}

impl MysqlOptions {
    /// Reads a URL: `mysql://user:password@host:port/database?parameter=value&…`; `mariadb://` means the same.
    ///
    /// | Parameter | Meaning |
    /// |---|---|
    /// | `ssl-mode` | `disabled`, `preferred` (default): encrypted if the server offers it, `required`: encrypted, not verified; `verify_identity`: by a trusted authority for this host |
    /// | `ssl-ca` | PEM file of trusted authorities, for `verify_identity`; without it, those of the operating system |
    /// | `socket` | path of a Unix socket, used instead of the host |
    /// | `connect_timeout` | seconds; default 10 |
    ///
    /// # Errors
    /// When the URL is malformed or a parameter is unknown; it says which, and what to write instead.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let target = Target::parse(url)?;
        let connect_timeout = target.connect_timeout.unwrap_or(Duration::from_secs(10));
        Ok(Self { target, table: TableName::default().to_string(), pool_size: 4, connect_timeout })
    }

    /// The event table, such as `outbox_event` (default) or `billing.outbox_event` in the database `billing`; its
    /// companions stand beside it.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// How many connections the store may open for events, at least 1. Default: 4, of which an idle node uses one. There
    /// is one more for the lease, which waits for none of them.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// How long to wait for a connection, TLS and authentication included. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// PEM file of the authorities to trust, as `ssl-ca` in the URL. It matters for `ssl-mode=verify_identity`.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.target.tls.ca_file = Some(path.into());
        self
    }

    /// The SQL that [`migrate`](pillarbox_core::store::Store::migrate) runs on an empty database, without connecting to
    /// one.
    ///
    /// # Errors
    /// When the table's name cannot be one.
    pub fn migration_sql(&self) -> Result<String, StoreError> {
        Ok(schema::script(&self.table_name()?, 0))
    }

    fn table_name(&self) -> Result<TableName, StoreError> {
        TableName::parse(&self.table).map_err(|error| refuse(error.to_string()))
    }

    /// Opens the first connection, so that a wrong setting or a database that is down shows at once.
    ///
    /// # Errors
    /// When a setting cannot be used, or the database cannot be reached or refuses.
    pub async fn connect(mut self) -> Result<MysqlStore, StoreError> {
        let table = self.table_name()?;
        if self.pool_size == 0 {
            return Err(refuse("setting `pool_size` is zero; give it at least 1".to_owned()));
        }
        if self.connect_timeout.is_zero() {
            return Err(refuse("setting `connect_timeout` is zero; give it at least a second".to_owned()));
        }
        let mut sessions = self.sessions()?;
        let mut first = greet(&sessions).await;
        if self.target.tls.mode == SslMode::Preferred && first.as_ref().is_err_and(lacks_tls) {
            // The driver does not negotiate: it wants TLS, or none.
            self.target.tls.mode = SslMode::Disabled;
            sessions = self.sessions()?;
            first = greet(&sessions).await;
        }
        let mariadb = first.map_err(|failure| failure.during("connect to MySQL", sessions.address()))?;
        Ok(MysqlStore::new(sessions, table, mariadb))
    }

    fn sessions(&self) -> Result<Sessions, StoreError> {
        Sessions::new(&self.target, self.pool_size, self.connect_timeout)
    }
}

/// Whether there is a server, and if so, whether it is MariaDB.
async fn greet(sessions: &Sessions) -> Result<bool, Failure> {
    let mut session = sessions.session().await?;
    let mariadb = session.is_mariadb().await?;
    session.finish();
    Ok(mariadb)
}

fn refuse(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Config, "configure the MySQL store", message)
}
