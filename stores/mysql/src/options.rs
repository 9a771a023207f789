use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder};
use pillarbox_connect::needs_tls;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::TableName;
use pillarbox_core::store::operation;

use crate::MysqlStore;
use crate::answer::is_true;
use crate::error::{Failure, lacks_tls};
use crate::schema;
use crate::session::Sessions;
use crate::tls::{Identity, SslMode, install_provider};
use crate::url::{Target, address};

/// Options of a connection to a database, beyond those in its URL.
///
/// `Debug` leaves out the password.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until connect() is called"]
pub struct MysqlOptions {
    source: Source,
    /// Plaintext to another machine, with the driver's own options.
    plaintext: bool,
    /// A setting of URLs that was given beside the driver's own options.
    of_urls: Option<&'static str>,
    table: String,
    pool_size: usize,
    connect_timeout: Duration,
}

/// The address of the database, and the certificates to trust.
#[derive(Clone)]
enum Source {
    Url(Box<Target>),
    /// The driver's own options.
    Driver(Opts),
}

// The driver's options show the password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(target) => target.fmt(f),
            Self::Driver(options) => f.debug_tuple("Driver").field(&driver_address(options)).finish(),
        }
    }
}

fn driver_address(options: &Opts) -> String {
    address(options.socket(), options.ip_or_hostname(), options.tcp_port(), options.db_name())
}

