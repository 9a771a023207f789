//! What the conformance suite cannot know: PostgreSQL's own types, locks and settings.

use std::time::Duration;

use crate::support::{LEASE, NONE, done, event, events, fetch, node, owner, seqs, with_db};
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{Envelope, Payload};
use pillarbox_core::ownership::{Acquired, Fence, NodeMode, Renewal};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{Admin as _, Counts, Fetch, FetchedRow, Store as _};
use pillarbox_testkit::rows_at;

/// The ends of the range an event accepts, and an odd microsecond: floating point would lose each of them.
#[tokio::test]
async fn times_survive_to_the_microsecond() {
    with_db(async |db| {
        let store = db.store().await;
        let times = [253_402_300_799_999_999, -62_135_596_800_000_000, -1, 0, 1_700_000_000_123_457];
        let event = |micros: i64| {
            Envelope::builder("timed").payload_json("1").occurred_at(Timestamp::from_micros(micros)).build()
        };
        let mut written = Vec::new();
        for micros in times {
            written.extend(db.write(&store, vec![event(micros).expect("valid")]).await);
        }
        let batch = times.iter().map(|micros| event(*micros).expect("valid")).collect();
        written.extend(db.write(&store, batch).await);

        let fetched = store.fetch(&fetch(100)).await.expect("fetches");
        assert_eq!(seqs(&fetched.rows), written);
        for (row, micros) in fetched.rows.iter().zip(times.iter().chain(&times)) {
            let FetchedRow::Row(row) = row else { panic!("{row:?}") };
            assert_eq!(row.event.occurred_at().as_micros(), *micros);
        }
    })
    .await;
}

/// A table of the predecessors keeps JSON as JSONB, and rows may be inserted by hand with anything in them.
#[tokio::test]
async fn odd_rows_are_broken_one_by_one() {
    with_db(async |db| {
        let store = db.store().await;
        let node = owner(&store).await;
        db.execute(&format!(
            "ALTER TABLE {0}.outbox_event ALTER payload TYPE jsonb, ALTER headers TYPE jsonb;
             INSERT INTO {0}.outbox_event (seq, event_id, event_type, payload, payload_bytes, headers, attempts, available_at)
             OVERRIDING SYSTEM VALUE
             VALUES (-5, 'below', 'fine', '[1]', NULL, NULL, 0, NULL),
                    (1, 'null headers', 'broken', '1', NULL, 'null', 0, NULL),
                    (2, 'no payload', 'broken', NULL, NULL, NULL, 0, NULL),
                    (3, 'two payloads', 'broken', '1', '1', NULL, 0, NULL),
                    (4, 'no content type', 'broken', NULL, '1', NULL, 0, NULL),
                    (5, 'no type', '', '1', NULL, NULL, 0, NULL),
                    (6, 'negative attempts', 'broken', '1', NULL, NULL, -3, NULL),
                    (7, '', 'broken', '1', NULL, NULL, 0, NULL),
                    (8, 'above', 'fine', '{{\"a\": 1}}', NULL, '{{\"h\": \"v\"}}', 2, NULL),
                    (9, 'never', 'fine', '1', NULL, NULL, 0, 'infinity'),
                    (10, 'ever', 'fine', '1', NULL, NULL, 0, '-infinity')",
            db.schema
        ))
        .await;
        let fetched = store.fetch(&fetch(100)).await.expect("fetches");
        assert_eq!(seqs(&fetched.rows), [-5, 1, 2, 3, 4, 5, 6, 7, 8, 10]);
        assert!(fetched.next_due > Some(Duration::from_secs(1 << 30)), "infinity is far away: {:?}", fetched.next_due);
        let mut reasons = Vec::new();
        let mut verdicts = Vec::new();
        for row in &fetched.rows {
            match row {
                FetchedRow::Row(row) => assert_eq!(row.event.event_type(), "fine"),
                FetchedRow::Broken(row) => {
                    reasons.push(row.reason.clone());
                    let change = Change::Dead { attempts: row.attempts, error: row.reason.clone() };
                    verdicts.push(Verdict { row: row.id(), expected: row.expected(), change });
                }
            }
        }
        let fields = ["headers", "payload", "payload", "content_type", "event_type", "attempts", "id"];
        assert_eq!(reasons.len(), fields.len(), "{reasons:?}");
        for (reason, field) in reasons.iter().zip(fields) {
            assert!(reason.contains(field), "{reason:?} names {field}");
        }
        let FetchedRow::Row(row) = &fetched.rows[8] else { panic!("{:?}", fetched.rows[8]) };
        assert_eq!((row.event.headers().get("h"), row.attempts), (Some("v"), 2));
        assert_eq!(*row.event.payload(), Payload::Json("{\"a\": 1}".into()));

        // All of them can be put aside, so none is fetched for ever.
        assert_eq!(store.settle(&node, Fence::Table, &verdicts).await.expect("settles"), NONE);
        assert_eq!(seqs(&store.fetch(&fetch(100)).await.expect("fetches").rows), [-5, 8, 10]);
    })
    .await;
}

