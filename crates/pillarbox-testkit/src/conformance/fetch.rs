use std::collections::BTreeSet;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, GLOBAL_AGGREGATE, limits};
use pillarbox_core::row::{Change, Status};
use pillarbox_core::store::{BrokenRow, Dialect, Fetch, Fetched, FetchedRow};
use pillarbox_core::write::{Finish, insert};

use crate::Harness;
use crate::events::{Owned, all, delayed, event, events, everything, ids, owned, retry_in, seqs_of, settle_all, some};
use crate::nodes::{owner, peer};
use crate::run::{Db, Outcome};

/// A row exists for a fetch from its commit on, not before, whichever store asks.
pub(super) async fn fetch_returns_committed_rows_only<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let written = event()?;
    let mut transaction = db.begin().await?;
    insert(&*store, &mut transaction, vec![written.clone()]).await?;
    assert!(store.fetch(&all()).await?.rows.is_empty());
    assert!(other.fetch(&all()).await?.rows.is_empty());
    transaction.commit().await?;
    assert_eq!(ids(&store.fetch(&all()).await?.rows)?, [written.id().as_str()]);
    assert_eq!(ids(&other.fetch(&all()).await?.rows)?, [written.id().as_str()]);
    Ok(())
}

/// The lowest `seq` first, and the lowest ones when there are more than the limit.
pub(super) async fn fetch_returns_rows_in_seq_order<H: Harness>(db: &Db<H>) -> Outcome {
    let mut seqs = Vec::new();
    for size in [1, 40, 2, 100] {
        seqs.extend(db.write(events(size)?).await?);
    }
    for limit in [1, 2, 50, 143, 1000] {
        let fetched = db.store().fetch(&some(limit)).await?;
        assert_eq!(seqs_of(&fetched), seqs[..limit.min(seqs.len())], "limit {limit}");
    }
    Ok(())
}

/// Rows without a due time are read above the given `seq`; those with one wherever they are.
pub(super) async fn fetch_starts_above_the_given_seq<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs: retried, .. } = owned(db, vec![event()?]).await?;
    settle_all(&*store, &node, &retried, &retry_in(Duration::ZERO)).await?;
    let seqs = db.write(events(5)?).await?;

    let order = async |above| {
        let fetched = store.fetch(&Fetch { above, ..all() }).await?;
        Ok::<_, BoxError>(fetched.rows.iter().map(FetchedRow::seq).collect::<BTreeSet<_>>())
    };
    assert_eq!(order(seqs[2]).await?, BTreeSet::from([retried[0], seqs[3], seqs[4]]));
    assert_eq!(order(seqs[4]).await?, BTreeSet::from([retried[0]]));
    assert_eq!(order(0).await?.len(), 6);
    assert_eq!(order(i64::MAX).await?, BTreeSet::from([retried[0]]));
    Ok(())
}

/// Excluded rows neither come back nor take the place of others.
pub(super) async fn fetch_leaves_out_excluded_rows<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs: retried, .. } = owned(db, events(40)?).await?;
    settle_all(&*store, &node, &retried, &retry_in(Duration::ZERO)).await?;
    let seqs = db.write(events(3000)?).await?;
    let exclude: Vec<i64> = retried[..30].iter().chain(&seqs[..2990]).copied().chain([0, -1, i64::MAX]).collect();

    let fetched = store.fetch(&Fetch { exclude: exclude.clone(), ..some(20) }).await?;
    let order: BTreeSet<_> = fetched.rows.iter().map(FetchedRow::seq).collect();
    assert_eq!(order, retried[30..].iter().chain(&seqs[2990..]).copied().collect::<BTreeSet<_>>());
    Ok(())
}

