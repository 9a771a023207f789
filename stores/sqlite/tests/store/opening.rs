use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_sqlite::{SqliteOptions, SqliteStore};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::scratch::{Scratch, pending};

#[tokio::test]
async fn a_missing_directory_is_named() {
    let scratch = Scratch::new();
    let file = scratch.path().join("nowhere/shop.db");
    let error = SqliteStore::open(file.to_str().expect("a UTF-8 path")).await.expect_err("there is no directory");
    assert_eq!(error.kind(), StoreErrorKind::Config);
    assert!(error.to_string().contains("nowhere`; create it"), "{error}");
}

#[tokio::test]
async fn files_that_are_no_database_are_refused() {
    let scratch = Scratch::new();
    let directory = SqliteStore::open(scratch.path().to_str().expect("a UTF-8 path")).await.expect_err("a directory");
    assert!(directory.to_string().contains("is a directory"), "{directory}");
    std::fs::write(scratch.file(), "a text file that is long enough to be taken for a database".repeat(20))
        .expect("writes");
    let text = SqliteStore::open(&scratch.file()).await.expect_err("a text file");
    assert!(text.to_string().contains("another kind") && !text.is_temporary(), "{text}");
}

#[tokio::test]
async fn options_that_cannot_be_used_are_refused() {
    let scratch = Scratch::new();
    for table in ["billing.outbox_event", "sqlite_outbox", "1st", "a-b"] {
        let error = SqliteOptions::new(scratch.file()).table(table).open().await.expect_err(table);
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
        assert!(error.to_string().contains("table"), "{error}");
    }
    assert!(!std::fs::exists(scratch.file()).expect("readable"), "nothing was created");
}

