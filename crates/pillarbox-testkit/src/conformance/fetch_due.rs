use std::time::Duration;

use pillarbox_core::error::StoreError;
use pillarbox_core::event::Envelope;
use pillarbox_core::row::Change;
use pillarbox_core::store::{Fetch, Fetched};
use tokio::time::{Instant, sleep};

use crate::Harness;
use crate::events::{
    HOUR, Owned, all, delayed, event, events, ids, owned, retry_in, seqs_of, settle_all, settle_held, some, untimed,
};
use crate::nodes::{owner, peer};
use crate::run::{Db, Outcome};

/// A delayed event and a retried one come when their time has come and not before; the earliest due time comes first.
pub(super) async fn fetch_waits_for_the_due_time<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let (late, retried) = (delayed()?, event()?);
    db.write(vec![late.clone()]).await?;
    let seqs = db.write(vec![retried.clone()]).await?;
    settle_all(&*store, &node, &seqs, &retry_in(HOUR * 2)).await?;
    assert!(store.fetch(&all()).await?.rows.is_empty(), "neither is due");
    for event in [&retried, &late] {
        db.make_due(event.id().as_str()).await?;
    }
    assert_eq!(store.fetch(&all()).await?.rows.len(), 2, "both are");

    // In real time: it is due when the store says that it will be, by the one clock that counts.
    let soon = Envelope::builder("test.soon").payload_json("{}").deliver_after(Duration::from_millis(300)).build()?;
    let started = Instant::now();
    db.write(vec![soon.clone()]).await?;
    let exclude = seqs_of(&store.fetch(&all()).await?);
    let fetch = Fetch { exclude, ..all() };
    let fetched = when_due(Duration::from_millis(300), async || store.fetch(&fetch).await).await?;
    assert_eq!(ids(&fetched.rows)?, [soon.id().as_str()]);
    // Databases on other hosts have clocks of their own, so this leaves room.
    assert!(started.elapsed() > Duration::from_millis(200), "{:?}", started.elapsed());
    Ok(())
}

/// Reads again and again, each time when the store has said that a row will be due, which is after `most` at most.
pub(super) async fn when_due(
    most: Duration,
    read: impl AsyncFn() -> Result<Fetched, StoreError>,
) -> Result<Fetched, StoreError> {
    loop {
        let fetched = read().await?;
        let Some(wait) = fetched.next_due else { return Ok(fetched) };
        assert!(fetched.rows.is_empty() && wait <= most, "{fetched:?}");
        sleep(wait).await;
    }
}

/// If both kinds abound, rows with a due time get a third, rounded up, and those without one the rest.
pub(super) async fn fetch_serves_both_kinds_under_load<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs: retried, .. } = owned(db, events(300)?).await?;
    settle_all(&*store, &node, &retried, &retry_in(Duration::ZERO)).await?;
    db.write(events(300)?).await?;
    for limit in [1, 2, 3, 4, 5, 6, 7, 30, 99, 200] {
        let rows = store.fetch(&some(limit)).await?.rows;
        let timed = rows.iter().filter(|row| row.is_timed()).count();
        assert_eq!(rows.len(), limit);
        assert_eq!(timed, limit.div_ceil(3), "of {limit} rows, these had a due time");
        let both_in_order = [true, false]
            .iter()
            .all(|kind| rows.iter().filter(|row| row.is_timed() == *kind).map(|row| row.seq()).is_sorted());
        assert!(both_in_order, "each kind is in its order");
    }
    // Where one kind has little to offer, the other takes the room.
    let few = retried[..290].to_vec();
    let rows = store.fetch(&Fetch { exclude: few, ..some(100) }).await?.rows;
    assert_eq!(rows.iter().filter(|row| row.is_timed()).count(), 10);
    assert_eq!(rows.len(), 100);
    Ok(())
}

