//! The conditions of a SQLite database that harm an outbox: they are asked of a connection that only reads, and of the file system.
//!
//! The journal mode is not among them: a store that cannot have write-ahead mode is refused when it is opened. Nor is `synchronous`, which each
//! process decides for its own connections and no other can see, nor the holder of the write lock: to ask for it is to take it.

use std::io::ErrorKind;
use std::path::Path;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::examine::Severity::{Critical, Warning};
use pillarbox_core::examine::{Check, Checked, Thresholds};
use pillarbox_core::store::{Examine, operation};
use sqlx::{AssertSqlSafe, query_scalar};

use crate::SqliteStore;
use crate::database_file;
use crate::error::is_corrupt;
use crate::migrate;
use crate::sql::inbox_age;
use crate::store::Session;

/// All checks of this store.
pub const ALL: &[&Check] = &[&WAL, &DISK, &READ_ONLY, &TWO_NAMES, &CORRUPT, &NUMBERS, &INDEXES_THERE, &KEPT];

static WAL: Check = Check {
    code: "sqlite-wal-large",
    severity: Warning,
    healthy: "the write-ahead log is small",
    cause: "The write-ahead log grows: a connection reads in one transaction for long, or one after the other without a gap, so that no checkpoint can begin the log anew. Each read takes longer, and the disk fills.",
    remedy: "End the transactions that read, and run `PRAGMA wal_checkpoint(TRUNCATE)`.",
};
static DISK: Check = Check {
    code: "sqlite-disk-nearly-full",
    severity: Critical,
    healthy: "the disk has room",
    cause: "The disk of the database is nearly full: writes fail, those of the service and those of the outbox.",
    remedy: "Free some room on the host; while there is some, purge delivered events: `pillarbox purge --done-after 1d`. The file shrinks by `VACUUM` alone, which needs as much room again.",
};
static READ_ONLY: Check = Check {
    code: "sqlite-read-only",
    severity: Critical,
    healthy: "the file may be written",
    cause: "The database file or its folder is read-only: no event is recorded as delivered.",
    remedy: "Make the file and its folder writable for the user of the service; SQLite creates files beside the database.",
};
static TWO_NAMES: Check = Check {
    code: "sqlite-two-names",
    severity: Critical,
    healthy: "the file has one name",
    cause: "The database file has several names, as by hard links. Each name has a log of its own beside it: programs that use different ones do not see what the others commit, and overwrite it.",
    remedy: "Stop all programs that have it open, and leave it one name. Backups are made by `.backup`, not by links. Containers mount its directory.",
};
static CORRUPT: Check = Check {
    code: "sqlite-corrupt",
    severity: Critical,
    healthy: "what was read of the database is whole",
    cause: "The database file is damaged: it was overwritten while it was open, copied without its log, or the disk lost something.",
    remedy: "Stop all programs that have it open, and restore a backup. See docs/operating.md, SQLite files.",
};
static NUMBERS: Check = Check {
    code: "sqlite-numbers-used-up",
    severity: Critical,
    healthy: "the table has numbers for its rows",
    cause: "A row was inserted with a `seq` near the end of the numbers. SQLite counts on from the highest one, and refuses rows beyond the end with \"database or disk is full\".",
    remedy: "Delete that row once it is delivered, and set the counter back above the others.",
};
static INDEXES_THERE: Check = Check {
    code: "sqlite-index-missing",
    severity: Critical,
    healthy: "all indexes are there",
    cause: "An index was dropped: statements read the whole table in its place, or accept an event twice.",
    remedy: "Create it again.",
};
static KEPT: Check = Check {
    code: "sqlite-purge-behind",
    severity: Warning,
    healthy: "delivered events are purged",
    cause: "Rows of events that were delivered long ago are still there: no node purges, or `purge.done_after` is longer than expected.",
    remedy: "Run `pillarbox purge --done-after 7d`, and look into the log of the nodes for \"cannot be purged\".",
};

/// The indexes of the event table.
pub(crate) const INDEXES: [&str; 6] = ["ready", "due", "dead", "heads", "once", "unique"];

/// The age of the oldest delivered event, in microseconds, among the oldest rows: those that a purge begins with.
const OLDEST: &str = "SELECT CAST({now} - min(done_at) AS INTEGER) FROM (SELECT status, done_at FROM {event} WHERE created_at <= {now} + 3600000000 ORDER BY seq LIMIT 100) WHERE status = 1";

/// The last number that was given, and the newest rows with all their columns, which are read for the sake of what is damaged.
const LAST_NUMBER: &str = "SELECT (SELECT seq FROM sqlite_sequence WHERE name = ?1) WHERE (SELECT total(length(payload)) FROM (SELECT payload FROM {event} ORDER BY seq DESC LIMIT 100)) >= 0";