/// A takeover waits for a settle under way, and the settle that comes after it changes nothing.
#[tokio::test]
async fn a_takeover_and_a_settle_exclude_each_other() {
    with_db(async |db| {
        let store = db.store().await;
        let written = db.write(&store, events(2)).await;
        let old = owner(&store).await;
        let new = node("new");
        store.join(&new, NodeMode::SingleNode, LEASE).await.expect("joins");

        // Another transaction holds the first row, so the settle has the fence and waits.
        let mut client = db.pool.get().await.expect("a connection");
        let holder = client.transaction().await.expect("begins");
        let lock = format!("SELECT FROM {}.outbox_event WHERE seq = {} FOR UPDATE", db.schema, written[0]);
        holder.execute(&lock, &[]).await.expect("locks");
        let first = done(&store, &written[..1]).await;
        let settle = store.settle(&old, Fence::Table, &first);
        let takeover = async {
            db.waiting("outbox_event").await;
            db.execute(&format!("UPDATE {}.outbox_node SET expires_at = now() WHERE node_id = '{old}'", db.schema))
                .await;
            let acquire = store.acquire(&new);
            let release = async {
                db.waiting("outbox_node").await;
                holder.commit().await.expect("commits");
            };
            tokio::join!(acquire, release).0.expect("acquires")
        };
        let (refused, acquired) = tokio::join!(settle, takeover);
        assert_eq!(refused.expect("settles"), NONE, "the settle came first");
        assert!(matches!(acquired, Acquired::Owner { epoch: 2, .. }), "{acquired:?}");

        let late = done(&store, &written[1..]).await;
        assert_eq!(store.settle(&old, Fence::Table, &late).await.expect("settles"), written[1..], "its owner is gone");
        assert_eq!(store.settle(&new, Fence::Table, &late).await.expect("settles"), NONE);
    })
    .await;
}

/// One call, one transaction: what the rows say was recorded together.
#[tokio::test]
async fn a_mixed_settle_is_one_transaction() {
    with_db(async |db| {
        let store = db.store().await;
        let node = owner(&store).await;
        let seqs = db.write(&store, events(4)).await;
        let rows = rows_at(&store, &[&seqs[..], &[i64::MAX]].concat()).await.expect("reads");
        let verdict = |index: usize, change| Verdict { row: rows[index].clone(), expected: Expected::FIRST, change };
        let verdicts = [
            verdict(3, Change::Dead { attempts: 1, error: "a\0b".to_owned() }),
            verdict(1, Change::Retry { attempts: 1, delay: Duration::MAX, error: Some("late".to_owned()) }),
            verdict(0, Change::Done),
            Verdict { expected: Expected { attempts: 7, ..Expected::FIRST }, ..verdict(2, Change::Done) },
            verdict(4, Change::Done),
        ];
        assert_eq!(store.settle(&node, Fence::Table, &verdicts).await.expect("settles"), [seqs[2], i64::MAX]);
        let transactions =
            format!("SELECT count(DISTINCT xmin::text) FROM {}.outbox_event WHERE status IN (1, 2, 3)", db.schema);
        assert_eq!(db.text(&transactions).await.as_deref(), Some("1"));
        assert_eq!(db.column("last_error", seqs[3]).await.as_deref(), Some("a\\u{0}b"));
        assert_eq!(db.column("available_at > now() + interval '90 years'", seqs[1]).await.as_deref(), Some("true"));
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.new, counts.done, counts.retry, counts.dead), (1, 1, 1, 1));
    })
    .await;
}

