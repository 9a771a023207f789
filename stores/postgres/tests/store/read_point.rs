//! The read point: where it stands, and what brings it back.
#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use crate::support::{Db, events, fetch, seqs, unique, with_db};
use futures_util::FutureExt as _;
use pillarbox_core::examine::{Judgement, Thresholds};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_postgres::PostgresStore;
use tokio::time::sleep;

async fn raise(store: &PostgresStore) {
    while !store.raise_read_point().await.expect("raises") {
        sleep(Duration::from_millis(20)).await;
    }
}

async fn point(db: &Db) -> Option<i64> {
    let point = format!("SELECT read_point FROM {}.outbox_partition WHERE partition = 0", db.schema);
    db.text(&point).await.map(|point| point.parse().expect("a number"))
}

async fn end(db: &Db, which: &str) {
    db.execute(&format!("UPDATE {}.outbox_event SET status = 1, done_at = now() WHERE {which}", db.schema)).await;
}

async fn copy_a_row_with_a_high_number(db: &Db) {
    let copy = format!(
        "INSERT INTO {}.outbox_event (seq, event_id, event_type, payload, status, done_at) OVERRIDING SYSTEM VALUE
         VALUES (1000, 'copied', 't', '1', 1, now())",
        db.schema
    );
    db.execute(&copy).await;
}

#[tokio::test]
async fn it_stands_below_the_first_row_that_waits_and_never_above_what_may_be_committed() {
    with_db(async |db| {
        let store = db.store().await;
        raise(&store).await;
        let written = db.write(&store, events(5)).await;
        end(db, "seq <= 2").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(2));
        end(db, "seq <= 4").await;
        let mut writer = db.pool.get().await.expect("a connection");
        let open = writer.transaction().await.expect("begins");
        let insert =
            format!("INSERT INTO {}.outbox_event (event_id, event_type, payload) VALUES ('a', 't', '1')", db.schema);
        open.batch_execute(&insert).await.expect("inserts");
        db.write(&store, events(1)).await;
        end(db, "true").await;
        for _ in 0..2 {
            raise(&store).await;
            assert!(point(db).await.is_some_and(|point| point <= written[4]), "6 is not committed");
        }
        open.commit().await.expect("commits");
        raise(&store).await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(5));
        assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [6]);
    })
    .await;
}

/// Numbers that begin anew are other numbers.
#[tokio::test]
async fn a_table_that_is_emptied_and_numbered_anew_is_read_from_its_beginning() {
    with_db(async |db| {
        let store = db.store().await;
        for begin_anew in [
            "TRUNCATE {}.outbox_event RESTART IDENTITY",
            "DELETE FROM {}.outbox_event; ALTER TABLE {}.outbox_event ALTER COLUMN seq RESTART",
        ] {
            let first = db.write(&store, events(20)).await;
            end(db, "true").await;
            raise(&store).await;
            assert_eq!(point(db).await, first.last().copied());
            db.execute(&begin_anew.replace("{}", &db.schema)).await;
            let again = db.write(&store, events(3)).await;
            assert_eq!(again, [1, 2, 3]);
            assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), again);
            raise(&store).await;
            assert_eq!(point(db).await, Some(0));
            end(db, "true").await;
            db.execute(&begin_anew.replace("{}", &db.schema)).await;
        }
    })
    .await;
}

/// Nor does a proof of the numbers before say anything of them, though one who writes now keeps it alive.
/// As who archives what was delivered does. The sequence of the table before is still there, and no other.
#[tokio::test]
async fn a_table_that_takes_the_name_of_another_is_read_from_its_beginning() {
    with_db(async |db| {
        let store = db.store().await;
        db.write(&store, events(50)).await;
        end(db, "true").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(50));
        assert_eq!(seqs(&store.fetch(&fetch(100)).await.expect("fetches").rows), [0_i64; 0]);
        let schema = &db.schema;
        db.execute(&format!(
            "ALTER TABLE {schema}.outbox_event RENAME TO archived;
             CREATE TABLE {schema}.outbox_event (LIKE {schema}.archived INCLUDING ALL)"
        ))
        .await;
        let written = db.write(&store, events(5)).await;
        assert!(written.iter().all(|seq| *seq < 50), "its numbers begin anew: {written:?}");
        let another = db.store().await;
        for store in [&store, &another] {
            assert_eq!(seqs(&store.fetch(&fetch(100)).await.expect("fetches").rows), written);
        }
        end(db, "true").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(written[4]), "the next point is of the new table");
    })
    .await;
}

