//! The read point: where it stands, and what brings it back.
#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{Db, events, fetch, seqs, with_db};
use pillarbox_core::store::{Store as _, Upkeep as _};
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
