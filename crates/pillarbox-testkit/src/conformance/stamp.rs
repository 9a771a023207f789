use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::settle::Change;
use pillarbox_core::store::{Fetch, Scope};

use crate::Harness;
use crate::events::{all, columns, delayed, event, everything, keyed, seq_of, seqs_of, settle_all, within};
use crate::nodes::owner;
use crate::run::Outcome;

/// Rows without a partition, or with one that does not exist, get the one they are given; those that have one keep it, and a row that is gone does not
/// come back.
pub(super) async fn stamp_sets_missing_partitions_only<H: Harness>(db: &H) -> Outcome {
    let store = db.store();
    let written = keyed("order-1")?;
    let seq = db.write(vec![written.clone()]).await?[0];
    for id in ["first", "second", "third"] {
        db.insert_three_columns(id, "test.event", "{}").await?;
    }
    let [first, second, third] = [seq_of(db, "first").await?, seq_of(db, "second").await?, seq_of(db, "third").await?];
    db.set_partition("first", 256).await?;
    db.set_partition("second", -1).await?;
    store.stamp(&[]).await?;
    store.stamp(&[(second, 255), (seq, 7), (first, 0), (third + 1, 7)]).await?;
    let partitions = async || {
        let mut partitions = vec![columns(db, &written).await?.partition];
        for id in ["first", "second", "third"] {
            partitions.push(db.columns(id).await?.and_then(|row| row.partition));
        }
        Ok::<_, BoxError>(partitions)
    };
    assert_eq!(partitions().await?, [Some(33), Some(0), Some(255), None]);
    store.stamp(&[(first, 9), (second, 9), (third, 9)]).await?;
    assert_eq!(partitions().await?, [Some(33), Some(0), Some(255), Some(9)], "who comes later changes nothing");

    let found = store.fetch(&within(Scope { partitions: 9..=33, ..everything() })).await?;
    assert_eq!(seqs_of(&found), [seq, third]);
    assert_eq!(store.counts().await?.new, 4);
    Ok(())
}

/// A delayed event whose time has come is one like any other from then on, in its place. One that failed stays due, one
/// whose time has not come waits, and what is over is over.
pub(super) async fn ripen_puts_due_rows_in_their_place<H: Harness>(db: &H) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let late = [delayed()?, delayed()?, delayed()?, delayed()?];
    let seqs = db.write(late.to_vec()).await?;
    let [ripe, unasked, unripe, ended] = seqs[..] else { return Err("four rows were written".into()) };
    let failed = db.write(vec![event()?]).await?[0];
    let last = db.write(vec![event()?]).await?[0];
    settle_all(&*store, &node, &[failed], &Change::Retry { attempts: 0, delay: Duration::ZERO, error: None }).await?;
    for event in [&late[0], &late[1], &late[3]] {
        db.make_due(event.id().as_str()).await?;
    }
    settle_all(&*store, &node, &[ended], &Change::Done).await?;

    store.ripen(&[]).await?;
    store.ripen(&[unripe, ripe, failed, ended, last, last + 1]).await?;
    let found = store.fetch(&all()).await?;
    let (timed, untimed): (Vec<_>, Vec<_>) = found.rows.iter().partition(|row| row.is_timed());
    assert_eq!(untimed.iter().map(|row| row.seq()).collect::<Vec<_>>(), [ripe, last]);
    let mut timed: Vec<i64> = timed.iter().map(|row| row.seq()).collect();
    timed.sort_unstable();
    assert_eq!(timed, [unasked, failed]);
    assert!(found.next_due.is_some(), "one is still to come");
    let above = store.fetch(&Fetch { above: ripe, exclude: vec![unasked, failed], ..all() }).await?;
    assert_eq!(seqs_of(&above), [last], "it is behind the cursor like any other");
    settle_all(&*store, &node, &[ripe], &Change::Done).await?;
    assert!(columns(db, &late[2]).await?.timed);
    Ok(())
}
