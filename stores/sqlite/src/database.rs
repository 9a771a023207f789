use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, SqlitePool, query_as, query_scalar};

use crate::SqliteOptions;
use crate::log_files::LogFiles;

/// Reads never wait for one another, but each of their connections is a thread and a cache.
pub(crate) const READERS: u32 = 3;

/// The time for which SQLite itself waits for a lock on the write connection. Short, because it sleeps ever longer between its
/// attempts and starves beside a busy writer; `begin_immediate` waits around it.
const LOCK_WAIT: Duration = Duration::from_millis(2);

/// The number of rows that the connection's thread reads ahead of the caller. They come on top of the bytes that a fetch may bring.
const ROWS_AHEAD: usize = 256;

/// The size to which SQLite cuts a write-ahead log that a large transaction has left, when it begins the log anew: 64 MiB.
const LOG_BYTES: &str = "67108864";

/// The one connection that writes: a pool of one hands it out in the order of the requests.
///
/// It is never reaped and not tested before use, so that a dropped request loses neither its connection nor its caches.
pub(crate) fn writer(file: &Path, options: &SqliteOptions, log_files: Arc<LogFiles>) -> SqlitePool {
    let connect = connect_options(file, options)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(options.synchronous)
        .pragma("journal_size_limit", LOG_BYTES)
        // The pages that a savepoint may have to restore are kept in memory: a container often has no writable folder for temporary files.
        .pragma("temp_store", "MEMORY")
        .busy_timeout(LOCK_WAIT);
    SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .acquire_timeout(options.busy_timeout)
        .after_connect(move |connection, _| {
            let log_files = Arc::clone(&log_files);
            Box::pin(async move {
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").await?;
                log_files.note();
                Ok(())
            })
        })
        .after_release(|connection, _| {
            Box::pin(async move {
                // Ends a transaction that was begun by the text `BEGIN` and forgotten; there being none is the usual case.
                let _ = connection.execute("ROLLBACK").await;
                // One that SQLite ended by itself, on a full disk say, is still counted; only a new connection counts right.
                Ok(!connection.is_in_transaction())
            })
        })
        .connect_lazy_with(connect)
}

/// The connections that read. In write-ahead mode they neither wait for the writer nor make it wait.
pub(crate) fn readers(file: &Path, options: &SqliteOptions, number: u32) -> SqlitePool {
    let connect = connect_options(file, options).create_if_missing(false).busy_timeout(options.busy_timeout);
    let connect = if options.connect_is_given { connect.journal_mode(SqliteJournalMode::Wal) } else { connect };
    let connect = connect.pragma("query_only", "ON");
    SqlitePoolOptions::new()
        .max_connections(number)
        // The task that would close idle connections counts them while others take them, and with sqlx 0.9.0 it may see fewer than none: it
        // then takes a thread of the runtime for ever.
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .acquire_timeout(options.busy_timeout)
        .connect_lazy_with(connect)
}

/// A database as its programs have left it.
pub(crate) struct Found {
    pub(crate) encoding: String,
    pub(crate) journal_mode: String,
    pub(crate) has_tables: bool,
    pub(crate) has_outbox: bool,
}

/// Looks at a database file, and changes nothing.
pub(crate) async fn look(file: &Path, options: &SqliteOptions, table: &str) -> sqlx::Result<Found> {
    let connect = connect_options(file, options).create_if_missing(false).busy_timeout(options.busy_timeout);
    let mut connection = connect.connect().await?;
    let journal_mode = query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await?;
    let encoding = query_scalar("PRAGMA encoding").fetch_one(&mut connection).await?;
    let tables = "SELECT count(*) > 0, count(*) FILTER (WHERE name = ?1 COLLATE NOCASE) > 0 FROM sqlite_master";
    let (has_tables, has_outbox) = query_as(tables).bind(table).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(Found { encoding, journal_mode, has_tables, has_outbox })
}

fn connect_options(file: &Path, options: &SqliteOptions) -> SqliteConnectOptions {
    // An engine's statements in the service's debug log would drown its own.
    options.connect.clone().filename(file).row_buffer_size(ROWS_AHEAD).disable_statement_logging()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_task_of_a_pool_looks_for_idle_connections() {
        let (file, options) = (Path::new("shop.db"), SqliteOptions::new("shop.db"));
        let pools = [writer(file, &options, Arc::new(LogFiles::of(file))), readers(file, &options, READERS)];
        for pool in pools {
            assert_eq!((pool.options().get_idle_timeout(), pool.options().get_max_lifetime()), (None, None));
        }
    }
}
