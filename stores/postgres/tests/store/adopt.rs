//! An outbox-java table becomes ours in place, and anything else of its name is left alone.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::{Db, LEASE, NONE, done, events, fetch, node, owner, seqs, unique, with_db};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::event::Payload;
use pillarbox_core::ownership::{Fence, NodeMode};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{Admin as _, Counts, DeadFilter, FetchedRow, Purge, Purgeable, Store as _};
use pillarbox_postgres::PostgresStore;

/// The schema that outbox-java documents for PostgreSQL; `{json}`, `{time}` and `{int}` differ between its installations.
const THEIRS: &str = "
    CREATE TABLE outbox_event (
        event_id VARCHAR(36) PRIMARY KEY, event_type VARCHAR(128) NOT NULL, aggregate_type VARCHAR(64),
        aggregate_id VARCHAR(128), tenant_id VARCHAR(64), payload {json} NOT NULL, headers {json},
        status {int} NOT NULL, attempts INT NOT NULL DEFAULT 0, available_at {time} NOT NULL,
        created_at {time} NOT NULL, done_at {time}, last_error TEXT, locked_by VARCHAR(128), locked_at {time});
    CREATE INDEX idx_status_available ON outbox_event(status, available_at, created_at);
    INSERT INTO outbox_event VALUES
        ('retried', 't', 'order', 'o-1', 'acme', '{\"b\": 1, \"a\": [2]}', '{\"h\": \"v\"}', 2, 3,
            now() - interval '1 minute', now() - interval '3 hours', NULL, 'late', 'java-1', now()),
        ('done', 't', NULL, NULL, NULL, '1', NULL, 1, 0, now(), now() - interval '4 hours', now(), NULL, NULL, NULL),
        ('new', 't', '__GLOBAL__', NULL, NULL, '2', NULL, 0, 0,
            now() - interval '2 minutes', now() - interval '2 hours', NULL, NULL, NULL, NULL),
        ('dead', 't', NULL, NULL, NULL, '3', NULL, 3, 10, now(), now() - interval '1 hour', NULL, 'broken', NULL, NULL),
        ('delayed', 't', NULL, NULL, NULL, '4', NULL, 0, 0,
            now() + interval '1 hour', now() - interval '30 minutes', NULL, NULL, NULL, NULL)";

/// How its `insertNew` writes.
const INSERT: &str = "
    INSERT INTO outbox_event (event_id, event_type, aggregate_type, aggregate_id, tenant_id, payload, headers, status,
        attempts, available_at, created_at)
    VALUES ('later', 't', '__GLOBAL__', NULL, NULL, '{\"n\": 5}', NULL, 0, 0, now(), now())";

/// JSON, times and states as its installations have them.
const KINDS: [(&str, &str, &str); 4] = [
    ("JSONB", "TIMESTAMPTZ", "SMALLINT"),
    ("JSON", "TIMESTAMPTZ", "SMALLINT"),
    ("JSONB", "TIMESTAMP", "INT"),
    ("TEXT", "TIMESTAMP(6)", "SMALLINT"),
];

/// Runs SQL that does not name the schema.
async fn execute(db: &Db, sql: &str) {
    let schema = &db.schema;
    db.execute(&format!("SET search_path = {schema}; {sql}; RESET search_path")).await;
}

async fn create(db: &Db, (json, time, int): (&str, &str, &str)) {
    let sql = THEIRS.replace("{json}", json).replace("{time}", time).replace("{int}", int);
    execute(db, &format!("CREATE SCHEMA {}; {sql}", db.schema)).await;
}

async fn fetched(store: &PostgresStore) -> BTreeMap<String, FetchedRow> {
    let fetched = store.fetch(&fetch(100)).await.expect("fetches");
    let named = |row: FetchedRow| match &row {
        FetchedRow::Row(event) => (event.event.id().as_str().to_owned(), row),
        FetchedRow::Broken(broken) => panic!("{broken:?}"),
    };
    fetched.rows.into_iter().map(named).collect()
}

#[tokio::test]
async fn an_outbox_java_table_is_adopted_with_its_rows_and_its_writers() {
    for kind in KINDS {
        with_db(async |db| adopted(db, kind).await).await;
    }
}

