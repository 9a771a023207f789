//! A backup is restored into the file under running nodes.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::{BoxError, StoreErrorKind};
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::{Admin as _, Store};
use pillarbox_core::write::{Finish, insert};
use pillarbox_sqlite::{SqliteOptions, SqliteStore};
use pillarbox_sqlx::begin_immediate;
use pillarbox_testkit::FailoverDrill;
use sqlx::{AssertSqlSafe, raw_sql};
use tokio::time::sleep;

use crate::scratch::{Scratch, owner};

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_restored_under_running_nodes_loses_no_new_event() {
    let scratch = Scratch::new();
    let file = scratch.file();
    let mut stores: Vec<SqliteStore> = Vec::new();
    for table in FailoverDrill::TABLES {
        stores.push(SqliteOptions::new(&file).table(table).open().await.expect("opens"));
    }
    // One process writes through one connection.
    let writer = stores[0].clone();
    let ports: Vec<Arc<dyn Store>> = stores.iter().map(|store| Arc::new(store.clone()) as _).collect();
    let ports: [Arc<dyn Store>; 4] = ports.try_into().expect("four");
    let drill = FailoverDrill::start(ports, Duration::from_secs(6)).await.expect("starts");
    let write = async |store: &dyn Store, events: Vec<Envelope>| -> Result<(), BoxError> {
        for batch in events.chunks(100) {
            let mut transaction = begin_immediate(writer.writer()).await?;
            insert(store, &mut transaction, batch.to_vec()).await?;
            Finish::commit(transaction).await?;
        }
        Ok(())
    };

    drill.deliver(100, &write).await.expect("delivers");
    let backup = scratch.path().join("backup.db");
    let backup = backup.to_str().expect("a UTF-8 path");
    raw_sql(AssertSqlSafe(format!("VACUUM INTO '{backup}'"))).execute(writer.writer()).await.expect("backs up");
    drill.deliver(1200, &write).await.expect("delivers what is lost");
    drill.hold(200, &write).await.expect("holds what is lost");
    // A backup is older than the last renewal: one that is not is of the moment before.
    let before = leases(&writer).await;
    while leases(&writer).await.iter().any(|end| before.contains(end)) {
        sleep(Duration::from_millis(20)).await;
    }
    // By SQLite's own interface for backups, into the file that is in use.
    let program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2], timeout=20))";
    let restore = Command::new("python3").args(["-c", program, backup, &file]).output();
    let restore = restore.expect("this test needs python3: run scripts/setup");
    assert!(restore.status.success(), "{}", String::from_utf8_lossy(&restore.stderr));
    for store in &stores {
        assert_eq!(store.counts().await.expect("counts").done, 100, "what came after the backup is lost");
    }
    drill.finish(2500, &write).await.expect("delivers");
}

/// In write-ahead mode SQLite goes on writing into a file that has another name, or none.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_moved_or_replaced_while_it_is_open_is_noticed() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = owner(&store).await;
    let lease = Duration::from_secs(60);
    let renew = async || store.renew(&node, lease, None, None).await;
    let backup = scratch.path().join("backup.db");
    std::fs::copy(scratch.file(), &backup).expect("copies");
    renew().await.expect("the file is there");

    let moved = scratch.path().join("moved.db");
    std::fs::rename(scratch.file(), &moved).expect("moves");
    let error = renew().await.expect_err("there is no file");
    assert!(error.to_string().contains("was moved, removed or replaced"), "{error}");
    std::fs::rename(&backup, scratch.file()).expect("moves");
    assert_eq!(renew().await.expect_err("it is another file").kind(), StoreErrorKind::Unavailable);
    let error = store.join(&node, NodeMode::SingleNode, lease).await.expect_err("it is another file");
    assert!(error.to_string().contains("stop all its programs"), "{error}");

    std::fs::rename(&moved, scratch.file()).expect("moves back");
    renew().await.expect("it is the same file again");
}

