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

/// Runs SQL that does not name the schema.
async fn execute(db: &Db, sql: &str) {
    db.execute(&format!("SET search_path = {}; {sql}; RESET search_path", db.schema)).await;
}

async fn text(db: &Db, sql: &str) -> String {
    db.text(&sql.replace("{schema}", &db.schema)).await.unwrap_or_default()
}

#[tokio::test]
async fn after_the_way_back_to_outbox_java_its_pollers_find_every_row() {
    with_db(async |db| {
        execute(
            db,
            &format!(
                "CREATE SCHEMA {};
                 CREATE TABLE outbox_event (
                     event_id VARCHAR(36) PRIMARY KEY, event_type VARCHAR(128) NOT NULL, aggregate_type VARCHAR(64),
                     aggregate_id VARCHAR(128), tenant_id VARCHAR(64), payload JSONB NOT NULL, headers JSONB,
                     status SMALLINT NOT NULL, attempts INT NOT NULL DEFAULT 0, available_at TIMESTAMPTZ NOT NULL,
                     created_at TIMESTAMPTZ NOT NULL, done_at TIMESTAMPTZ, last_error TEXT, locked_by VARCHAR(128),
                     locked_at TIMESTAMPTZ)",
                db.schema
            ),
        )
        .await;
        let store = db.options().connect().await.expect("connects");
        store.migrate().await.expect("adopts");
        let row = "INSERT INTO outbox_event (event_id, event_type, payload, status, locked_by, available_at) VALUES";
        let rows = "('written-here', 't', '{}', 0, NULL, NULL), ('of-a-killed-node', 't', '{}', 0, 'rust-1', NULL),
             ('of-a-dead-attempt', 't', '{}', 2, '!', now() - interval '1 minute'),
             ('early', 't', '{}', 0, NULL, now() - interval '1 hour'), ('done', 't', '{}', 1, NULL, NULL),
             ('later', 't', '{}', 2, NULL, now() + interval '1 hour')";
        execute(db, &format!("{row} {rows}")).await;
        execute(db, statement(OUTBOX_JAVA, "### The way back")).await;
        // What its `claimPending` asks for, and what its decoder refuses.
        let claimed = "SELECT string_agg(event_id, ' ' ORDER BY seq) FROM {schema}.outbox_event
             WHERE status IN (0, 2) AND available_at <= now() AND created_at <= now() AND available_at >= created_at
               AND (locked_by IS NULL OR locked_at < now() - interval '5 minutes')";
        assert_eq!(text(db, claimed).await, "written-here of-a-killed-node of-a-dead-attempt early");
        let delayed = "SELECT event_id FROM {schema}.outbox_event WHERE status = 2 AND available_at > now()";
        assert_eq!(text(db, delayed).await, "later", "a delay stays");
    })
    .await;
}

#[tokio::test]
async fn records_of_namastack_move_in_their_order_and_exist_once() {
    with_db(async |db| {
        let store = db.options().table(format!("{}.shop_outbox_event", db.schema)).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        let records = "
            CREATE TABLE outbox_record (
                id VARCHAR(255) PRIMARY KEY, status VARCHAR(20) NOT NULL, record_key VARCHAR(255) NOT NULL,
                record_type VARCHAR(255) NOT NULL, payload TEXT NOT NULL, context TEXT,
                created_at TIMESTAMP WITH TIME ZONE NOT NULL, completed_at TIMESTAMP WITH TIME ZONE,
                failure_count INT NOT NULL, failure_reason VARCHAR(1000), next_retry_at TIMESTAMP WITH TIME ZONE NOT NULL,
                partition_no INTEGER NOT NULL, handler_id VARCHAR(1000) NOT NULL);
            INSERT INTO outbox_record
            SELECT id, status, key, 'com.shop.' || type, payload, context, now() - age * interval '1 second', NULL, failures,
                   reason, now(), 0, handler
            FROM (VALUES
                ('r-3', 'NEW', 'k-1', 'OrderPaid', '{\"n\":  3}', NULL, 7, 0, NULL, 'orders.book'),
                ('r-1', 'FAILED', 'k-1', 'OrderCreated', '{\"n\": 1}', '{\"trace\": \"t\"}', 9, 4, 'refused', 'orders.book'),
                ('r-2', 'NEW', 'k-1', 'OrderCreated', '{\"n\": 2}', NULL, 8, 2, 'late', 'orders.send-receipt'),
                ('r-4', 'NEW', 'k-2', 'Label', 'no JSON', NULL, 6, 0, NULL, 'orders.book'),
                ('r-5', 'NEW', 'k-3', 'OrderPaid', '{}', NULL, 5, 0, NULL, 'orders.audit'),
                ('r-0', 'COMPLETED', 'k-2', 'OrderPaid', '{}', NULL, 10, 0, NULL, 'orders.book'))
                AS r (id, status, key, type, payload, context, age, failures, reason, handler)";
        execute(db, records).await;
        for _ in 0..2 {
            execute(db, statement(NAMASTACK, "On PostgreSQL:")).await;
        }
        assert_eq!(text(db, "SELECT string_agg(id, ' ') FROM {schema}.outbox_record").await, "r-0");
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
