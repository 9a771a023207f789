//! The privileges that a guide names are enough.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use crate::support::{Db, unique, with_db};
use mysql_async::{Opts, OptsBuilder, Pool, TxOpts};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::event::Envelope;
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_core::write::insert;
use pillarbox_engine::run::Outbox;
use pillarbox_mysql::{MysqlOptions, MysqlStore};

const RELAY: &str = include_str!("../../../../docs/relay.md");
const SCHEDULING: &str = include_str!("../../../../docs/scheduling.md");

/// Runs a test as a user without privileges, whose name and URL it is given.
async fn with_user(db: &Db, test: impl AsyncFnOnce(&str, &str)) {
    // Names of users are short.
    let user: String = unique("u").chars().take(30).collect();
    db.execute(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'x'")).await;
    test(&user, &db.url_with(&format!("{user}:x"), "")).await;
    db.execute(&format!("DROP USER '{user}'@'%'")).await;
}

fn pool(url: &str) -> Pool {
    Pool::new(OptsBuilder::from_opts(Opts::from_url(url).expect("a URL")).prefer_socket(false))
}

/// The number of rows that a write of an event with a unique key inserts.
async fn inserted(pool: &Pool, store: &MysqlStore) -> usize {
    let event = Envelope::builder("report.wanted").unique_key("report:7").payload_json("{}").build().expect("valid");
    let mut transaction = pool.start_transaction(TxOpts::default()).await.expect("begins");
    let seqs = insert(store, &mut transaction, vec![event]).await.expect("the privileges are enough");
    transaction.commit().await.expect("commits");
    seqs.len()
}

#[tokio::test]
async fn a_writer_of_unique_keys_needs_what_the_guide_says() {
    with_db(async |db| {
        let store = db.store().await;
        with_user(db, async |user, url| {
            // The guide names the privileges on PostgreSQL first.
            let grant = SCHEDULING.split('`').rfind(|code| code.starts_with("grant ")).expect("a grant");
            let (privileges, rest) = grant.split_once(" outbox_event to ").expect("on the table");
            assert_eq!(rest, "shop");
            db.execute(&format!("{privileges} {}.outbox_event TO '{user}'@'%'", db.name)).await;
            let pool = pool(url);
            assert_eq!(inserted(&pool, &store).await, 1);
            assert_eq!(inserted(&pool, &store).await, 0, "one is pending");
            db.execute("UPDATE outbox_event SET status = 1").await;
            assert_eq!(inserted(&pool, &store).await, 1, "it has ended, and gives up its key");
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_program_that_only_writes_starts_with_what_the_guide_says() {
    with_db(async |db| {
        let store = db.store().await;
        with_user(db, async |user, url| {
            // The guide has those on PostgreSQL in a block before.
            let (_, guide) =
                RELAY.split_once("So the program that writes events needs:").expect("the guide has the line");
            let (_, guide) = guide.split_once("```sql mysql\n").expect("a block");
            let (block, _) = guide.split_once("```").expect("it ends");
            for grant in block.lines().filter_map(|line| line.strip_suffix(" to 'store'@'%';")) {
                let (privileges, table) = grant.split_once(" on ").expect("on a table");
                db.execute(&format!("{privileges} ON {}.{table} TO '{user}'@'%'", db.name)).await;
            }
            let theirs = MysqlOptions::parse(url).expect("a URL").connect().await.expect("connects");
            let outbox = Outbox::writer_only(theirs).start().await.expect("the privileges are enough");
            let mut transaction = pool(url).start_transaction(TxOpts::default()).await.expect("begins");
            let event =
                Envelope::builder("order.placed").unique_key("order:7").payload_json("{}").build().expect("valid");
            outbox.write(&mut transaction, event).await.expect("writes");
            transaction.commit().await.expect("commits");
            outbox.shutdown().await;
            assert_eq!(store.counts().await.expect("counts").new, 1);
        })
        .await;
    })
    .await;
}

/// The catalog shows a user only tables on which it has a privilege.
#[tokio::test]
async fn a_privilege_that_was_not_granted_on_a_new_table_is_no_lost_table() {
    with_db(async |db| {
        db.store().await;
        with_user(db, async |user, url| {
            for table in ["event", "node", "partition", "migration"] {
                let grant =
                    format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {}.outbox_{table} TO '{user}'@'%'", db.name);
                db.execute(&grant).await;
            }
            let theirs = MysqlOptions::parse(url).expect("a URL").connect().await.expect("connects");
            let error = theirs.check().await.expect_err("it lacks privileges");
            let text = error.to_string();
            assert_eq!(error.kind(), StoreErrorKind::Denied, "{text}");
            for part in ["no privilege", "outbox_inbox", "outbox_pause", "outbox_audit", "grant", "migrate"] {
                assert!(text.contains(part), "{part} is missing in: {text}");
            }
            assert!(!text.contains("outbox_node"), "{text}");
        })
        .await;
    })
    .await;
}