/// A writer in SQL may set its creation to a time before which there is none: it is found in its place like any other, and keeps none of them
/// from being read.
#[tokio::test]
async fn a_due_row_that_was_created_at_the_beginning_of_time_is_promoted() {
    with_db(async |db| {
        let store = db.store().await;
        db.execute(&format!(
            "INSERT INTO {}.outbox_event (event_id, event_type, payload, created_at, available_at)
             VALUES ('first', 't', '1', '4714-11-24 00:00:00+00 BC', '2000-01-01'), ('none', 't', '1', '-infinity', '2000-01-01'),
                    ('late', 't', '1', '1999-01-01', '2000-01-01')",
            db.schema
        ))
        .await;
        let due = store.fetch(&fetch(100)).await.expect("fetches").rows;
        assert_eq!((due.len(), due.iter().all(FetchedRow::is_timed)), (3, true));
        let rows: Vec<_> = due.iter().map(FetchedRow::id).collect();
        store.promote_due(&rows).await.expect("promotes");
        let promoted = store.fetch(&fetch(100)).await.expect("fetches").rows;
        assert_eq!(seqs(&promoted), [1, 2, 3]);
        assert!(!promoted.iter().any(FetchedRow::is_timed), "they have their place in the order");
        for seq in 1..=3 {
            assert_eq!(db.column("aside", seq).await.as_deref(), Some("0"), "the read point may have passed it");
        }
    })
    .await;
}

/// A limit of one serves both kinds, and the excluded rows are left out of both.
#[tokio::test]
async fn a_fetch_shares_its_limit() {
    with_db(async |db| {
        let store = db.store().await;
        let node = owner(&store).await;
        let due = db.write(&store, events(10)).await;
        let again = Change::Retry { attempts: 0, delay: Duration::ZERO, error: None };
        let verdicts: Vec<_> =
            done(&store, &due).await.into_iter().map(|verdict| Verdict { change: again.clone(), ..verdict }).collect();
        assert_eq!(store.settle(&node, Fence::Table, &verdicts).await.expect("settles"), NONE);
        let ready = db.write(&store, events(10)).await;
        for (limit, ready_share) in [(1, 0), (2, 1), (3, 2), (9, 6), (15, 10), (20, 10), (30, 10)] {
            let found = seqs(&store.fetch(&fetch(limit)).await.expect("fetches").rows);
            let expected: Vec<_> =
                ready[..ready_share].iter().chain(&due[..(limit - ready_share).min(10)]).copied().collect();
            assert_eq!(found, expected, "limit {limit}");
        }
        let most = Fetch { exclude: [&due[1..], &ready[1..]].concat(), ..fetch(15) };
        assert_eq!(seqs(&store.fetch(&most).await.expect("fetches").rows), [ready[0], due[0]]);
    })
    .await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    with_db(async |db| {
        let store = db.store().await;
        store.close().await;
        store.close().await;
        let error = store.fetch(&fetch(1)).await.expect_err("it is closed");
        assert!(error.to_string().contains("closed") && !error.is_temporary(), "{error}");
        assert_eq!(event().event_type(), "order.placed");
    })
    .await;
}

/// Statements that wait for the table take every connection for events; the lease has one of its own.
#[tokio::test]
async fn a_renewal_waits_for_no_other_statement() {
    with_db(async |db| {
        db.store().await;
        let store = db.options().pool_size(1).connect().await.expect("connects");
        let node = owner(&store).await;
        let mut client = db.pool.get().await.expect("a connection");
        let transaction = client.transaction().await.expect("begins");
        let lock = format!("LOCK TABLE {}.outbox_event IN ACCESS EXCLUSIVE MODE", db.schema);
        transaction.batch_execute(&lock).await.expect("locks");
        let wanted = fetch(1);
        let fetching = store.fetch(&wanted);
        let renewing = async {
            db.waiting("outbox_event").await;
            let renewal = store.renew(&node, LEASE, None, None).await.expect("renews");
            transaction.rollback().await.expect("rolls back");
            renewal
        };
        let (fetched, renewal) = futures_util::future::join(fetching, renewing).await;
        assert!(matches!(renewal, Renewal::Renewed { .. }));
        assert!(fetched.expect("fetches").rows.is_empty());
    })
    .await;
}

/// A program that writes rows may give them any number, and nobody would ever see them.
#[tokio::test]
async fn rows_of_a_status_that_there_is_not_are_counted_by_themselves() {
    with_db(async |db| {
        let store = db.store().await;
        db.write(&store, events(5)).await;
        for (place, status) in [(0, 4), (1, 9), (2, -1)] {
            let schema = &db.schema;
            db.execute(&format!(
                "UPDATE {schema}.outbox_event SET status = {status}
                 WHERE seq = (SELECT seq FROM {schema}.outbox_event ORDER BY seq OFFSET {place} LIMIT 1)"
            ))
            .await;
        }
        let expected = Counts { new: 2, unknown: 3, ..Counts::default() };
        assert_eq!(store.counts().await.expect("counts"), expected);
    })
    .await;
}