async fn adopted(db: &Db, kind: (&str, &str, &str)) {
    create(db, kind).await;
    let store = db.options().connect().await.expect("connects");
    let missing = store.check().await.expect_err("it is not ours yet");
    assert!(missing.to_string().contains("pillarbox migrate"), "{missing}");
    store.migrate().await.expect("adopts");
    store.migrate().await.expect("has nothing left to do");
    store.check().await.expect("finds everything");
    let order = "string_agg(event_id, ' ' ORDER BY seq)";
    let order = db.text(&format!("SELECT {order} FROM {}.outbox_event", db.schema)).await;
    assert_eq!(order.as_deref(), Some("done retried new dead delayed"), "numbered as they were created");
    let counts = Counts { new: 2, done: 1, retry: 1, dead: 1, cancelled: 0, unknown: 0 };
    assert_eq!(store.counts().await.expect("counts"), counts);

    // Their primary key made room for ours: an event may have several handlers, and without one it is one row.
    let unique = |index: &String| index.starts_with("CREATE UNIQUE") && index.contains(" ON outbox_event ");
    let keys: Vec<String> = db.indexes(&db.schema).await.into_iter().filter(unique).collect();
    let [event, seq, key] = &keys[..] else { panic!("{keys:?}") };
    assert!(event.contains("(event_id, COALESCE(handler") && seq.contains("(seq)"), "{keys:?}");
    assert!(key.contains("(unique_key, COALESCE(handler"), "{keys:?}");

    // Both programs write, and each row has a number of its own.
    execute(db, INSERT).await;
    assert_eq!(db.write(&store, events(2)).await, [7, 8]);
    let rows = fetched(&store).await;
    assert_eq!(rows.len(), 5, "{:?}", rows.keys());
    let FetchedRow::Row(retried) = &rows["retried"] else { panic!("it is broken") };
    assert_eq!(*retried.event.payload(), Payload::Json(payload(kind).into()));
    assert_eq!((retried.attempts, retried.event.headers().get("h")), (3, Some("v")));
    assert_eq!((retried.locked_by.as_deref(), retried.event.tenant_id()), (Some("?"), Some("acme")));
    let FetchedRow::Row(later) = &rows["later"] else { panic!("it is broken") };
    let age = later.created_at.since(retried.created_at);
    assert!((10_700..10_900).contains(&age.as_secs()), "times keep their distance: {age:?}");

    let owner = owner(&store).await;
    let verdict = |event_id: &str, attempts, change| {
        let expected = Expected { attempts, ..Expected::FIRST };
        Verdict { row: rows[event_id].id(), expected, change }
    };
    let verdicts = [
        verdict("retried", 3, Change::Done),
        verdict("new", 0, Change::Retry { attempts: 1, delay: Duration::ZERO, error: None }),
        verdict("later", 0, Change::Dead { attempts: 1, error: "no use".to_owned() }),
    ];
    assert_eq!(store.settle(&owner, Fence::Table, &verdicts).await.expect("settles"), NONE);

    let dead = store.dead(&DeadFilter::default(), 0, 10).await.expect("lists");
    let ids: Vec<(&str, bool)> = dead.iter().map(|event| (&*event.event_id, event.dead_at.is_some())).collect();
    assert_eq!(ids, [("dead", false), ("later", true)], "theirs have no time of death");
    assert_eq!(store.replay(&[dead[0].seq]).await.expect("replays"), [dead[0].seq]);
    assert_eq!(store.discard(&[dead[1].seq]).await.expect("discards"), [dead[1].seq]);
    let keys: Vec<String> = fetched(&store).await.into_keys().collect();
    assert!(keys.contains(&"dead".to_owned()) && keys.len() == 4, "{keys:?}");
    let record = store.records("dead").await.expect("reads").pop().expect("is there");
    assert_eq!((record.status, record.attempts, record.available_at), (0, 0, None));
    let purge = Purge::new(Purgeable::Done, Duration::ZERO, 2);
    let purged = store.purge(&purge).await.expect("purges");
    assert_eq!((purged.removed, purged.next), (2, Some(2)));
}

/// JSONB does not keep the order in which members were written.
fn payload((json, ..): (&str, &str, &str)) -> &'static str {
    if json == "JSONB" { "{\"a\": [2], \"b\": 1}" } else { "{\"b\": 1, \"a\": [2]}" }
}

#[tokio::test]
async fn an_adopted_table_is_claimed_from() {
    with_db(async |db| {
        create(db, KINDS[0]).await;
        let store = db.store().await;
        execute(db, INSERT).await;
        let node = node("claimer");
        store.join(&node, NodeMode::MultiNode, LEASE).await.expect("joins");
        let claimed = store.claim(&node, &fetch(10)).await.expect("claims");
        let claimed = seqs(&claimed.rows);
        assert_eq!(claimed, [6, 3, 2], "what is not delayed, then what is due, the longest due first");
        let verdicts: Vec<Verdict> = done(&store, &claimed)
            .await
            .into_iter()
            .map(|verdict| Verdict {
                expected: Expected { attempts: if verdict.row.seq == 2 { 3 } else { 0 }, ..Expected::FIRST },
                ..verdict
            })
            .collect();
        assert_eq!(store.settle(&node, Fence::Row, &verdicts).await.expect("settles"), NONE);
    })
    .await;
}

/// What is fresh and what was adopted answer to the same indexes.
#[tokio::test]
async fn an_adopted_table_has_the_indexes_of_a_fresh_one() {
    with_db(async |db| {
        create(db, KINDS[0]).await;
        db.store().await;
        let fresh = unique("pillarbox");
        let other = db.options().table(format!("{fresh}.outbox_event")).connect().await.expect("connects");
        other.migrate().await.expect("migrates");
        let indexes = async |schema: &str| {
            let mut indexes = db.indexes(schema).await;
            let ours = ["_aside_idx ", "_due_idx ", "_dead_idx ", "_head_idx "];
            indexes.retain(|index| ours.iter().any(|name| index.contains(name)));
            indexes
        };
        let found = indexes(&fresh).await;
        assert_eq!(indexes(&db.schema).await, found);
        assert_eq!(found.len(), 4, "{found:?}");
        db.execute(&format!("DROP SCHEMA {fresh} CASCADE")).await;
    })
    .await;
}

