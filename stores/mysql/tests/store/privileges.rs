//! The privileges that a guide names are enough.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use crate::support::{unique, with_db};
use mysql_async::{Opts, OptsBuilder, Pool, TxOpts};
use pillarbox_core::event::Envelope;
use pillarbox_core::write::insert;
use pillarbox_mysql::MysqlStore;

const SCHEDULING: &str = include_str!("../../../../docs/scheduling.md");

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
        // Names of users are short.
        let user: String = unique("u").chars().take(30).collect();
        db.execute(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'x'")).await;
        // The guide names the privileges on PostgreSQL first.
        let grant = SCHEDULING.split('`').rfind(|code| code.starts_with("grant ")).expect("a grant");
        let (privileges, rest) = grant.split_once(" outbox_event to ").expect("on the table");
        assert_eq!(rest, "shop");
        db.execute(&format!("{privileges} {}.outbox_event TO '{user}'@'%'", db.name)).await;
        let options = Opts::from_url(&db.url_with(&format!("{user}:x"), "")).expect("a URL");
        let pool = Pool::new(OptsBuilder::from_opts(options).prefer_socket(false));
        assert_eq!(inserted(&pool, &store).await, 1);
        assert_eq!(inserted(&pool, &store).await, 0, "one is pending");
        db.execute("UPDATE outbox_event SET status = 1").await;
        assert_eq!(inserted(&pool, &store).await, 1, "it has ended, and gives up its key");
        db.execute(&format!("DROP USER '{user}'@'%'")).await;
    })
    .await;
}
