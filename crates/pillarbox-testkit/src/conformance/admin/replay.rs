use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::ownership::Fence;
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{Counts, Dialect, FetchedRow};

use crate::Harness;
use crate::events::{HOUR, all, claimed, columns, delayed, event, events, rows, settle_held, some};
use crate::nodes::peer;
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// A revived event is as it was on the day it was written: without attempts, error, end or due time, free for any node.
pub(in crate::conformance) async fn replay_makes_a_dead_event_new_and_due<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let (plain, timed) = (event()?, delayed()?);
    let mut seqs = db.write(vec![plain.clone()]).await?;
    let written = columns(db, &plain).await?;
    seqs.extend(db.write(vec![timed.clone()]).await?);
    db.make_due(timed.id().as_str()).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?, seqs);
    settle_held(&*store, &node, &seqs, &Change::Dead { attempts: 5, error: "gave up".to_owned() }).await?;
    assert!(claimed(&*store, &node, &all()).await?.is_empty());

    let mut replayed = store.replay(&seqs).await?;
    replayed.sort_unstable();
    assert_eq!(replayed, seqs);
    assert_eq!(columns(db, &plain).await?, written);
    let records = store.records(plain.id().as_str()).await?;
    assert_eq!(records.iter().map(|record| record.replays).collect::<Vec<_>>(), [1]);
    let row = columns(db, &timed).await?;
    assert_eq!((row.status, row.attempts, row.timed, row.ended), (0, 0, false, false), "its due time is over");
    assert_eq!((row.last_error, row.locked_by), (None, None));
    assert_eq!(store.counts().await?, Counts { new: 2, ..Counts::default() });

    assert!(store.replay(&seqs).await?.is_empty(), "they are not DEAD any more");
    let another = peer(&*store).await?;
    assert_eq!(claimed(&*store, &another, &all()).await?, seqs);
    let row = |row| Verdict { row, expected: Expected { attempts: 0, replays: 1 }, change: Change::Done };
    let verdicts: Vec<Verdict> = rows_at(&*store, &seqs).await?.into_iter().map(row).collect();
    assert!(store.settle(&another, Fence::Row, &verdicts).await?.is_empty());
    Ok(())
}

/// A count at the end of its column's type stays there, and keeps no other row from being replayed.
pub(in crate::conformance) async fn replay_goes_on_where_a_row_was_replayed_too_often_to_count<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let written = events(2)?;
    let seqs = db.write(written.clone()).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?, seqs);
    settle_held(&*store, &node, &seqs, &Change::Dead { attempts: 1, error: "never".to_owned() }).await?;
    let highest = if store.info().dialect == Dialect::SQLITE { u32::MAX } else { i32::MAX.cast_unsigned() };
    let (table, id) = (db.table("event"), written[0].id());
    db.execute(&format!("UPDATE {table} SET replays = {highest} WHERE event_id = '{id}'")).await?;
    assert_eq!(store.replay(&seqs).await?.len(), 2);
    let read = |row: &FetchedRow| match row {
        FetchedRow::Row(row) => Some(row.replays),
        FetchedRow::Broken(_) => None,
    };
    assert_eq!(store.fetch(&all()).await?.rows.iter().map(read).collect::<Vec<_>>(), [Some(highest), Some(1)]);
    Ok(())
}

/// Of all that is asked for only what is DEAD is revived, and said to be.
pub(in crate::conformance) async fn replay_leaves_other_states_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let (written, seqs) = one_in_each_state(db).await?;
    let before = rows(db, &written).await?;
    assert!(store.replay(&[]).await?.is_empty());
    assert!(store.replay(&[seqs[0], seqs[1], seqs[2], seqs[3], seqs[4] + 1, -1]).await?.is_empty());
    assert_eq!(rows(db, &written).await?, before);
    assert_eq!(store.replay(&[&seqs[..], &[seqs[4] + 1]].concat()).await?, seqs[4..]);
    let after = rows(db, &written).await?;
    assert_eq!(after[..4], before[..4]);
    assert_eq!(after[4].status, 0);
    Ok(())
}

/// Of all that is asked for only what is DEAD is deleted, and said to be.
pub(in crate::conformance) async fn discard_deletes_dead_events_only<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let (written, seqs) = one_in_each_state(db).await?;
    let before = rows(db, &written).await?;
    assert!(store.discard(&[]).await?.is_empty());
    assert_eq!(store.discard(&[&seqs[..], &[seqs[4] + 1, -1]].concat()).await?, seqs[4..]);
    assert_eq!(rows(db, &written[..4]).await?, before[..4]);
    assert_eq!(db.columns(written[4].id().as_str()).await?, None);
    assert_eq!(store.records(written[4].id().as_str()).await?, []);
    assert_eq!(store.counts().await?, Counts { new: 2, done: 1, retry: 1, dead: 0, cancelled: 0, unknown: 0 });
    assert!(store.discard(&seqs).await?.is_empty());
    Ok(())
}

/// A NEW row that is free, one that is held, one that is DONE, one to be retried, and a DEAD one.
pub(super) async fn one_in_each_state<H: Harness>(db: &Db<H>) -> Result<(Vec<Envelope>, Vec<i64>), BoxError> {
    let (store, written) = (db.store(), events(5)?);
    let node = peer(&*store).await?;
    let seqs = db.write(written.clone()).await?;
    assert_eq!(claimed(&*store, &node, &some(5)).await?, seqs);
    store.release(&node, &rows_at(&*store, &seqs[..1]).await?).await?;
    settle_held(&*store, &node, &seqs[2..3], &Change::Done).await?;
    let retry = Change::Retry { attempts: 1, delay: HOUR, error: Some("later".to_owned()) };
    settle_held(&*store, &node, &seqs[3..4], &retry).await?;
    settle_held(&*store, &node, &seqs[4..], &Change::Dead { attempts: 1, error: "never".to_owned() }).await?;
    Ok((written, seqs))
}