/// Events of some types neither come nor take the place of others, whether they are due, were put off, or belong to a key;
/// nor is anybody woken for them.
pub(super) async fn fetch_leaves_out_event_types<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let of = |event_type: &str| Envelope::json(event_type, "{}");
    let put_off = db.write(vec![of("it's.held")?, of("wanted")?]).await?;
    settle_all(&*store, &node, &put_off, &retry_in(Duration::ZERO)).await?;
    db.write(vec![delayed()?]).await?;
    let seqs = db.write(vec![of("it's.held")?, of("wanted")?, of("HELD")?, of("held\"")?, of("held")?]).await?;

    // Names are meant to the byte: what a collation takes for the same is another.
    let names = ["it's.held", "held\"", "test.delayed", "none", "wanted ", "WANTED", "held ", "hëld"];
    let without_types: Vec<Box<str>> = names.map(Into::into).into();
    for scope in [None, Some(everything())] {
        for limit in [3, 100] {
            let fetched = store
                .fetch(&Fetch { without_types: without_types.clone(), scope: scope.clone(), ..some(limit) })
                .await?;
            let found: BTreeSet<_> = fetched.rows.iter().map(FetchedRow::seq).collect();
            let expected = BTreeSet::from([put_off[1], seqs[1], seqs[2], seqs[4]]);
            assert!(found.is_subset(&expected) && found.len() == limit.min(4), "{found:?} of {expected:?}");
            assert_eq!(fetched.next_due, None, "what is left out wakes nobody");
        }
    }
    assert!(store.fetch(&some(100)).await?.next_due.is_some(), "unless it is wanted");
    Ok(())
}

/// Rows for some handlers neither come nor take the place of others, whether they are due or were put off; rows for none in particular
/// do come, and types are left out beside them.
pub(super) async fn fetch_leaves_out_handlers<H: Harness>(db: &Db<H>) -> Outcome {
    let written = events(6)?;
    let Owned { store, node, seqs, .. } = owned(db, written.clone()).await?;
    for (event, handler) in written.iter().zip(["it's.held", "wanted", "it's.held", "HELD", "held"]) {
        db.set_handler(event.id().as_str(), handler).await?;
    }
    settle_all(&*store, &node, &seqs[..2], &retry_in(Duration::ZERO)).await?;
    let left_out = db.write(vec![Envelope::json("other", "{}")?]).await?;
    let without_handlers: Vec<Box<str>> = ["it's.held", "held", "none", "wanted ", "Wanted"].map(Into::into).into();
    for (without_types, others) in [(Vec::new(), left_out), (vec!["other".into()], Vec::new())] {
        let expected: BTreeSet<_> = [seqs[1], seqs[3], seqs[5]].into_iter().chain(others).collect();
        for scope in [None, Some(everything())] {
            for limit in [2, 100] {
                let fetch = Fetch {
                    without_types: without_types.clone(),
                    without_handlers: without_handlers.clone(),
                    scope: scope.clone(),
                    ..some(limit)
                };
                let found: BTreeSet<_> = store.fetch(&fetch).await?.rows.iter().map(FetchedRow::seq).collect();
                assert!(found.is_subset(&expected), "{found:?} of {expected:?}");
                assert_eq!(found.len(), limit.min(expected.len()));
            }
        }
    }
    Ok(())
}

/// Of each kind, the row whose payload reaches the limit is the last, so that one that is too large comes alone; and the rest comes
/// later, in its order. A row that makes no event is as large as any.
pub(super) async fn fetch_stops_at_the_limit_of_bytes<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs: ready, written } = owned(db, of_kilobytes(&[10, 10, 900, 10, 10, 10])?).await?;
    let history = store.history();
    for (scope, is_broken) in [(None, false), (Some(everything()), false), (None, true), (Some(everything()), true)] {
        if is_broken {
            db.break_row(written[2].id().as_str()).await?;
        }
        let within =
            |kilobytes: usize, above| Fetch { max_bytes: kilobytes * 1000, above, scope: scope.clone(), ..some(100) };
        for (kilobytes, above, expected, truncated) in [
            (1, 0, &ready[..1], true),
            (15, 0, &ready[..2], true),
            (20, 0, &ready[..2], true),
            (21, 0, &ready[..3], true),
            (1, ready[1], &ready[2..3], true),
            (31, ready[2], &ready[3..], false),
            (5000, 0, &ready[..], false),
        ] {
            let fetched = store.fetch(&within(kilobytes, above)).await?;
            let what = format!("{kilobytes} kB above {above}, broken: {is_broken}");
            assert_eq!((&*seqs_of(&fetched), fetched.truncated), (expected, truncated), "{what}");
        }
    }
    settle_all(&*store, &node, &ready[..3], &retry_in(Duration::ZERO)).await?;
    let fetched = store.fetch(&Fetch { max_bytes: 1, ..some(100) }).await?;
    assert!((1..=2).contains(&fetched.rows.len()) && fetched.truncated, "one of each kind at most: {fetched:?}");
    let fetched = store.fetch(&Fetch { max_bytes: 1, ..some(1) }).await?;
    assert_eq!(fetched.rows.len(), 1, "and no more than the limit");
    let small = db.write(events(300)?).await?;
    let fetched = store.fetch(&Fetch { max_bytes: 100_000, above: ready[5], ..some(1000) }).await?;
    let found = fetched.rows.iter().filter(|row| small.contains(&row.seq())).count();
    assert_eq!(found, 300, "small ones together");
    assert_eq!(store.history(), history, "a connection that the store gives up is not lost");
    Ok(())
}