#[tokio::test]
async fn a_proof_of_earlier_numbers_is_forgotten() {
    with_db(async |db| {
        let store = db.store().await;
        let insert = |id: &str| {
            format!("INSERT INTO {}.outbox_event (event_id, event_type, payload) VALUES ('{id}', 't', '1')", db.schema)
        };
        let (mut first, mut second) = (db.pool.get().await.expect("one"), db.pool.get().await.expect("another"));
        db.write(&store, events(20)).await;
        end(db, "true").await;
        let open = first.transaction().await.expect("begins");
        open.batch_execute(&insert("a")).await.expect("inserts");
        raise(&store).await;
        open.commit().await.expect("commits");
        db.execute(&format!("TRUNCATE {}.outbox_event RESTART IDENTITY", db.schema)).await;
        let open = second.transaction().await.expect("begins");
        open.batch_execute(&insert("b")).await.expect("inserts");
        for _ in 0..2 {
            raise(&store).await;
        }
        open.commit().await.expect("commits");
        assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [1]);
    })
    .await;
}

/// What an older release does beside this one, or somebody by hand, is found when the point is checked.
#[tokio::test]
async fn a_row_that_waits_below_it_is_found_by_the_next_check() {
    with_db(async |db| {
        let store = db.store().await;
        let written = db.write(&store, events(120_000)).await;
        end(db, "true").await;
        raise(&store).await;
        while point(db).await != written.last().copied() {
            raise(&store).await;
        }
        db.execute(&format!("UPDATE {}.outbox_event SET status = 0, done_at = NULL WHERE seq = 110000", db.schema))
            .await;
        raise(&store).await;
        assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [0; 0], "nobody has told");
        let due =
            format!("UPDATE {}.outbox_partition SET read_point_checked_at = now() - interval '61 minutes'", db.schema);
        db.execute(&due).await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(109_999));
        assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [110_000]);
    })
    .await;
}

/// Sessions that take numbers in advance write rows below those that were complete.
#[tokio::test]
async fn with_numbers_taken_in_advance_it_is_not_moved() {
    with_db(async |db| {
        let store = db.store().await;
        db.execute(&format!("ALTER TABLE {}.outbox_event ALTER COLUMN seq SET CACHE 10", db.schema)).await;
        db.write(&store, events(3)).await;
        end(db, "true").await;
        raise(&store).await;
        raise(&store).await;
        assert_eq!(point(db).await, None);
        assert_eq!(
            store.writers().await.expect("asks").open,
            None,
            "nor is anything proven where keys keep their order"
        );
    })
    .await;
}

/// Rows that were copied have numbers that the sequence has yet to give.
#[tokio::test]
async fn a_sequence_that_stands_below_the_rows_hides_none_that_it_numbers() {
    with_db(async |db| {
        let store = db.store().await;
        copy_a_row_with_a_high_number(db).await;
        assert_eq!(store.writers().await.expect("asks").highest, 0, "no number was given");
        raise(&store).await;
        for seq in [1, 2] {
            assert_eq!(db.write(&store, events(1)).await, [seq]);
            assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [seq]);
            assert_eq!(store.writers().await.expect("asks").highest, seq);
            end(db, "true").await;
            raise(&store).await;
            assert_eq!(point(db).await, Some(seq));
        }
        db.execute(&format!("SELECT setval('{0}.outbox_event_seq_seq', max(seq)) FROM {0}.outbox_event", db.schema))
            .await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(1000));
    })
    .await;
}

#[tokio::test]
async fn a_sequence_that_is_set_back_takes_the_point_back() {
    with_db(async |db| {
        let store = db.store().await;
        db.write(&store, events(20)).await;
        end(db, "true").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(20));
        db.execute(&format!(
            "DELETE FROM {0}.outbox_event WHERE seq > 5; SELECT setval('{0}.outbox_event_seq_seq', 5)",
            db.schema
        ))
        .await;
        assert_eq!(db.write(&store, events(1)).await, [6]);
        raise(&store).await;
        assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [6]);
        assert_eq!(point(db).await, Some(5));
    })
    .await;
}