#[async_trait]
impl Examine for SqliteStore {
    async fn examine(&self, thresholds: &Thresholds) -> Vec<Checked> {
        // SQLite writes beside the file that a symbolic link leads to.
        let file = self.file().canonicalize().unwrap_or_else(|_| self.file().to_owned());
        let file = file.as_path();
        let (indexes, kept, numbers) = (self.indexes().await, self.kept(thresholds).await, self.numbers().await);
        let errors = || [&indexes, &kept, &numbers].into_iter().filter_map(|answer| answer.as_ref().err());
        let corrupt = match (errors().find(|error| is_corrupt(error)), errors().next()) {
            // A question that could not be answered has not read what may be damaged.
            (None, Some(error)) => CORRUPT.not_checked(error.to_string()),
            (found, _) => CORRUPT.judge(found.map(ToString::to_string)),
        };
        vec![
            wal(file, thresholds.wal_bytes),
            disk(file, thresholds.free_bytes),
            read_only(file),
            two_names(file),
            corrupt,
            numbers.unwrap_or_else(|error| NUMBERS.not_checked(error.to_string())),
            indexes.unwrap_or_else(|error| INDEXES_THERE.not_checked(error.to_string())),
            kept.unwrap_or_else(|error| KEPT.not_checked(error.to_string())),
        ]
    }
}

impl SqliteStore {
    async fn indexes(&self) -> Result<Checked, StoreError> {
        let asked = self.read(operation::EXAMINE, async |session: &mut Session<'_>| {
            let there = "SELECT name FROM sqlite_schema WHERE type = 'index'";
            query_scalar::<_, String>(there).fetch_all(&mut *session.connection).await
        });
        let there = asked.await?;
        let table = self.table();
        let wanted = INDEXES.iter().map(|index| format!("{}_{index}", table.event())).chain([inbox_age(table)]);
        let missing: Vec<String> = wanted.filter(|index| !there.contains(index)).collect();
        let evidence = (!missing.is_empty()).then(|| format!("missing: {}", missing.join(", ")));
        let creates: Vec<String> = missing.iter().filter_map(|index| migrate::create_index(table, index)).collect();
        Ok(INDEXES_THERE.judge(evidence).with_command(creates.join(" ")))
    }

    /// Asks for the number that was given last, with which a row at the end of the table is read.
    async fn numbers(&self) -> Result<Checked, StoreError> {
        let table = self.table();
        let (name, sql) = (table.to_string(), crate::sql::render(table, LAST_NUMBER));
        let asked = self.read(operation::EXAMINE, async |session: &mut Session<'_>| {
            query_scalar::<_, Option<i64>>(AssertSqlSafe(sql)).bind(&name).fetch_one(&mut *session.connection).await
        });
        let last = asked.await?.filter(|last| *last > i64::MAX / 2);
        let reset = format!("UPDATE sqlite_sequence SET seq = (SELECT max(seq) FROM {table}) WHERE name = '{table}'");
        Ok(match last {
            Some(last) => NUMBERS.found(format!("the last number is {last} of {}", i64::MAX)).with_command(reset),
            None => NUMBERS.healthy(),
        })
    }

    async fn kept(&self, thresholds: &Thresholds) -> Result<Checked, StoreError> {
        let sql = crate::sql::render(self.table(), OLDEST);
        let asked = self.read(operation::EXAMINE, async |session: &mut Session<'_>| {
            query_scalar::<_, Option<i64>>(AssertSqlSafe(sql)).fetch_one(&mut *session.connection).await
        });
        let age = asked.await?.map(crate::fetch::micros).filter(|age| *age >= thresholds.kept_after);
        let days = |age: std::time::Duration| age.as_secs() / 86_400;
        Ok(KEPT.judge(age.map(|age| format!("an event that was delivered {} days ago is still there", days(age)))))
    }
}

fn two_names(file: &Path) -> Checked {
    #[cfg(unix)]
    let links = file.metadata().map(|found| std::os::unix::fs::MetadataExt::nlink(&found));
    #[cfg(not(unix))]
    let links = Ok::<u64, std::io::Error>(1);
    match links {
        Ok(links) => TWO_NAMES.judge((links > 1).then(|| format!("{} has {links} names", file.display()))),
        Err(error) => TWO_NAMES.not_checked(error.to_string()),
    }
}

fn wal(file: &Path, limit: u64) -> Checked {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    match std::fs::metadata(&log) {
        Ok(log) => WAL.judge((log.len() >= limit).then(|| format!("{} bytes beside the database", log.len()))),
        // The last connection to close removes it.
        Err(error) if error.kind() == ErrorKind::NotFound => WAL.healthy(),
        Err(error) => WAL.not_checked(error.to_string()),
    }
}

fn read_only(file: &Path) -> Checked {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut locked = Vec::new();
    for (what, path) in [("the file", file), ("its folder", folder)] {
        let found = path.metadata().and_then(|found| database_file::writable(path).map(|()| found));
        let problem = match found.map_err(|error| (error.kind(), error)) {
            Ok(found) if !found.permissions().readonly() => continue,
            Ok(_) => "is read-only",
            Err((ErrorKind::ReadOnlyFilesystem, _)) => "is on a read-only file system",
            Err((ErrorKind::PermissionDenied, _)) => "is read-only for the user of this process",
            Err((_, error)) => return READ_ONLY.not_checked(error.to_string()),
        };
        locked.push(format!("{what} {} {problem}", path.display()));
    }
    READ_ONLY.judge((!locked.is_empty()).then(|| locked.join("; ")))
}

#[cfg(unix)]
fn disk(file: &Path, limit: u64) -> Checked {
    match rustix::fs::statvfs(file) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            DISK.judge((free < limit).then(|| format!("{free} bytes are left")))
        }
        Err(error) => DISK.not_checked(error.to_string()),
    }
}

#[cfg(not(unix))]
fn disk(_: &Path, _: u64) -> Checked {
    DISK.not_checked("this system is not asked for the room on its disk")
}