/// The time until the next row is due is known unless the limit was reached, and only if there is such a row.
pub(super) async fn fetch_reports_the_next_due_time<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    assert_eq!(store.fetch(&all()).await?.next_due, None, "an empty table");
    let seqs = db.write(events(3)?).await?;
    assert_eq!(store.fetch(&all()).await?.next_due, None, "no row waits for a time");

    settle_all(&*store, &node, &seqs[..1], &retry_in(HOUR * 2)).await?;
    let two_hours = store.fetch(&all()).await?.next_due;
    assert!(two_hours.is_some_and(|wait| wait > HOUR && wait <= HOUR * 2), "{two_hours:?}");
    db.write(vec![delayed()?]).await?;
    let one_hour = store.fetch(&all()).await?.next_due;
    // An hour by the writer's clock, which may be a little behind the database's.
    assert!(one_hour.is_some_and(|wait| wait > HOUR / 2 && wait < HOUR + HOUR / 2), "{one_hour:?}");

    let limited = store.fetch(&some(2)).await?;
    assert_eq!((limited.rows.len(), limited.next_due), (2, None), "the limit was reached");
    // A row that is due already is no longer one to wait for.
    settle_all(&*store, &node, &seqs[1..2], &retry_in(Duration::ZERO)).await?;
    let again = store.fetch(&all()).await?;
    assert_eq!(again.rows.len(), 2);
    assert!(again.next_due.is_some_and(|wait| wait > HOUR / 2), "{:?}", again.next_due);
    Ok(())
}

/// Writers that stamp both times by a clock of their own, which may be ahead, mean no delay by a due time that is not after the
/// creation: the row comes at once and in its place. Once it has failed, its due time is the database's.
pub(super) async fn fetch_delays_no_row_that_is_due_when_it_is_created<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let written = events(7)?;
    let seqs = db.write(written.clone()).await?;
    let table = db.table("event");
    // An hour ahead, behind, due before it was created, and really delayed: by the writer's clock, and to a time that has passed.
    for (event, due, created) in [(1, 3600, 3600), (2, -3600, -3600), (3, 3600, 7200), (4, 7200, 3600), (5, -60, -120)]
    {
        let (due, created, id) = (H::sql_time(due), H::sql_time(created), written[event].id());
        db.execute(&format!("UPDATE {table} SET available_at = {due}, created_at = {created} WHERE event_id = '{id}'"))
            .await?;
    }
    let (ahead, behind, before) = (seqs[1], seqs[2], seqs[3]);
    let fetched = store.fetch(&all()).await?;
    let found: Vec<(i64, bool)> = fetched.rows.iter().map(|row| (row.seq(), row.is_timed())).collect();
    let at_once = [seqs[0], ahead, behind, before, seqs[6]].map(|seq| (seq, false));
    assert_eq!(found, [&at_once[..], &[(seqs[5], true)]].concat());
    assert!(fetched.next_due.is_some_and(|wait| wait > HOUR), "{:?}", fetched.next_due);
    let above = store.fetch(&Fetch { above: ahead, ..all() }).await?;
    assert_eq!(seqs_of(&above), [behind, before, seqs[6], seqs[5]], "they are behind the cursor like any other");
    let claimed = store.claim(&node, &all()).await?;
    assert_eq!(claimed.rows.iter().map(|row| (row.seq(), row.is_timed())).collect::<Vec<_>>(), found);
    assert_eq!(store.backlog().await?.delayed, 1);

    // Held, it keeps its place. Tried again later, it waits, although it says that it was created later than that.
    let held = Change::RetryInPlace { attempts: 0, error: "not yet".to_owned() };
    settle_held(&*store, &node, &[ahead], &held).await?;
    settle_held(&*store, &node, &[before], &retry_in(HOUR)).await?;
    let fetched = store.fetch(&all()).await?;
    assert_eq!(untimed(&fetched), [seqs[0], ahead, behind, seqs[6]]);
    assert!(!seqs_of(&fetched).contains(&before), "it waits for its time");
    Ok(())
}