impl MysqlOptions {
    /// Reads a URL: `mysql://user:password@host:port/database?parameter=value&…`; `mariadb://` means the same.
    ///
    /// | Parameter | Meaning |
    /// |---|---|
    /// | `ssl-mode` | `disabled`: plaintext; `preferred` (default): TLS if the server offers it; `required`: encrypted, not verified; `verify_identity`: by a trusted authority for this host |
    /// | `ssl-ca` | PEM file of trusted authorities, for `verify_identity` alone; without it, those of the operating system |
    /// | `ssl-cert`, `ssl-key` | PEM files of the client's own certificate and its key, for a server that asks for one |
    /// | `socket` | path of a Unix socket, used instead of the host |
    /// | `connect_timeout` | seconds; default 10 |
    ///
    /// To another machine `preferred` means `required`: nothing is sent in clear there unless the URL says `ssl-mode=disabled`.
    /// On a network that is not trusted, use `verify_identity`.
    ///
    /// # Errors
    /// When the URL is malformed or a parameter is unknown; it names the parameter and the remedy.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let target = Target::parse(url)?;
        let connect_timeout = target.connect_timeout.unwrap_or(Duration::from_secs(10));
        Ok(Self { connect_timeout, ..Self::of(Source::Url(Box::new(target))) })
    }

    /// Takes the driver's own options, for settings that no URL can express. The store opens its connections with them and keeps these to itself:
    /// they need settings of their own, which a pool that is shared with other code has not. Statements of
    /// [`setup`](mysql_async::OptsBuilder::setup) run before the store's.
    ///
    /// ```no_run
    /// # async fn example(identity: mysql_async::ClientIdentity) -> Result<(), Box<dyn std::error::Error>> {
    /// use mysql_async::{OptsBuilder, SslOpts};
    /// use pillarbox_mysql::MysqlOptions;
    ///
    /// let tls = SslOpts::default().with_client_identity(Some(identity));
    /// let options = OptsBuilder::default().ip_or_hostname("db.internal").user(Some("shop")).db_name(Some("shop")).ssl_opts(tls);
    /// let store = MysqlOptions::from_opts(options).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Options without TLS that lead to another machine are refused, unless [`plaintext`](Self::plaintext) is said.
    pub fn from_opts(options: impl Into<Opts>) -> Self {
        Self::of(Source::Driver(options.into()))
    }

    fn of(source: Source) -> Self {
        let connect_timeout = Duration::from_secs(10);
        let table = TableName::default().to_string();
        Self { source, plaintext: false, of_urls: None, table, pool_size: 4, connect_timeout }
    }

    /// Sets whether options of the driver without TLS may lead to another machine, over a network that is trusted. Default: no. A URL says
    /// `ssl-mode=disabled` instead, and is refused with this.
    pub fn plaintext(mut self, plaintext: bool) -> Self {
        self.plaintext = plaintext;
        self
    }

    /// The event table, such as `outbox_event` (default) or `billing.outbox_event` in the database `billing`; its
    /// companions stand beside it.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// Sets the number of connections that the store may open for events, at least 1. Default: 4, of which an idle node uses one. There
    /// is one more for the lease, which waits for none of them.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// Sets the time to wait for a connection, TLS and authentication included. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// PEM file of the authorities to trust, as `ssl-ca` in the URL. It takes `ssl-mode=verify_identity`; other modes verify nothing, and are
    /// refused with it. The driver's own options say it themselves.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        match &mut self.source {
            Source::Url(target) => target.tls.ca_file = Some(path.into()),
            Source::Driver(_) => self.of_urls = Some("ca_file"),
        }
        self
    }

    /// PEM files of the client's own certificate and its key, as `ssl-cert` and `ssl-key` in the URL. The driver's own options say
    /// it themselves.
    pub fn client_certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        match &mut self.source {
            Source::Url(target) => {
                target.tls.identity = Some(Identity { certificate: certificate.into(), key: key.into() });
            }
            Source::Driver(_) => self.of_urls = Some("client_certificate"),
        }
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
        self.check_tls()?;
        let mut sessions = self.sessions()?;
        let mut first = greet(&sessions).await;
        if let Source::Url(target) = &mut self.source
            && target.tls.mode == SslMode::Preferred
            && first.as_ref().is_err_and(lacks_tls)
        {
            // The driver does not negotiate: it wants TLS, or none.
            target.tls.mode = SslMode::Disabled;
            sessions = self.sessions()?;
            first = greet(&sessions).await;
        }
        let mariadb = first.map_err(|failure| failure.during(operation::CONNECT, sessions.address()))?;
        Ok(MysqlStore::new(sessions, table, mariadb))
    }

    /// Refuses settings of TLS that would do nothing.
    fn check_tls(&self) -> Result<(), StoreError> {
        if let Some(setting) = self.of_urls {
            let problem = format!("the driver's own options were given, beside which `{setting}` means nothing");
            return Err(refuse(format!("{problem}; give it to them, by `ssl_opts`")));
        }
        match &self.source {
            Source::Url(_) if self.plaintext => {
                let problem = "a URL was given, beside which `plaintext(true)` means nothing";
                Err(refuse(format!("{problem}; write `ssl-mode=disabled` in the URL")))
            }
            Source::Url(target) => target.tls.check(),
            Source::Driver(_) => Ok(()),
        }
    }

    fn sessions(&self) -> Result<Sessions, StoreError> {
        let table = self.table_name()?;
        let schema = table.schema();
        match &self.source {
            Source::Url(target) => {
                Sessions::new(target.options()?, &[], schema, target.address(), self.pool_size, self.connect_timeout)
            }
            Source::Driver(options) => {
                let here = options.socket().is_some() || !needs_tls([options.ip_or_hostname()]);
                if options.ssl_opts().is_none() && !here && !self.plaintext {
                    let host = options.ip_or_hostname();
                    let problem = format!("the options are for a connection without TLS to {host}, another machine");
                    return Err(refuse(format!("{problem}; give them `ssl_opts`, or call `plaintext(true)`")));
                }
                if options.ssl_opts().is_some() {
                    install_provider();
                }
                let (builder, address) = (OptsBuilder::from_opts(options.clone()), driver_address(options));
                Sessions::new(builder, options.setup(), schema, address, self.pool_size, self.connect_timeout)
            }
        }
    }
}

/// Connects to the server, and returns true if it is MariaDB.
async fn greet(sessions: &Sessions) -> Result<bool, Failure> {
    let answers = sessions.run("SELECT VERSION() LIKE '%MariaDB%'").await?;
    answers.first(0).map_or(Ok(false), |row| is_true(row, 0))
}

fn refuse(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Config, "configure the MySQL store", message)
}
