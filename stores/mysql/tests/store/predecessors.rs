//! The statements of the migration guides do what the guides say, on the tables of the predecessors.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use crate::support::{Db, fetch, with_db};
use pillarbox_core::event::Payload;
use pillarbox_core::store::{Admin as _, Counts, FetchedRow, Row, Store as _};

const OUTBOX_JAVA: &str = include_str!("../../../../docs/migrating-from-outbox-java.md");
const NAMASTACK: &str = include_str!("../../../../docs/migrating-from-namastack.md");

/// The first SQL block of a guide below `line`.
fn statement(guide: &'static str, line: &str) -> &'static str {
    let below = guide.split_once(line).expect("the guide has the line").1;
    below.split_once("```sql\n").and_then(|(_, block)| block.split_once("```")).expect("a block of SQL").0
}

async fn text(db: &Db, sql: &str) -> String {
    db.text(sql).await.unwrap_or_default()
}

#[tokio::test]
async fn after_the_way_back_to_outbox_java_its_pollers_find_every_row() {
    with_db(async |db| {
        db.execute(
            "CREATE TABLE outbox_event (
                 event_id VARCHAR(36) PRIMARY KEY, event_type VARCHAR(128) NOT NULL, aggregate_type VARCHAR(64),
                 aggregate_id VARCHAR(128), tenant_id VARCHAR(64), payload JSON NOT NULL, headers JSON,
                 status TINYINT NOT NULL, attempts INT NOT NULL DEFAULT 0, available_at DATETIME(6) NOT NULL,
                 created_at DATETIME(6) NOT NULL, done_at DATETIME(6), last_error TEXT, locked_by VARCHAR(128),
                 locked_at DATETIME(6))",
        )
        .await;
        let store = db.options().connect().await.expect("connects");
        store.migrate().await.expect("adopts");
        let row = "INSERT INTO outbox_event (event_id, event_type, payload, status, locked_by, available_at) VALUES";
        let rows = "('written-here', 't', '{}', 0, NULL, NULL), ('of-a-killed-node', 't', '{}', 0, 'rust-1', NULL),
             ('of-a-dead-attempt', 't', '{}', 2, '!', utc_timestamp(6) - INTERVAL 1 MINUTE),
             ('early', 't', '{}', 0, NULL, utc_timestamp(6) - INTERVAL 1 HOUR), ('done', 't', '{}', 1, NULL, NULL),
             ('later', 't', '{}', 2, NULL, utc_timestamp(6) + INTERVAL 1 HOUR)";
        db.execute(&format!("{row} {rows}")).await;
        db.execute(statement(OUTBOX_JAVA, "### The way back")).await;
        // What its `claimPending` asks for, and what its decoder refuses.
        let claimed = "SELECT group_concat(event_id ORDER BY seq SEPARATOR ' ') FROM outbox_event
             WHERE status IN (0, 2) AND available_at <= utc_timestamp(6) AND created_at <= utc_timestamp(6)
               AND available_at >= created_at
               AND (locked_by IS NULL OR locked_at < utc_timestamp(6) - INTERVAL 5 MINUTE)";
        assert_eq!(text(db, claimed).await, "written-here of-a-killed-node of-a-dead-attempt early");
        let delayed = "SELECT event_id FROM outbox_event WHERE status = 2 AND available_at > utc_timestamp(6)";
        assert_eq!(text(db, delayed).await, "later", "a delay stays");
    })
    .await;
}

#[tokio::test]
async fn records_of_namastack_move_in_their_order_and_exist_once() {
    with_db(async |db| {
        let store = db.options().table("shop_outbox_event").connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        // As its schema for MySQL and MariaDB has it, whose times are whole seconds.
        let table = "CREATE TABLE outbox_record (
                id VARCHAR(255) NOT NULL PRIMARY KEY, status VARCHAR(20) NOT NULL, record_key VARCHAR(255) NOT NULL,
                record_type VARCHAR(255) NOT NULL,
                payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,
                context LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NULL,
                created_at TIMESTAMP NOT NULL, completed_at TIMESTAMP NULL, failure_count INT NOT NULL,
                failure_reason VARCHAR(1000) NULL, next_retry_at TIMESTAMP NOT NULL, partition_no INT NOT NULL,
                handler_id VARCHAR(1000) NOT NULL) ENGINE = InnoDB";
        db.execute(table).await;
        let records = "INSERT INTO outbox_record VALUES
            ('r-3', 'NEW', 'k-1', 'com.shop.OrderPaid', '{\\\"n\\\":  3}', NULL, now() - INTERVAL 7 SECOND, NULL, 0, NULL, now(), 0, 'orders.book'),
            ('r-1', 'FAILED', 'k-1', 'com.shop.OrderCreated', '{}', '{}', now() - INTERVAL 9 SECOND, NULL, 4, 'refused', now(), 0, 'orders.book'),
            ('r-2', 'NEW', 'k-1', 'com.shop.OrderCreated', '{}', NULL, now() - INTERVAL 8 SECOND, NULL, 2, 'late', now(), 0, 'orders.send-receipt'),
            ('r-4', 'NEW', 'k-2', 'com.shop.Label', 'no JSON', NULL, now() - INTERVAL 6 SECOND, NULL, 0, NULL, now(), 0, 'orders.book'),
            ('r-5', 'NEW', 'k-3', 'com.shop.OrderPaid', '{}', NULL, now() - INTERVAL 5 SECOND, NULL, 0, NULL, now(), 0, 'orders.audit'),
            ('r-0', 'COMPLETED', 'k-2', 'com.shop.OrderPaid', '{}', NULL, now() - INTERVAL 10 SECOND, NULL, 0, NULL, now(), 0, 'orders.book')";
        db.execute(records).await;
        for _ in 0..2 {
            db.execute(statement(NAMASTACK, "On MySQL and MariaDB:")).await;
        }
        assert_eq!(text(db, "SELECT group_concat(id) FROM outbox_record").await, "r-0");
        assert_eq!(store.counts().await.expect("counts"), Counts { new: 4, done: 0, retry: 0, dead: 1, cancelled: 0, unknown: 0 });
        let rows = store.fetch(&fetch(10)).await.expect("fetches").rows.into_iter().map(event).collect::<Vec<_>>();
        let order: Vec<_> = rows.iter().map(|row| (row.event.id().as_str(), row.handler.as_deref(), row.attempts)).collect();
        let moved = [("r-2", "mailer"), ("r-3", "ledger"), ("r-4", "ledger"), ("r-5", "orders.audit")];
        assert_eq!(order, moved.map(|(event, handler)| (event, Some(handler), 0)));
        assert_eq!(*rows[1].event.payload(), Payload::Json("{\"n\":  3}".into()));
        assert_eq!((rows[1].event.event_type(), rows[1].event.key()), ("order.paid", Some("k-1")));
        let label = Payload::Binary { content_type: "text/plain".into(), bytes: "no JSON".as_bytes().into() };
        assert_eq!(*rows[2].event.payload(), label);
        let dead = store.records("r-1").await.expect("reads").pop().expect("is there");
        assert_eq!((dead.status, dead.attempts, dead.last_error.as_deref()), (3, 4, Some("refused")));
    })
    .await;
}

fn event(row: FetchedRow) -> Row {
    match row {
        FetchedRow::Row(row) => row,
        FetchedRow::Broken(broken) => panic!("{broken:?}"),
    }
}
