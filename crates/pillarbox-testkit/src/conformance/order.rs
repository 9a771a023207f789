use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::row::Change;
use pillarbox_core::store::{Fetch, FetchScope};

use crate::Harness;
use crate::events::{
    HOUR, all, columns, delayed, event, events, everything, keyed, others_in_the_place_of, retry_in, row_at, seq_of,
    seqs_of, settle_all, within,
};
use crate::nodes::owner;
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// Rows without a partition, or with one that does not exist, get the one they are given; those that have one keep it, and a row that is gone does not
/// come back.
pub(super) async fn assign_partitions_sets_missing_partitions_only<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let written = keyed("order-1")?;
    let seq = db.write(vec![written.clone()]).await?[0];
    for id in ["first", "second", "third"] {
        db.insert_three_columns(id, "test.event", "{}").await?;
    }
    let [first, second, third] = [seq_of(db, "first").await?, seq_of(db, "second").await?, seq_of(db, "third").await?];
    db.set_partition("first", 256).await?;
    db.set_partition("second", -1).await?;
    store.assign_partitions(&[]).await?;
    let stamp = async |stamps: &[(i64, u8)]| {
        let seqs: Vec<i64> = stamps.iter().map(|(seq, _)| *seq).collect();
        let partitions = stamps.iter().map(|(_, partition)| *partition);
        let stamps: Vec<_> = rows_at(&*store, &seqs).await?.into_iter().zip(partitions).collect();
        store.assign_partitions(&stamps).await
    };
    stamp(&[(second, 255), (seq, 7), (first, 0), (third + 1, 7)]).await?;
    let partitions = async || {
        let mut partitions = vec![columns(db, &written).await?.partition];
        for id in ["first", "second", "third"] {
            partitions.push(db.columns(id).await?.and_then(|row| row.partition));
        }
        Ok::<_, BoxError>(partitions)
    };
    assert_eq!(partitions().await?, [Some(33), Some(0), Some(255), None]);
    stamp(&[(first, 9), (second, 9), (third, 9)]).await?;
    assert_eq!(partitions().await?, [Some(33), Some(0), Some(255), Some(9)], "who comes later changes nothing");

    let found = store.fetch(&within(FetchScope { partitions: 9..=33, ..everything() })).await?;
    assert_eq!(seqs_of(&found), [seq, third]);
    assert_eq!(store.counts().await?.new, 4);
    Ok(())
}

/// A delayed or failed event whose time has come is one like any other from then on, in its place. One whose time has not
/// come waits, and what is over is over.
pub(super) async fn promote_due_puts_due_rows_in_their_place<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let late = [delayed()?, delayed()?, delayed()?, delayed()?];
    let seqs = db.write(late.to_vec()).await?;
    let [ripe, unasked, unripe, ended] = seqs[..] else { return Err("four rows were written".into()) };
    let failed = db.write(events(2)?).await?;
    let last = db.write(vec![event()?]).await?[0];
    settle_all(&*store, &node, &failed[..1], &retry_in(Duration::ZERO)).await?;
    settle_all(&*store, &node, &failed[1..], &retry_in(HOUR)).await?;
    for event in [&late[0], &late[1], &late[3]] {
        db.make_due(event.id().as_str()).await?;
    }
    settle_all(&*store, &node, &[ended], &Change::Done).await?;

    store.promote_due(&[]).await?;
    let asked = [unripe, ripe, failed[0], failed[1], ended, last, last + 1];
    store.promote_due(&rows_at(&*store, &asked).await?).await?;
    let found = store.fetch(&all()).await?;
    let (timed, untimed): (Vec<_>, Vec<_>) = found.rows.iter().partition(|row| row.is_timed());
    assert_eq!(untimed.iter().map(|row| row.seq()).collect::<Vec<_>>(), [ripe, failed[0], last]);
    assert_eq!(timed.iter().map(|row| row.seq()).collect::<Vec<_>>(), [unasked]);
    assert!(found.next_due.is_some(), "two are still to come");
    let above = store.fetch(&Fetch { above: failed[0], exclude: vec![unasked], ..all() }).await?;
    assert_eq!(seqs_of(&above), [last], "they are behind the cursor like any other");
    settle_all(&*store, &node, &[ripe, failed[0]], &Change::Done).await?;
    assert!(columns(db, &late[2]).await?.timed);
    assert_eq!(store.counts().await?.retry, 1, "it waits for its time still");
    Ok(())
}

/// A partition is that of an event, not of a place.
pub(super) async fn assign_partitions_leaves_another_event_with_the_same_seq_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    db.insert_three_columns("unstamped", "test.event", "{}").await?;
    let there = row_at(&*store, seq_of(db, "unstamped").await?).await?;
    let [another, _] = others_in_the_place_of(&there);
    store.assign_partitions(&[(another, 7)]).await?;
    assert_eq!(db.columns("unstamped").await?.and_then(|row| row.partition), None);
    store.assign_partitions(&[(there, 9)]).await?;
    assert_eq!(db.columns("unstamped").await?.and_then(|row| row.partition), Some(9));
    Ok(())
}

/// So is the end of a delay.
pub(super) async fn promote_due_leaves_another_event_with_the_same_seq_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, late) = (db.store(), delayed()?);
    let seq = db.write(vec![late.clone()]).await?[0];
    db.make_due(late.id().as_str()).await?;
    let there = row_at(&*store, seq).await?;
    let [another, _] = others_in_the_place_of(&there);
    store.promote_due(&[another]).await?;
    assert!(columns(db, &late).await?.timed);
    store.promote_due(&[there]).await?;
    assert!(!columns(db, &late).await?.timed);
    Ok(())
}