/// Replayed rows among others, which a store may keep apart: of all of them the lowest come, and none is passed over for its size.
pub(super) async fn fetch_leaves_no_gap_at_the_limit_of_bytes<H: Harness>(db: &Db<H>) -> Outcome {
    let sizes = [10, 10, 10, 10, 1, 1, 10, 1, 10, 1];
    let Owned { store, node, seqs, .. } = owned(db, of_kilobytes(&sizes)?).await?;
    let large = [0, 1, 2, 3, 6, 8].map(|place: usize| seqs[place]);
    settle_all(&*store, &node, &large, &Change::Dead { attempts: 0, error: "for good".to_owned() }).await?;
    store.replay(&large).await?;
    for scope in [None, Some(everything())] {
        for kilobytes in [1, 15, 25, 41, 43, 52, 55, 100] {
            let has_room = |place: &usize| sizes[..*place].iter().sum::<usize>() < kilobytes;
            let fits = (0..sizes.len()).take_while(has_room).count();
            let fetch = Fetch { max_bytes: kilobytes * 1000, scope: scope.clone(), ..some(100) };
            let fetched = store.fetch(&fetch).await?;
            assert_eq!(&*seqs_of(&fetched), &seqs[..fits], "{kilobytes} kB");
            assert!(fetched.truncated || fits == sizes.len(), "{kilobytes} kB: there is more");
        }
    }
    Ok(())
}

/// Events of so many thousand bytes, which compress well. They are the payload, or of every other one of 10 the headers.
pub(super) fn of_kilobytes(sizes: &[usize]) -> Result<Vec<Envelope>, BoxError> {
    let event = |(place, size): (usize, &usize)| {
        let bytes = "x".repeat(size * 1000 - 2);
        let event = Envelope::builder("test.large");
        if place % 2 == 1 && *size == 10 {
            return event.header("h", bytes).payload_json("1").build();
        }
        event.payload_json(format!("\"{bytes}\"")).build()
    };
    Ok(sizes.iter().enumerate().map(event).collect::<Result<_, _>>()?)
}

/// Neither kind of row, nor both together, exceed the limit.
pub(super) async fn fetch_never_exceeds_the_limit<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs: retried, .. } = owned(db, events(30)?).await?;
    assert_eq!(store.fetch(&some(7)).await?.rows.len(), 7, "rows without a due time");
    settle_all(&*store, &node, &retried, &retry_in(Duration::ZERO)).await?;
    assert_eq!(store.fetch(&some(7)).await?.rows.len(), 7, "rows with one");
    db.write(events(30)?).await?;
    for limit in [1, 2, 3, 7, 30, 59, 60, 61] {
        let fetched = store.fetch(&some(limit)).await?;
        assert_eq!(fetched.rows.len(), limit.min(60), "both, limit {limit}");
        let distinct: BTreeSet<_> = fetched.rows.iter().map(FetchedRow::seq).collect();
        assert_eq!(distinct.len(), fetched.rows.len(), "no row comes twice");
    }
    Ok(())
}

