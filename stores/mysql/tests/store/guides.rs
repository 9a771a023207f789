//! The statements of the guides for MySQL and MariaDB do what the guides say.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{Db, with_db};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Opts, OptsBuilder};
use pillarbox_core::store::{Admin as _, Store as _};

const CONTRACT: &str = include_str!("../../../../docs/sql-contract.md");
const INBOX: &str = include_str!("../../../../docs/inbox.md");
/// A duplicate of a unique key.
const DUPLICATE: u16 = 1062;

/// The block for these databases with this in it.
fn block(guide: &'static str, part: &str) -> &'static str {
    let mut blocks = guide.split("```sql mysql\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
    blocks.find(|block| block.contains(part)).expect("the guide has the block")
}

/// A connection that tells how many rows a change has changed, or found.
async fn connect(db: &Db, found_rows: bool) -> Conn {
    let opts = Opts::from_url(&db.url_with("", "")).expect("a URL");
    let opts = OptsBuilder::from_opts(opts).prefer_socket(false).client_found_rows(found_rows);
    Conn::new(opts).await.expect("connects")
}

#[tokio::test]
async fn operators_that_change_states_tell_the_nodes_by_one_row() {
    with_db(async |db| {
        let store = db.store().await;
        let mut connection = connect(db, true).await;
        connection.query_drop(block(CONTRACT, "interventions")).await.expect("runs");
        assert_eq!(connection.affected_rows(), 1);
        connection.disconnect().await.expect("disconnects");
        assert_eq!(store.interventions().await.expect("reads").count, 1);
        let told = "SELECT CAST(SUM(interventions) AS CHAR) FROM outbox_partition";
        assert_eq!(db.text(told).await.as_deref(), Some("1"));
    })
    .await;
}

#[tokio::test]
async fn a_message_is_recorded_once_and_nothing_else_counts_as_one_that_is_there() {
    for found_rows in [false, true] {
        with_db(async |db| {
            db.store().await;
            let mut connection = connect(db, found_rows).await;
            let insert = block(INBOX, "outbox_inbox");
            for expected in [1, 2, 2] {
                connection.query_drop(insert).await.expect("runs");
                assert_eq!(connection.affected_rows(), expected, "found rows: {found_rows}");
            }
            for value in ["NULL", "repeat('x', 300)", "repeat('x', 300)"] {
                let refused = connection.query_drop(insert.replace("'m-1'", value)).await;
                assert!(matches!(refused, Err(Error::Server(_))), "{value}: {refused:?}");
            }
            connection.disconnect().await.expect("disconnects");
            let ids = "SELECT GROUP_CONCAT(CONVERT(message_id USING utf8mb4)) FROM outbox_inbox";
            assert_eq!(db.text(ids).await.as_deref(), Some("m-1"));
        })
        .await;
    }
}

/// Begins a transaction and writes an event with a unique key as the guide says; true if it was written.
async fn write(connection: &mut Conn) -> Result<bool, Error> {
    let (look, change) =
        block(CONTRACT, "unique_key").split_once("-- If @pending is 1, stop").expect("the guide says so");
    connection.query_drop("START TRANSACTION").await?;
    connection.query_drop(look).await?;
    let pending: Option<Option<u8>> = connection.query_first("SELECT @pending").await?;
    if pending.flatten() == Some(1) {
        return Ok(false);
    }
    connection.query_drop(format!("-- {change}")).await?;
    Ok(true)
}

#[tokio::test]
async fn an_event_with_a_unique_key_is_pending_once_and_locked_by_no_writer() {
    with_db(async |db| {
        let store = db.store().await;
        let mut connection = connect(db, false).await;
        let ended = "SET innodb_lock_wait_timeout = 1; UPDATE outbox_event SET status = 1 WHERE status = 0";
        for events in [1, 2, 3] {
            assert!(write(&mut connection).await.expect("runs"), "none is pending");
            connection.query_drop("COMMIT").await.expect("commits");
            assert!(!write(&mut connection).await.expect("runs"), "one is pending");
            // The writer's transaction is open: who delivers the pending row does not wait for it.
            db.execute(ended).await;
            connection.query_drop("COMMIT").await.expect("commits");
            assert_eq!(store.counts().await.expect("counts").done, events);
        }
        connection.disconnect().await.expect("disconnects");
        let keys = "SELECT GROUP_CONCAT(event_type) FROM outbox_event WHERE unique_key = 'report:7'";
        assert_eq!(db.text(keys).await.as_deref(), Some("report.wanted"), "the last one has the key");
    })
    .await;
}

#[tokio::test]
async fn a_writer_that_meets_another_ones_row_begins_again() {
    with_db(async |db| {
        let store = db.store().await;
        let (mut first, mut second) = (connect(db, false).await, connect(db, false).await);
        for events in [1, 2] {
            assert!(write(&mut first).await.expect("runs"));
            let (met, ()) = tokio::join!(write(&mut second), async {
                // The second one waits for the first meanwhile; if it did not yet, it would find the row by its `select`.
                tokio::time::sleep(Duration::from_millis(500)).await;
                first.query_drop("COMMIT").await.expect("commits");
            });
            match met {
                Err(Error::Server(error)) => {
                    assert_eq!(error.code, DUPLICATE, "{error}");
                    assert!(error.message.contains("pillarbox_unique_key"), "{error}");
                }
                other => panic!("it did not meet the row: {other:?}"),
            }
            second.query_drop("ROLLBACK").await.expect("rolls back");
            assert!(!write(&mut second).await.expect("runs"), "it finds the row now");
            second.query_drop("ROLLBACK").await.expect("rolls back");
            assert_eq!(store.counts().await.expect("counts").new, 1);
            db.execute("UPDATE outbox_event SET status = 1").await;
            assert_eq!(store.counts().await.expect("counts").done, events);
        }
        first.disconnect().await.expect("disconnects");
        second.disconnect().await.expect("disconnects");
    })
    .await;
}
