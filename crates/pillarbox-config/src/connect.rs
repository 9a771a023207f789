//! From `store.url` to an open store. A database that is added here gets a variant of `DatabaseKind`, its settings in
//! `why_ignored`, and an arm in `connect`.

use std::sync::Arc;

use pillarbox_core::error::ConfigError;
use pillarbox_core::store::{Store, TableName};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use pillarbox_engine::run::StartError;

use crate::origin::Origins;
use crate::value::{DatabaseKind, DatabaseUrl};
use crate::{Error, Settings, StoreSettings};

impl StoreSettings {
    pub(crate) fn check(&self, origins: &Origins) -> Result<(), Error> {
        if let (Some(_), Some(_)) = (&self.url, &self.url_file) {
            return Err(Error::invalid("store.url_file", origins, "stands beside `store.url`", "give one of them"));
        }
        if let Some(url) = &self.url {
            url.kind().map_err(|(problem, remedy)| Error::invalid("store.url", origins, problem, remedy))?;
        }
        if self.pool_size == 0 {
            return Err(Error::invalid("store.pool_size", origins, "is zero", "set at least 1"));
        }
        self.table_name().map_err(|error| Error::refused(&error, origins))?;
        Ok(())
    }

    /// The event table with its prefix.
    fn table_name(&self) -> Result<TableName, ConfigError> {
        let table = TableName::parse(&self.table)?;
        match &self.table_prefix {
            Some(prefix) => table.prefixed(prefix),
            None => Ok(table),
        }
    }

    /// The reason why `key` means nothing to the database that `store.url` names. The database of `store.url_file` is
    /// known only once that file is read.
    pub(crate) fn why_ignored(&self, key: &str) -> Option<String> {
        self.url.as_ref()?.kind().ok().and_then(|kind| why_ignored_by(kind, key))
    }
}

fn why_ignored_by(kind: DatabaseKind, key: &str) -> Option<String> {
    let ignored = match kind {
        DatabaseKind::Postgres => matches!(key, "store.synchronous" | "store.busy_timeout"),
        DatabaseKind::Mysql => matches!(key, "store.durable_settles" | "store.synchronous" | "store.busy_timeout"),
        DatabaseKind::Sqlite => matches!(key, "store.pool_size" | "store.durable_settles"),
    };
    ignored.then(|| format!("does not apply to {}", kind.name()))
}

