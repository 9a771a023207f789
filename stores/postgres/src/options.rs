use std::path::PathBuf;
use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::TableName;
use pillarbox_core::store::operation;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use crate::PostgresStore;
use crate::connector::Connector;
use crate::schema;
use crate::session::Sessions;
use crate::tls::{Identity, Roots};
use crate::url::Target;

/// Options of a connection to a database, beyond those in its URL.
///
/// `Debug` leaves out the password.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until connect() is called"]
pub struct PostgresOptions {
    target: Target,
    table: String,
    pool_size: usize,
    durable_settles: bool,
    connect_timeout: Duration,
}

impl PostgresOptions {
    /// Reads a URL: `postgres://user:password@host:port/database?parameter=value&…`, with the parameters of libpq.
    ///
    /// | Parameter | Meaning |
    /// |---|---|
    /// | `sslmode` | `disable`: plaintext; `prefer`, `allow`: TLS if the server offers it; `require`: encrypted, and verified as `verify-ca` does if the URL has `sslrootcert`; `verify-ca`: issued by a trusted authority; `verify-full`: and for this host. Default: `prefer` |
    /// | `sslrootcert` | PEM file of trusted authorities; without it, or as `system`, those of the operating system |
    /// | `sslcert`, `sslkey` | PEM files of the client's own certificate and its key, for a server that asks for one |
    /// | `sslnegotiation` | `postgres` (default), `direct` (PostgreSQL 17) |
    /// | `pgbouncer` | `true`: see [`pooler`](Self::pooler) |
    /// | `options` | settings of the session, such as `-c search_path=billing` |
    /// | `connect_timeout`, `tcp_user_timeout` | seconds; default 10 and 30 |
    /// | `keepalives_idle`, `keepalives_interval`, `keepalives_retries` | seconds, seconds, count; default 30, 10, 3 |
    /// | `target_session_attrs` | default `read-write` if the URL names several hosts |
    /// | `application_name` | default `pillarbox` |
    ///
    /// To another machine `prefer` and `allow` mean `require`: a password is never sent in clear there unless the URL says
    /// `sslmode=disable`. On a network that is not trusted, use `verify-full`. A Unix socket has no TLS and needs none.
    ///
    /// # Errors
    /// When the URL is malformed or a parameter is unknown; it names the parameter and the remedy.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        Ok(Self::of(Target::parse(url)?))
    }

    /// Takes the driver's configuration and a connector for TLS, for settings that no URL can express: keys in hardware, certificates that are
    /// renewed while the process runs, a verifier of one's own. `NoTls` is one too.
    ///
    /// The store opens connections with it and keeps them to itself: they need settings of their own, which a pool that is
    /// shared with other code has not. As with a URL, [`SslMode::Prefer`](tokio_postgres::config::SslMode::Prefer), the driver's
    /// default, means `Require` to another machine; plaintext there takes `SslMode::Disable`.
    pub fn from_config<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync + 'static,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Self::of(Target::from_config(config, Connector::new(tls)))
    }

    fn of(target: Target) -> Self {
        let connect_timeout = target.config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(10));
        Self { target, table: TableName::default().to_string(), pool_size: 4, durable_settles: false, connect_timeout }
    }

    /// The event table, such as `outbox_event` (default) or `billing.outbox_event`; its companions stand beside it.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// Sets whether the URL leads to a pooler in transaction mode, such as PgBouncer. Default: the value of `pgbouncer=` in the URL, else
    /// no. It works without prepared statements and session settings then, for some more work per call, and without
    /// [wake-ups](pillarbox_core::store::WakeUps), which such a pooler does not pass on.
    pub fn pooler(mut self, pooler: bool) -> Self {
        self.target.pooler = pooler;
        self
    }

    /// Sets the number of connections that the store may open for events, at least 1. Default: 4, of which an idle node uses one. There
    /// is one more for the lease, which waits for none of them, and one for each listener.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// Sets whether recording that an event was handled waits for the disk and for synchronous replicas. Default: no. Losing such a mark
    /// in a crash of the *database* means that the event is delivered once more, never that it is lost.
    pub fn durable_settles(mut self, durable: bool) -> Self {
        self.durable_settles = durable;
        self
    }

    /// Sets the time to wait for a connection to one host, TLS and authentication included. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// PEM file of the authorities to trust, as `sslrootcert` in the URL. It matters for `sslmode=verify-ca` and
    /// `verify-full`, and makes `require` verify as `verify-ca` does.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.target.tls.trust(Roots::File(path.into()), self.target.config.get_ssl_mode());
        self
    }

    /// PEM files of the client's own certificate and its key, as `sslcert` and `sslkey` in the URL.
    pub fn client_certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.target.tls.identity = Some(Identity { certificate: certificate.into(), key: key.into() });
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
    pub async fn connect(self) -> Result<PostgresStore, StoreError> {
        let table = self.table_name()?;
        if self.pool_size == 0 {
            return Err(refuse("setting `pool_size` is zero; give it at least 1".to_owned()));
        }
        if self.connect_timeout.is_zero() {
            return Err(refuse("setting `connect_timeout` is zero; give it at least a second".to_owned()));
        }
        if self.target.connector.is_some()
            && (self.target.tls.roots != Roots::System || self.target.tls.identity.is_some())
        {
            let problem = "a connector was given, beside which `ca_file` and `client_certificate` mean nothing";
            return Err(refuse(format!("{problem}; give them to the connector")));
        }
        let sessions = Sessions::new(self.target, self.pool_size, self.connect_timeout)?;
        sessions
            .call(operation::CONNECT, async {
                let session = sessions.session().await?;
                session.query("SELECT 1", &[]).await?;
                session.finish();
                Ok(())
            })
            .await?;
        Ok(PostgresStore::new(sessions, table, self.durable_settles))
    }
}

fn refuse(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Config, "configure the PostgreSQL store", message)
}