#[tokio::test]
async fn a_url_opens_the_file_it_names() {
    let scratch = Scratch::new();
    let store = SqliteStore::open(&format!("sqlite://{}?mode=rwc", scratch.file())).await.expect("opens");
    assert_eq!(store.info().address, scratch.file());
    store.migrate().await.expect("migrates");
    assert!(pending(&scratch.store().await).await.is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_database_is_its_owners_alone_and_an_old_one_is_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new();
    let mode = |suffix: &str| {
        let file = format!("{}{suffix}", scratch.file());
        std::fs::metadata(&file).expect(&file).permissions().mode() & 0o777
    };
    let store = scratch.store().await;
    assert_eq!(["", "-wal", "-shm"].map(mode), [0o600; 3]);
    store.close().await;
    std::fs::set_permissions(scratch.file(), PermissionsExt::from_mode(0o640)).expect("changes");
    let store = scratch.store().await;
    assert_eq!(store.counts().await.expect("counts").new, 0);
    assert_eq!(["", "-wal"].map(mode), [0o640; 2]);
}

/// A link to a place for a database that is still to be created, and a link to that.
#[cfg(unix)]
#[tokio::test]
async fn a_new_database_behind_a_link_is_its_owners_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let scratch = Scratch::new();
    let folder = scratch.path().join("data");
    std::fs::create_dir(&folder).expect("a folder");
    symlink("data/shop.db", scratch.path().join("link.db")).expect("a link");
    symlink(scratch.path().join("link.db"), scratch.file()).expect("a link to a link");
    let store = scratch.store().await;
    assert_eq!(store.counts().await.expect("counts").new, 0);
    for name in ["shop.db", "shop.db-wal", "shop.db-shm"] {
        let file = folder.join(name).metadata().expect(name);
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let nowhere = scratch.path().join("circle.db");
    symlink(&nowhere, &nowhere).expect("a link to itself");
    SqliteOptions::new(nowhere.to_string_lossy()).open().await.expect_err("it leads nowhere");
}

#[test]
fn passwords_stay_secret() {
    let connect = SqliteConnectOptions::new().filename("shop.db").pragma("key", "'s3cr3t'");
    let options = SqliteOptions::from_connect_options(connect);
    for options in [options, SqliteOptions::new("sqlite://shop.db?key=s3cr3t")] {
        let text = format!("{options:?}");
        assert!(!text.contains("s3cr3t") && text.contains("outbox_event"), "{text}");
    }
}

#[tokio::test]
async fn a_store_is_made_from_sqlxs_own_options() {
    let scratch = Scratch::new();
    // An option that no path can say, and that each connection shows; and one that is the store's to say.
    let connect = SqliteConnectOptions::new().filename(scratch.file()).pragma("cache_size", "-4321");
    let connect = connect.journal_mode(SqliteJournalMode::Delete);
    let store = SqliteOptions::from_connect_options(connect).open().await.expect("opens");
    store.migrate().await.expect("migrates");
    assert_eq!(store.info().address, scratch.file());
    let size: i64 = sqlx::query_scalar("PRAGMA cache_size").fetch_one(store.writer()).await.expect("answers");
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(store.writer()).await.expect("answers");
    assert_eq!((size, mode.as_str()), (-4321, "wal"));
    assert!(pending(&store).await.is_empty());
    let memory = SqliteOptions::from_connect_options(SqliteConnectOptions::new().in_memory(true)).open().await;
    assert!(memory.expect_err("it is in memory").to_string().contains("in-memory store"));
}

/// The name of a file may be mistyped, and the file be that of another program.
#[tokio::test]
async fn a_database_without_an_outbox_keeps_its_journal_mode_until_tables_are_made_in_it() {
    let scratch = Scratch::new();
    let others = SqliteConnectOptions::new().filename(scratch.file()).create_if_missing(true);
    let mut others = others.connect().await.expect("opens");
    others.execute("CREATE TABLE notes (text TEXT)").await.expect("creates");
    let mode = async |connection: &mut sqlx::SqliteConnection| -> String {
        sqlx::query_scalar("PRAGMA journal_mode").fetch_one(connection).await.expect("answers")
    };
    let store = SqliteStore::open(&scratch.file()).await.expect("opens");
    let error = store.check().await.expect_err("there are no tables");
    assert_eq!((error.kind(), mode(&mut others).await.as_str()), (StoreErrorKind::Schema, "delete"));
    assert!(!std::fs::exists(format!("{}-wal", scratch.file())).expect("readable"));
    store.migrate().await.expect("migrates");
    others.execute("SELECT text FROM notes").await.expect("reads");
    assert_eq!(mode(&mut others).await, "wal");
}

#[cfg(unix)]
#[tokio::test]
async fn a_path_that_is_no_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;

    let scratch = Scratch::new();
    let file = scratch.path().join(std::ffi::OsStr::from_bytes(b"shop-\xff.db"));
    let options = SqliteOptions::from_connect_options(SqliteConnectOptions::new().filename(file));
    let error = options.open().await.expect_err("SQLite takes no such path");
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    assert!(error.to_string().contains("is not UTF-8"), "{error}");
    assert!(scratch.path().read_dir().expect("readable").next().is_none(), "nothing was created");
}

#[tokio::test]
async fn a_database_that_keeps_text_in_another_encoding_is_refused() {
    for encoding in ["UTF-16le", "UTF-16be"] {
        let scratch = Scratch::new();
        let connect = SqliteConnectOptions::new().filename(scratch.file()).create_if_missing(true);
        let mut service = connect.pragma("encoding", format!("'{encoding}'")).connect().await.expect("connects");
        service.execute("CREATE TABLE t (a)").await.expect("creates");
        service.close().await.expect("closes");
        let error = SqliteStore::open(&scratch.file()).await.expect_err(encoding);
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
        assert!(error.to_string().contains(&format!("keeps text in {encoding} and needs UTF-8")), "{error}");
    }
}

/// SQLite would keep it in a temporary file, for which many containers have no place.
#[tokio::test]
async fn pages_that_a_savepoint_may_restore_are_kept_in_memory() {
    const MEMORY: i64 = 2;
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let kept: i64 = sqlx::query_scalar("PRAGMA temp_store").fetch_one(store.writer()).await.expect("answers");
    assert_eq!(kept, MEMORY);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    store.close().await;
    store.close().await;
    let error = store.counts().await.expect_err("it is closed");
    assert!(error.to_string().contains("closed") && !error.is_temporary(), "{error}");
}