/// Without the privilege nobody knows where the sequence stands; after a row that was found below the point more are to be expected.
#[tokio::test]
async fn a_user_who_does_not_see_the_sequence_raises_the_point_no_more_once_a_row_was_found_below_it() {
    with_db(async |db| {
        let (owner, schema, role) = (db.store().await, &db.schema, unique("pillarbox_role"));
        db.execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
        let store = db.options_as(&role).connect().await.expect("connects");
        copy_a_row_with_a_high_number(db).await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(1000));
        assert_eq!(db.write(&owner, events(1)).await, [1]);
        let due = format!("UPDATE {schema}.outbox_partition SET read_point_checked_at = now() - interval '61 minutes'");
        db.execute(&due).await;
        raise(&store).await;
        for seq in [1, 2] {
            assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [seq]);
            end(db, "true").await;
            raise(&store).await;
            assert_eq!(db.write(&owner, events(1)).await, [seq + 1]);
        }
        let tell =
            format!("UPDATE {schema}.outbox_partition SET interventions = interventions + 1 WHERE partition = 0");
        db.execute(&tell).await;
        end(db, "true").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(1000), "somebody has told of what was done by hand");
        raise(&owner).await;
        assert_eq!(point(db).await, Some(3), "who sees the sequence knows better");
        drop(store);
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}

/// The rows of a subscription come in the order of another server's commits, whose open transactions nobody sees here.
#[tokio::test]
async fn read_point_is_not_proven_where_a_subscription_writes_the_table() {
    with_db(async |db| {
        let (store, schema, name) = (db.store().await, &db.schema, unique("pillarbox_subscription"));
        db.write(&store, events(3)).await;
        end(db, "true").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(3));
        db.execute(&format!(
            "CREATE SUBSCRIPTION {name} CONNECTION 'dbname=nowhere' PUBLICATION nothing WITH (connect = false, slot_name = NONE)"
        ))
        .await;
        db.execute(&format!(
            "SET LOCAL allow_system_table_mods = on;
             INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate)
             SELECT oid, '{schema}.outbox_event'::regclass, 'r' FROM pg_subscription WHERE subname = '{name}'"
        ))
        .await;
        let outcome = AssertUnwindSafe(async {
            assert_eq!(store.writers().await.expect("asks").open, None);
            raise(&store).await;
            assert_eq!(point(db).await, None, "what was known before means nothing");
            let view = store.examiner(Duration::from_secs(2)).expect("a view");
            let findings = view.examine(&Thresholds::default()).await;
            view.close().await;
            let found = findings.iter().find(|checked| checked.check.code == "postgres-subscriber").expect("it is looked for");
            assert!(matches!(found.judgement, Judgement::Found { .. }), "{found:?}");
        })
        .catch_unwind()
        .await;
        db.execute(&format!("DROP SUBSCRIPTION {name}")).await;
        outcome.unwrap_or_else(|panic| resume_unwind(panic));
        assert_eq!(store.writers().await.expect("asks").open, Some(Vec::new()));
        raise(&store).await;
        assert_eq!(point(db).await, Some(3));
    })
    .await;
}

/// Rows that wait for long, as those behind an event that failed do, keep nobody from reading above what was delivered around them.
#[tokio::test]
async fn a_few_rows_that_wait_for_long_are_set_aside() {
    with_db(async |db| {
        let store = db.store().await;
        let rows = format!(
            "INSERT INTO {}.outbox_event (event_id, event_type, payload, created_at)
             SELECT i, 't', '1', CASE WHEN i = 20 THEN '4714-11-24 00:00:00+00 BC'
                 ELSE now() - CASE WHEN i = 30000 THEN interval '0' ELSE interval '1 minute' END END
             FROM generate_series(1, 50000) i",
            db.schema
        );
        db.execute(&rows).await;
        end(db, "seq NOT IN (10, 700, 30000, 49000)").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(29_999), "the row that has not waited for long stays");
        end(db, "seq = 30000").await;
        raise(&store).await;
        assert_eq!(point(db).await, Some(48_999), "above it are too few");
        assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [10, 700, 49_000]);
        end(db, "seq = 700").await;
        raise(&store).await;
        assert_eq!(seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), [10, 49_000]);
        assert_eq!(store.counts().await.expect("counts").pending(), 2);
    })
    .await;
}