impl Settings {
    /// The database's URL, read from `store.url_file` if that is how it is given. A program that keeps a pool of its own
    /// on the same database can open it by this.
    ///
    /// # Errors
    /// When neither is given, or the file cannot be read.
    pub fn database_url(&self) -> Result<DatabaseUrl, Error> {
        match (&self.store.url, &self.store.url_file) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(path)) if path.to_string_lossy().contains("://") => {
                let remedy = "put the URL into a file and name that, or give it as `store.url`";
                Err(Error::invalid("store.url_file", &self.origins, "is a URL, where a file is to be named", remedy))
            }
            (None, Some(path)) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(text.trim().into()),
                Err(source) => Err(Error::File { what: "`store.url_file`", path: path.clone(), source }),
            },
            (None, None) => {
                let remedy = "set it or `store.url_file`, in the file or by the environment";
                Err(Error::invalid("store.url", &self.origins, "is missing", remedy))
            }
        }
    }

    /// Opens the store that the URL names. [`Setup::start`](crate::Setup::start) does so by itself.
    ///
    /// # Errors
    /// When there is no URL, or the database cannot be opened.
    pub async fn connect(&self) -> Result<Arc<dyn Store>, Error> {
        #[allow(unused_variables, reason = "a build may have no database")]
        let (kind, url) = self.database()?;
        match kind {
            #[cfg(feature = "postgres")]
            DatabaseKind::Postgres => Ok(Arc::new(self.postgres(&url)?.connect().await.map_err(StartError::Store)?)),
            #[cfg(feature = "mysql")]
            DatabaseKind::Mysql => Ok(Arc::new(self.mysql(&url)?.connect().await.map_err(StartError::Store)?)),
            #[cfg(feature = "sqlite")]
            DatabaseKind::Sqlite => Ok(Arc::new(self.sqlite(&url)?.open().await.map_err(StartError::Store)?)),
            #[cfg(not(all(feature = "mysql", feature = "postgres", feature = "sqlite")))]
            kind => Err(self.built_without(kind)),
        }
    }

    /// Checks, without connecting, that the settings name a database that can be connected to.
    ///
    /// # Errors
    /// As [`database_url`](Self::database_url), and for a URL or a table's name that cannot be, and for settings that this database would
    /// ignore.
    pub fn check_database(&self) -> Result<(), Error> {
        #[allow(unused_variables, reason = "a build may have no database")]
        let (kind, url) = self.database()?;
        match kind {
            #[cfg(feature = "postgres")]
            DatabaseKind::Postgres => self.postgres(&url).map(drop),
            #[cfg(feature = "mysql")]
            DatabaseKind::Mysql => self.mysql(&url).map(drop),
            #[cfg(feature = "sqlite")]
            DatabaseKind::Sqlite => self.sqlite(&url).map(drop),
            #[cfg(not(all(feature = "mysql", feature = "postgres", feature = "sqlite")))]
            kind => Err(self.built_without(kind)),
        }
    }

    /// The kind of the database and its URL, unless a setting does not apply to that kind.
    fn database(&self) -> Result<(DatabaseKind, DatabaseUrl), Error> {
        let url = self.database_url()?;
        let wrong = |(problem, remedy)| Error::invalid(self.given(), &self.origins, problem, remedy);
        let kind = url.kind().map_err(wrong)?;
        for key in self.origins.keys() {
            if let Some(why) = why_ignored_by(kind, key) {
                return Err(Error::invalid(key.to_owned(), &self.origins, why, "remove it"));
            }
        }
        Ok((kind, url))
    }

    /// The key that names the database.
    fn given(&self) -> &'static str {
        if self.store.url.is_some() { "store.url" } else { "store.url_file" }
    }

    #[cfg(not(all(feature = "mysql", feature = "postgres", feature = "sqlite")))]
    fn built_without(&self, kind: DatabaseKind) -> Error {
        let problem = format!("names {}, which this program was built without", kind.name());
        let remedy = format!("enable the feature `{}`", kind.feature());
        Error::invalid(self.given(), &self.origins, problem, remedy)
    }

    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    fn table(&self) -> Result<TableName, Error> {
        self.store.table_name().map_err(|error| Error::refused(&error, &self.origins))
    }

    /// The options of a PostgreSQL store, for a program that opens it by itself.
    ///
    /// # Errors
    /// As [`database_url`](Self::database_url), and when the URL is malformed or the table's name cannot be one.
    #[cfg(feature = "postgres")]
    pub fn postgres_options(&self) -> Result<pillarbox_postgres::PostgresOptions, Error> {
        self.postgres(&self.database_url()?)
    }

    #[cfg(feature = "postgres")]
    fn postgres(&self, url: &DatabaseUrl) -> Result<pillarbox_postgres::PostgresOptions, Error> {
        let store = &self.store;
        Ok(pillarbox_postgres::PostgresOptions::parse(url.as_str())
            .map_err(StartError::Store)?
            .table(self.table()?)
            .pool_size(store.pool_size)
            .durable_settles(store.durable_settles))
    }

    /// The options of a MySQL store, for a program that opens it by itself.
    ///
    /// # Errors
    /// As [`database_url`](Self::database_url), and when the URL is malformed or the table's name cannot be one.
    #[cfg(feature = "mysql")]
    pub fn mysql_options(&self) -> Result<pillarbox_mysql::MysqlOptions, Error> {
        self.mysql(&self.database_url()?)
    }

    #[cfg(feature = "mysql")]
    fn mysql(&self, url: &DatabaseUrl) -> Result<pillarbox_mysql::MysqlOptions, Error> {
        let store = &self.store;
        Ok(pillarbox_mysql::MysqlOptions::parse(url.as_str())
            .map_err(StartError::Store)?
            .table(self.table()?)
            .pool_size(store.pool_size))
    }

    /// The options of a SQLite store, for a program that opens it by itself, to write through its connection.
    ///
    /// # Errors
    /// As [`database_url`](Self::database_url), and when the table's name cannot be one.
    #[cfg(feature = "sqlite")]
    pub fn sqlite_options(&self) -> Result<pillarbox_sqlite::SqliteOptions, Error> {
        self.sqlite(&self.database_url()?)
    }

    /// The path of the database file, if the settings name a SQLite database.
    ///
    /// # Errors
    /// As [`check_database`](Self::check_database).
    #[cfg(feature = "sqlite")]
    pub fn sqlite_file(&self) -> Result<Option<std::path::PathBuf>, Error> {
        let (kind, url) = self.database()?;
        if kind != DatabaseKind::Sqlite {
            return Ok(None);
        }
        let file = self.sqlite(&url)?.file().map_err(StartError::Store)?;
        Ok(Some(file))
    }

    #[cfg(feature = "sqlite")]
    fn sqlite(&self, url: &DatabaseUrl) -> Result<pillarbox_sqlite::SqliteOptions, Error> {
        let store = &self.store;
        let options =
            pillarbox_sqlite::SqliteOptions::new(url.as_str()).table(self.table()?).busy_timeout(store.busy_timeout);
        Ok(match store.synchronous {
            crate::Synchronous::Full => options.synchronous_full(),
            crate::Synchronous::Normal => options.synchronous_normal(),
        })
    }
}