#[tokio::test]
async fn an_empty_outbox_java_table_is_adopted() {
    with_db(async |db| {
        create(db, KINDS[0]).await;
        execute(db, "DELETE FROM outbox_event").await;
        let store = db.store().await;
        assert_eq!(db.write(&store, events(1)).await, [1]);
    })
    .await;
}

/// The columns that a table of Pillarbox has in every row, with a value for a row of theirs that has none.
const REQUIRED: [(&str, &str); 5] = [
    ("event_id", "'named'"),
    ("event_type", "'t'"),
    ("status", "0"),
    ("attempts", "0"),
    ("created_at", "now() - interval '2 hours'"),
];

/// A NULL among the attempts would be an error of every fetch, and a row without the time of its creation would never be due.
#[tokio::test]
async fn a_table_with_rows_that_lack_a_value_is_adopted_once_they_have_it() {
    with_db(async |db| {
        create(db, KINDS[0]).await;
        execute(
            db,
            "ALTER TABLE outbox_event DROP CONSTRAINT outbox_event_pkey; ALTER TABLE outbox_event ADD UNIQUE (event_id)",
        )
        .await;
        for (column, _) in REQUIRED {
            execute(db, &format!("ALTER TABLE outbox_event ALTER {column} DROP NOT NULL")).await;
        }
        let store = db.options().connect().await.expect("connects");
        for (column, value) in REQUIRED {
            execute(db, &format!("UPDATE outbox_event SET {column} = NULL WHERE payload = '2'")).await;
            let error = store.migrate().await.expect_err("it is refused");
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
            let text = error.to_string();
            for part in [&*format!("`{column}` is NULL in some rows"), "nothing was changed", "migrate again"] {
                assert!(text.contains(part), "{part} is missing in: {text}");
            }
            let others = REQUIRED.iter().filter(|(other, _)| *other != column);
            assert!(others.into_iter().all(|(other, _)| !text.contains(&format!("`{other}`"))), "{text}");
            execute(db, &format!("UPDATE outbox_event SET {column} = {value} WHERE payload = '2'")).await;
        }
        store.migrate().await.expect("adopts");
        let rows = fetched(&store).await;
        assert!(rows.contains_key("named") && rows.len() == 2, "{:?}", rows.keys());
        let names = REQUIRED.map(|(name, _)| format!("'{name}'")).join(", ");
        let nullable = format!(
            "SELECT string_agg(column_name, ' ') FROM information_schema.columns WHERE table_schema = '{}' AND
             table_name = 'outbox_event' AND is_nullable = 'YES' AND column_name IN ({names})",
            db.schema
        );
        assert_eq!(db.text(&nullable).await, None, "no later row lacks a value");
    })
    .await;
}

#[tokio::test]
async fn any_other_table_of_that_name_is_left_as_it_is() {
    let odd = [
        ("CREATE TABLE outbox_event (id INT)", "`event_id` is missing"),
        (
            "ALTER TABLE outbox_event ADD region TEXT NOT NULL DEFAULT 'x'; ALTER TABLE outbox_event ALTER region DROP DEFAULT",
            "`region` is unknown",
        ),
        ("ALTER TABLE outbox_event ALTER status TYPE TEXT", "`status` is of type text"),
        ("ALTER TABLE outbox_event DROP CONSTRAINT outbox_event_pkey", "`event_id` is not unique"),
        ("ALTER TABLE outbox_event ADD seq INT", "`seq` is there already"),
        ("ALTER TABLE outbox_event ADD failures INT", "`failures` is there already"),
        ("ALTER TABLE outbox_event ADD unique_key TEXT", "`unique_key` is there already"),
        ("ALTER TABLE outbox_event ADD delivered_as TEXT", "`delivered_as` is there already"),
        ("CREATE VIEW outbox_event AS SELECT 1 AS event_id", "not an ordinary table"),
    ];
    for (change, problem) in odd {
        with_db(async |db| {
            create(db, KINDS[0]).await;
            if change.starts_with("CREATE") {
                execute(db, "DROP TABLE outbox_event").await;
            }
            execute(db, change).await;
            let shape = format!(
                "SELECT string_agg(concat_ws(' ', table_name, column_name, data_type), ';' ORDER BY table_name, column_name)
                 FROM information_schema.columns WHERE table_schema = '{}'",
                db.schema
            );
            let before = db.text(&shape).await;
            let store = db.options().connect().await.expect("connects");
            let error = store.migrate().await.expect_err("it is refused");
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
            assert!(error.to_string().contains(problem) && error.to_string().contains("outbox-java"), "{error}");
            assert_eq!(db.text(&shape).await, before, "{problem}");
            if let Some((name, _)) = problem[1..].split_once("` is there already") {
                execute(db, &format!("ALTER TABLE outbox_event RENAME {name} TO theirs")).await;
                store.migrate().await.expect("adopts the table with a column of theirs");
            }
        })
        .await;
    }
}