/// A transaction that took its `seq` first and commits last is not skipped: later rows being there, handled and gone
/// changes nothing.
pub(super) async fn fetch_finds_a_late_commit_below_later_rows<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let late_event = event()?;
    let mut late = db.begin().await?;
    let late_seq = insert(&*store, &mut late, vec![late_event.clone()]).await?;
    let mut early = db.begin().await?;
    let early_seqs = insert(&*store, &mut early, events(3)?).await?;
    assert!(late_seq < early_seqs, "the rows are to be written in this order");
    early.commit().await?;

    assert_eq!(store.fetch(&all()).await?.rows.len(), 3);
    settle_all(&*store, &node, &early_seqs, &Change::Done).await?;
    assert!(store.fetch(&all()).await?.rows.is_empty());
    late.commit().await?;
    assert_eq!(ids(&store.fetch(&all()).await?.rows)?, [late_event.id().as_str()]);
    Ok(())
}

/// Only NEW and RETRY are pending.
pub(super) async fn fetch_leaves_out_done_and_dead_rows<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs, .. } = owned(db, events(6)?).await?;
    settle_all(&*store, &node, &seqs[..4], &retry_in(Duration::ZERO)).await?;
    // Both kinds of rows, with and without a due time, end both ways.
    settle_all(&*store, &node, &[seqs[0], seqs[4]], &Change::Done).await?;
    settle_all(&*store, &node, &[seqs[1], seqs[5]], &Change::Dead { attempts: 0, error: "no".to_owned() }).await?;
    let fetched = store.fetch(&all()).await?;
    assert_eq!(fetched.rows.iter().map(FetchedRow::seq).collect::<BTreeSet<_>>(), BTreeSet::from([seqs[2], seqs[3]]));
    assert_eq!(fetched.next_due, None);
    Ok(())
}

/// A plain INSERT of three columns, from any language, is a complete event.
pub(super) async fn fetch_reads_a_row_of_three_columns<H: Harness>(db: &Db<H>) -> Outcome {
    let payload = r#"{"b":1,  "a":2,"a":3}"#;
    db.insert_three_columns("0193-from-elsewhere", "order.placed", payload).await?;
    let fetched = db.store().fetch(&all()).await?;
    let [FetchedRow::Row(row)] = &fetched.rows[..] else { return Err(format!("{:?}", fetched.rows).into()) };
    assert_eq!((row.event.id().as_str(), row.event.event_type()), ("0193-from-elsewhere", "order.placed"));
    assert_eq!(row.event.payload().as_json(), Some(payload));
    assert_eq!((row.event.aggregate_type(), row.event.aggregate_id()), (GLOBAL_AGGREGATE, None));
    assert_eq!((row.event.tenant_id(), row.event.key(), row.event.headers().len()), (None, None, 0));
    assert_eq!((row.attempts, row.timed, row.status, row.partition), (0, false, Status::New, None));
    assert_eq!(row.event.occurred_at(), row.created_at, "without a time of its own it happened when it was inserted");
    Ok(())
}

/// A row that makes no event comes as such, with its reason, and its neighbours come too. It can be settled.
pub(super) async fn fetch_hands_over_an_undecodable_row_beside_the_others<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let around = write_around_a_broken_row(db).await?;
    let fetched = store.fetch(&all()).await?;
    let broken = broken_between(around, &fetched)?;

    let dead = Change::Dead { attempts: 0, error: broken.reason.clone() };
    settle_all(&*store, &node, &[broken.seq], &dead).await?;
    assert_eq!(store.fetch(&all()).await?.rows.len(), 2);
    Ok(())
}

/// Writes two events and a row between them that makes none.
pub(super) async fn write_around_a_broken_row<H: Harness>(db: &Db<H>) -> Result<[i64; 2], BoxError> {
    let first = db.write(vec![event()?]).await?[0];
    db.insert_broken("broken").await?;
    Ok([first, db.write(vec![event()?]).await?[0]])
}

