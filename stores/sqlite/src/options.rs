use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pillarbox_core::error::{ConfigError, StoreError, StoreErrorKind};
use pillarbox_core::store::TableName;
use pillarbox_core::store::operation;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

use crate::{SqliteStore, location, migrate};

/// The database file to open, and the options for opening it.
///
/// `Debug` leaves out sqlx's options, which may hold a key.
#[derive(Clone)]
#[must_use = "nothing is opened before open() is called"]
pub struct SqliteOptions {
    location: String,
    /// sqlx's own, beside what a store needs.
    pub(crate) connect: SqliteConnectOptions,
    /// True if the program has given them; they may name a journal mode then, and each connection made with them sets it.
    pub(crate) connect_is_given: bool,
    table: String,
    pub(crate) synchronous: SqliteSynchronous,
    pub(crate) busy_timeout: Duration,
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("file", &self.checked_file())
            .field("table", &self.table)
            .field("synchronous", &self.synchronous)
            .field("busy_timeout", &self.busy_timeout)
            .finish_non_exhaustive()
    }
}

impl SqliteOptions {
    /// A database file by its path (`shop.db`) or URL (`sqlite://shop.db`). It is created if it is missing, readable and writable for
    /// its owner alone.
    pub fn new(location: impl Into<String>) -> Self {
        Self {
            location: location.into(),
            connect: SqliteConnectOptions::new(),
            connect_is_given: false,
            table: TableName::default().to_string(),
            synchronous: SqliteSynchronous::Full,
            busy_timeout: Duration::from_secs(5),
        }
    }

    /// Takes sqlx's own options, for settings that a path cannot express, such as the key of an encrypted database or another VFS. The store opens
    /// its connections with them and sets what it needs besides: the journal, the time to wait, the creation of the file, and
    /// `synchronous`, which [`synchronous_normal`](Self::synchronous_normal) changes.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use pillarbox_sqlite::SqliteOptions;
    /// use sqlx::sqlite::SqliteConnectOptions;
    ///
    /// let connect = SqliteConnectOptions::new().filename("shop.db").pragma("key", "'open sesame'");
    /// let store = SqliteOptions::from_connect_options(connect).open().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The service's transactions go through [`SqliteStore::writer`], a pool that is made of them too.
    pub fn from_connect_options(connect: SqliteConnectOptions) -> Self {
        let location = connect.get_filename().to_string_lossy().into_owned();
        Self { connect, connect_is_given: true, ..Self::new(location) }
    }

    /// The event table's name. Default: `outbox_event`.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// A committed transaction survives the loss of power. The default.
    ///
    /// It is the same promise that other databases make, and the safe one: an event that was delivered is never an event
    /// whose business data a loss of power took back.
    pub fn synchronous_full(mut self) -> Self {
        self.synchronous = SqliteSynchronous::Full;
        self
    }

    /// A loss of power may take back the last commits, business data and events together; a crash of the process does
    /// not. Commits are several times faster.
    ///
    /// Choose it where the events go no further than this machine: a consumer elsewhere may have received an event that
    /// the database then has forgotten. It holds for all transactions on [`SqliteStore::writer`].
    pub fn synchronous_normal(mut self) -> Self {
        self.synchronous = SqliteSynchronous::Normal;
        self
    }

    /// Sets the time for which a call waits for its turn to write, behind this process's queue and behind other processes.
    /// Default: 5 s. Longer if the service holds transactions open for longer than that.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Opens the database, creating the file if it is missing. The tables are created by
    /// [`migrate`](pillarbox_core::store::Store::migrate).
    ///
    /// # Errors
    /// When an option cannot be used, or SQLite cannot open the file.
    pub async fn open(self) -> Result<SqliteStore, StoreError> {
        let checked = || Ok((self.checked_file()?, self.table_name()?, self.check_timeout()?));
        let (file, table, ()) = checked().map_err(refused)?;
        SqliteStore::open_file(&file, table, &self).await
    }

    /// The path of the database file, which need not exist.
    ///
    /// # Errors
    /// When the location names no file.
    pub fn file(&self) -> Result<PathBuf, StoreError> {
        self.checked_file().map_err(refused)
    }

    /// The SQL that [`migrate`](pillarbox_core::store::Store::migrate) runs on an empty database, without opening one.
    ///
    /// # Errors
    /// When the table's name cannot be one.
    pub fn migration_sql(&self) -> Result<String, StoreError> {
        let table = self.table_name().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, "print the migration", error.to_string()).with_source(error)
        })?;
        Ok(migrate::script(&table))
    }

    fn checked_file(&self) -> Result<PathBuf, ConfigError> {
        // The location is the nearest text to such a path, which would name another file.
        if self.connect.get_filename().to_str().is_none() {
            return Err(ConfigError::new("path", "is not UTF-8", "SQLite takes no other; name the file in UTF-8"));
        }
        location::file(&self.location)
    }

    fn table_name(&self) -> Result<TableName, ConfigError> {
        let table = TableName::parse(&self.table)?;
        if let Some(schema) = table.schema() {
            let problem = format!("names the schema `{schema}`, and SQLite has none");
            return Err(ConfigError::new("table", problem, "leave the schema out"));
        }
        if table.event().get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_")) {
            return Err(ConfigError::new(
                "table",
                "starts with `sqlite_`, which SQLite reserves",
                "choose another name",
            ));
        }
        Ok(table)
    }

    fn check_timeout(&self) -> Result<(), ConfigError> {
        // SQLite counts milliseconds in 32 bits.
        if self.busy_timeout < Duration::from_millis(1) {
            let problem = format!("is {:?}, in which no lock can be had", self.busy_timeout);
            return Err(ConfigError::new("busy_timeout", problem, "choose a few seconds; 1ms at least"));
        }
        if i32::try_from(self.busy_timeout.as_millis()).is_err() {
            return Err(ConfigError::new("busy_timeout", "is longer than 24 days", "choose a few seconds"));
        }
        Ok(())
    }
}

fn refused(error: ConfigError) -> StoreError {
    StoreError::new(StoreErrorKind::Config, operation::CONNECT, error.to_string()).with_source(error)
}