/// Another program that writes, without what this process has in memory.
fn python(program: &str, file: &str) -> String {
    let output = Command::new("python3").args(["-c", program, file]).output();
    let output = output.expect("this test needs python3: run scripts/setup");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Somebody takes the log of a running program for leftovers.
#[cfg(unix)]
#[tokio::test]
async fn a_log_that_is_removed_while_it_is_open_is_noticed_and_not_written_over_the_file() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let node = owner(&store).await;
    let lease = Duration::from_secs(60);
    let renew = async || store.renew(&node, lease, None, None).await;
    sqlx::query("CREATE TABLE orders (id INTEGER)").execute(store.writer()).await.expect("creates");
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(store.writer()).await.expect("checkpoints");
    renew().await.expect("the log is there");

    for suffix in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", scratch.file())).expect("removes");
    }
    let write = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                 for n in range(300): db.execute('insert into orders values (?)', (n,))";
    python(write, &scratch.file());
    // The other program has taken its own log away when it ended.
    let error = renew().await.expect_err("the log is gone");
    assert!(error.to_string().contains("-wal was removed or replaced") && !error.is_temporary(), "{error}");
    let error = store.join(&node, NodeMode::SingleNode, lease).await.expect_err("the log is gone");
    assert!(error.to_string().contains("end this process"), "{error}");

    store.close().await;
    drop(store);
    let read = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1])\n\
                print(db.execute('select count(*) from orders').fetchone(), db.execute('pragma integrity_check').fetchone())";
    assert_eq!(python(read, &scratch.file()), "(300,) ('ok',)\n", "what others have written is there");
}

/// Nothing is lost where no other program has written since.
#[cfg(unix)]
#[tokio::test]
async fn rows_in_a_removed_log_get_into_the_file_if_nobody_else_has_opened_it() {
    for is_renewed in [true, false] {
        let scratch = Scratch::new();
        let store = scratch.store().await;
        let node = owner(&store).await;
        sqlx::query("CREATE TABLE orders (id INTEGER)").execute(store.writer()).await.expect("creates");
        for id in 0..300 {
            sqlx::query("INSERT INTO orders VALUES (?)").bind(id).execute(store.writer()).await.expect("inserts");
        }
        for suffix in ["-wal", "-shm"] {
            std::fs::remove_file(format!("{}{suffix}", scratch.file())).expect("removes");
        }
        if is_renewed {
            for id in 300..303 {
                // The service goes on writing, and the node asks again and again.
                let error = store.renew(&node, Duration::from_secs(60), None, None).await.expect_err("the log is gone");
                assert!(error.to_string().contains("-wal was removed or replaced"), "{error}");
                sqlx::query("INSERT INTO orders VALUES (?)").bind(id).execute(store.writer()).await.expect("inserts");
            }
            store.close().await;
        } else {
            store.close().await;
        }
        // As another program finds it, whatever this one does.
        let read = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select count(*) from orders').fetchone())";
        let count = if is_renewed { 303 } else { 300 };
        assert_eq!(python(read, &scratch.file()), format!("({count},)\n"));
    }
}

/// The service goes on writing for a while, and SQLite makes a checkpoint by itself after a thousand pages.
#[cfg(unix)]
#[tokio::test]
async fn an_old_log_is_not_written_over_the_file_by_a_checkpoint_nor_at_a_stop() {
    for is_renewed in [true, false] {
        let scratch = Scratch::new();
        let store = scratch.store().await;
        let node = owner(&store).await;
        sqlx::query("CREATE TABLE orders (id INTEGER)").execute(store.writer()).await.expect("creates");
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(store.writer()).await.expect("checkpoints");
        for suffix in ["-wal", "-shm"] {
            std::fs::remove_file(format!("{}{suffix}", scratch.file())).expect("removes");
        }
        // It stays open beside this one.
        let write = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                     for n in range(300): db.execute('insert into orders values (?)', (n,))\n\
                     print('written', flush=True); sys.stdin.read()";
        let mut other = Command::new("python3");
        let other = other.args(["-c", write, &scratch.file()]);
        let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(other.stdout.take().expect("piped")).read_line(&mut line).expect("reads");
        if is_renewed {
            store.renew(&node, Duration::from_secs(60), None, None).await.expect_err("another log is there");
            for _ in 0..3 {
                let many = "INSERT INTO orders SELECT value FROM (WITH RECURSIVE n(value) AS (SELECT 1000 UNION ALL SELECT value + 1 FROM n LIMIT 300000) SELECT value FROM n)";
                sqlx::query(many).execute(store.writer()).await.expect("inserts");
            }
        }
        store.close().await;
        drop(store);
        drop(other.stdin.take());
        assert!(other.wait().expect("ends").success());
        let read = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1])\n\
                    print(db.execute('select count(*) from orders').fetchone(), db.execute('pragma integrity_check').fetchone())";
        assert_eq!(python(read, &scratch.file()), "(300,) ('ok',)\n", "{is_renewed}");
    }
}

async fn leases(store: &SqliteStore) -> Vec<i64> {
    let tables =
        FailoverDrill::TABLES.map(|table| format!("SELECT expires_at FROM {}", table.replace("_event", "_node")));
    let sql = tables.join(" UNION ALL ");
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(store.writer()).await.expect("reads")
}