/// The row that makes no event, which was read with its neighbours.
pub(super) fn broken_between([first, last]: [i64; 2], fetched: &Fetched) -> Result<&BrokenRow, BoxError> {
    let [FetchedRow::Row(before), FetchedRow::Broken(broken), FetchedRow::Row(after)] = &fetched.rows[..] else {
        return Err(format!("{:?}", fetched.rows).into());
    };
    assert_eq!((before.seq, after.seq), (first, last));
    assert!(first < broken.seq && broken.seq < last);
    assert_eq!((broken.attempts, broken.timed), (0, false));
    assert!(broken.reason.contains("headers"), "the reason names the column: {}", broken.reason);
    Ok(broken)
}

/// A row whose payload and headers are too large together comes without them, and its neighbours come too; one that just fits is an event.
pub(super) async fn fetch_takes_no_event_from_a_row_that_is_too_large<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let table = db.table("event");
    let written = events(3)?;
    let seqs = db.write(written.clone()).await?;
    let node = peer(&*store).await?;
    let set = async |headers: &str| {
        let payload = H::sql_json(limits::ROW_BYTES - 12);
        let id = written[1].id();
        db.execute(&format!("UPDATE {table} SET payload = {payload}, headers = '{headers}' WHERE event_id = '{id}'"))
            .await
    };
    // A server of MariaDB or MySQL with its default sends packets that are smaller.
    let is_mysql = store.info().dialect == Dialect::MYSQL;
    for (headers, is_too_large) in [(r#"{"h": "1234"}"#, true), (r#"{"h": "12"}"#, is_mysql)] {
        set(headers).await?;
        for fetched in [store.fetch(&all()).await?, store.claim(&node, &all()).await?] {
            let [FetchedRow::Row(_), large, FetchedRow::Row(_)] = &fetched.rows[..] else {
                return Err(format!("{:?}", fetched.rows).into());
            };
            assert_eq!(fetched.rows.iter().map(FetchedRow::seq).collect::<Vec<_>>(), seqs);
            match large {
                FetchedRow::Broken(broken) => {
                    let reason = &broken.reason;
                    assert!(
                        is_too_large && reason.starts_with("payload cannot be read: with the headers it has 1"),
                        "{reason}"
                    );
                    assert!(!is_mysql || broken.content_bytes == 0, "it is left in the table");
                }
                FetchedRow::Row(row) => assert_eq!((is_too_large, row.event.headers().len()), (false, 1)),
            }
        }
    }
    let record = store.record(seqs[1]).await?;
    assert!(
        record.is_some_and(|record| record.event_type == written[1].event_type()),
        "who looks it up sees the rest of it"
    );
    Ok(())
}

/// A row with both payloads, with neither, or with bytes of which nobody says what they are, makes no event on any database.
pub(super) async fn fetch_takes_no_event_from_a_row_without_one_payload<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let table = db.table("event");
    let bytes = || Envelope::builder("test.bytes").payload_bytes("application/octet-stream", vec![1, 2]).build();
    let written = [bytes()?, bytes()?, bytes()?, bytes()?];
    let seqs = db.write(written.to_vec()).await?;
    for (event, change) in written.iter().zip(["payload = '1'", "payload_bytes = NULL", "content_type = NULL"]) {
        db.execute(&format!("UPDATE {table} SET {change} WHERE event_id = '{}'", event.id())).await?;
    }
    let node = peer(&*store).await?;
    for fetched in [store.fetch(&all()).await?, store.claim(&node, &all()).await?] {
        let [FetchedRow::Broken(both), FetchedRow::Broken(neither), FetchedRow::Broken(unnamed), FetchedRow::Row(good)] =
            &fetched.rows[..]
        else {
            return Err(format!("{:?}", fetched.rows).into());
        };
        assert!(both.reason.contains("payload_bytes") && both.reason.contains("both set"), "{}", both.reason);
        assert!(neither.reason.contains("payload_bytes") && neither.reason.contains("both NULL"), "{}", neither.reason);
        assert!(unnamed.reason.contains("content_type"), "{}", unnamed.reason);
        assert_eq!([both.seq, neither.seq, unnamed.seq, good.seq], seqs[..]);
    }
    Ok(())
}
