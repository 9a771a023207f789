//! The engine's sessions make their own settings, whatever the server or a program gives to each of its sessions: here by
//! the driver's `setup`, which is to a session as `init_connect` and the global variables of a server are.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{self, Db, LEASE, done, fetch, with_db};
use mysql_async::{Opts, OptsBuilder};
use pillarbox_core::event::{Envelope, Payload};
use pillarbox_core::ownership::{Fence, Renewal};
use pillarbox_core::row::Change;
use pillarbox_core::store::{Admin as _, FetchedRow, Purge, Purgeable, Store as _};
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use pillarbox_testkit::rows_at;

/// A store of one connection, which begins with a statement of somebody else's.
async fn store_after(db: &Db, setup: &str) -> MysqlStore {
    let options = Opts::from_url(&db.url_with("", "")).expect("a URL");
    let options = OptsBuilder::from_opts(options).prefer_socket(false).setup(vec![setup]);
    let store = MysqlOptions::from_opts(options).pool_size(1).connect().await.expect("connects");
    store.migrate().await.expect("migrates");
    store
}

/// As with `skip-character-set-client-handshake`, or with `init_connect`.
#[tokio::test]
async fn text_is_read_as_it_was_written_whatever_the_character_set_was() {
    const TEXT: &str = "x😀é";
    for setup in ["SET NAMES latin1", "SET NAMES utf8mb3"] {
        with_db(async |db| {
            let store = store_after(db, setup).await;
            let json = format!("{{\"text\": \"{TEXT}\"}}");
            let event = Envelope::builder("order.placed").key(TEXT).header("note", TEXT).payload_json(&*json).build();
            let written = db.write(&store, vec![event.expect("valid")]).await;
            let fetched = store.fetch(&fetch(10)).await.expect("fetches");
            let [FetchedRow::Row(row)] = &fetched.rows[..] else { panic!("{setup}: {fetched:?}") };
            assert_eq!(*row.event.payload(), Payload::Json(json.into()), "{setup}");
            assert_eq!((row.event.key(), row.event.headers().get("note")), (Some(TEXT), Some(TEXT)), "{setup}");

            let owner = support::owner(&store).await;
            let mut verdicts = done(&store, &written).await;
            let error = Some(TEXT.to_owned());
            verdicts[0].change = Change::Retry { attempts: 1, delay: Duration::from_secs(60), error };
            assert_eq!(store.settle(&owner, Fence::Table, &verdicts).await.expect("settles"), [0_i64; 0]);
            let record = store.record(written[0]).await.expect("reads").expect("is there");
            assert_eq!(record.last_error.as_deref(), Some(TEXT), "{setup}");
            assert_eq!(record.failures.first().map(|failed| &*failed.error), Some(TEXT), "{setup}");
        })
        .await;
    }
}

#[tokio::test]
async fn each_statement_commits_by_itself_whatever_the_session_was_told() {
    for setup in ["SET autocommit = 0", "SET completion_type = 1"] {
        with_db(async |db| {
            let store = store_after(db, setup).await;
            db.execute("INSERT INTO outbox_event (seq, event_id, event_type, payload) VALUES (1, 'e', 't', '{}')")
                .await;
            let owner = support::owner(&store).await;
            // It comes after a transaction on the same connection.
            let row = rows_at(&store, &[1]).await.expect("reads").remove(0);
            store.assign_partitions(&[(row, 7)]).await.expect("assigns");
            assert_eq!(db.column("`partition`", 1).await.as_deref(), Some("7"), "{setup}");

            db.execute("UPDATE outbox_node SET expires_at = UTC_TIMESTAMP(6)").await;
            let renewed = store.renew(&owner, LEASE, None, None).await.expect("renews");
            assert!(matches!(renewed, Renewal::Renewed { .. }), "{setup}: {renewed:?}");
            let lives = "SELECT CAST(expires_at > UTC_TIMESTAMP(6) + INTERVAL 60 SECOND AS CHAR) FROM outbox_node";
            assert_eq!(db.text(lives).await.as_deref(), Some("1"), "{setup}: the others do not see it");
        })
        .await;
    }
}

/// Safe updates refuse those of whole tables.
#[tokio::test]
async fn a_node_takes_the_table_over_whatever_updates_the_session_allowed() {
    with_db(async |db| {
        let store = store_after(db, "SET sql_safe_updates = 1").await;
        let owner = support::owner(&store).await;
        store.leave(&owner).await.expect("leaves");
        support::owner(&store).await;
    })
    .await;
}

/// Servers look for a table's second name in a DELETE in the database of the connection.
#[tokio::test]
async fn a_url_without_a_database_serves_the_tables_of_a_named_one() {
    with_db(async |db| {
        db.store().await;
        let url = db.url_with("", "").replace(&format!("/{}?", db.name), "/?");
        let options = MysqlOptions::parse(&url).expect("a URL").table(format!("{}.outbox_event", db.name));
        let store = options.connect().await.expect("connects");
        let node = support::owner(&store).await;
        let seqs = db.write(&store, support::events(3)).await;
        let refused = store.settle(&node, Fence::Table, &done(&store, &seqs).await).await.expect("settles");
        assert!(refused.is_empty());
        let purge = Purge::new(Purgeable::Done, Duration::ZERO, 100);
        assert_eq!(store.purge(&purge).await.expect("purges").removed, 3);
    })
    .await;
}
