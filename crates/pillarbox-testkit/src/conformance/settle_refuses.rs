use pillarbox_core::ownership::{Fence, begun_by};
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{FetchedRow, RowId};

use crate::Harness;
use crate::events::{
    Draft, HOUR, Owned, all, claimed, columns, each_kind, entitled, event, events, first_attempt,
    others_in_the_place_of, owned, rows, settle, some, verdict,
};
use crate::nodes::{member, owner, peer, stranger};
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// A stand-by's, a stranger's and a former owner's verdicts change nothing and all come back, of every kind.
pub(super) async fn settle_refuses_a_node_that_is_not_the_owner<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(3)?);
    let seqs = db.write(written.clone()).await?;
    let verdicts = one_of_each(&seqs, 0);
    let before = rows(db, &written).await?;
    let nobody_owns_it = member(&*store).await?;
    assert_eq!(settle(&*store, &nobody_owns_it, Fence::Table, &verdicts).await?, seqs, "nobody owns it");

    let former = owner(&*store).await?;
    for (who, node) in [("a stand-by", nobody_owns_it), ("a stranger", stranger()?)] {
        assert_eq!(settle(&*store, &node, Fence::Table, &verdicts).await?, seqs, "{who}");
    }
    db.expire(&former).await?;
    let present = owner(&*store).await?;
    assert_eq!(settle(&*store, &former, Fence::Table, &verdicts).await?, seqs, "the former owner");
    assert_eq!(rows(db, &written).await?, before, "no refused verdict changes a row");
    assert!(settle(&*store, &present, Fence::Table, &verdicts).await?.is_empty(), "the owner");
    Ok(())
}

/// If each row names its node, only that node's verdicts count: not those on a row that nobody holds, that another node holds, or
/// that was taken from it. An attempt that was announced is still its own.
pub(super) async fn settle_refuses_a_row_that_another_node_holds<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(3)?);
    let seqs = db.write(written.clone()).await?;
    let [first, second] = [peer(&*store).await?, peer(&*store).await?];
    let verdicts = one_of_each(&seqs, 0);
    let settling = async |node| settle(&*store, node, Fence::Row, &verdicts).await;

    assert_eq!(settling(&first).await?, seqs, "nobody holds them");
    assert_eq!(claimed(&*store, &first, &all()).await?, seqs);
    let before = rows(db, &written).await?;
    assert_eq!(settling(&second).await?, seqs, "another node holds them");
    db.expire(&first).await?;
    assert_eq!(store.reclaim(&second, false).await?.freed, 3);
    assert_eq!(settling(&first).await?, seqs, "they were taken from it");
    assert_eq!(settling(&second).await?, seqs, "and nobody has claimed them since");
    let freed = rows(db, &written).await?;
    assert!(before.iter().zip(&freed).all(|(before, after)| (before.status, before.attempts) == (after.status, 0)));

    assert_eq!(claimed(&*store, &second, &some(3)).await?, seqs);
    assert!(store.begin_attempt(&second, Fence::Row, &first_attempt(&*store, seqs[0]).await?).await?);
    assert_eq!(columns(db, &written[0]).await?.locked_by, Some(begun_by(&second)));
    assert!(settling(&second).await?.is_empty(), "they are its own");
    let after = rows(db, &written).await?;
    assert_eq!(
        after.iter().map(|row| (row.status, row.locked_by.as_deref())).collect::<Vec<_>>(),
        [(1, None), (2, None), (3, None)]
    );

    // Beside each other in one call: what is the node's own is recorded, the rest comes back.
    let more = db.write(vec![event()?, event()?]).await?;
    assert_eq!(claimed(&*store, &second, &some(1)).await?, more[..1]);
    let both: Vec<_> = more.iter().map(|seq| verdict(*seq, 0, Change::Done)).collect();
    assert_eq!(settle(&*store, &second, Fence::Row, &both).await?, more[1..]);
    Ok(())
}

/// DONE and DEAD are for ever, whatever the verdict.
pub(super) async fn settle_refuses_terminal_rows<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(6)?).await?;
    let dead = Change::Dead { attempts: 0, error: "gave up".to_owned() };
    let ends = [vec![Change::Done; 3], vec![dead; 3]].concat();
    let ending: Vec<_> = seqs.iter().zip(ends).map(|(seq, change)| verdict(*seq, 0, change)).collect();
    assert!(settle(&*store, &node, Fence::Table, &ending).await?.is_empty());

    let before = rows(db, &written).await?;
    let again = [one_of_each(&seqs[..3], 0), one_of_each(&seqs[3..], 0)].concat();
    assert_eq!(settle(&*store, &node, Fence::Table, &again).await?, seqs);
    assert_eq!(rows(db, &written).await?, before);
    Ok(())
}

/// A verdict on an attempt that is not the row's current one is void; those beside it count.
pub(super) async fn settle_refuses_unexpected_attempts<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(6)?).await?;
    let before = rows(db, &written).await?;
    assert_eq!(settle(&*store, &node, Fence::Table, &one_of_each(&seqs[..3], 1)).await?, seqs[..3], "too many");
    assert_eq!(rows(db, &written).await?, before);

    let mixed = [one_of_each(&seqs[..3], 7), one_of_each(&seqs[3..], 0)].concat();
    assert_eq!(settle(&*store, &node, Fence::Table, &mixed).await?, seqs[..3], "those that do not fit, and only those");
    let after = rows(db, &written).await?;
    assert_eq!(after[..3], before[..3]);
    assert_eq!(after[3..].iter().map(|row| row.status).collect::<Vec<_>>(), [1, 2, 3]);
    Ok(())
}

/// A verdict whose first try took long arrives after its second made the row DEAD and an operator replayed it: it changes nothing of
/// the row, which is to be delivered once more. Of every kind, by every right to a row, and beside verdicts that count.
pub(super) async fn settle_refuses_what_was_decided_before_a_replay<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let changes = each_kind();
    for fence in [Fence::Table, Fence::Partition, Fence::Row] {
        let written = events(2)?;
        let seqs = db.write(written.clone()).await?;
        let node = entitled(&*store, fence).await?;
        let there = rows_at(&*store, &seqs).await?;
        let verdict = |index: usize, replays, change: &Change| Verdict {
            row: there[index].clone(),
            expected: Expected { attempts: 0, replays },
            change: change.clone(),
        };
        assert!(store.settle(&node, fence, &[verdict(0, 0, &changes[4])]).await?.is_empty(), "{fence:?}");
        assert_eq!(store.replay(&seqs[..1]).await?, seqs[..1], "{fence:?}");
        if fence == Fence::Row {
            assert_eq!(claimed(&*store, &node, &all()).await?, seqs, "{fence:?}");
        }
        let replayed = columns(db, &written[0]).await?;
        for change in &changes {
            for replays in [0, 2] {
                let late = verdict(0, replays, change);
                assert_eq!(store.settle(&node, fence, &[late]).await?, seqs[..1], "{fence:?}: {change:?}");
                assert_eq!(columns(db, &written[0]).await?, replayed, "{fence:?}: {change:?}");
            }
        }
        let both = [verdict(0, 0, &Change::Done), verdict(1, 0, &Change::Done)];
        assert_eq!(store.settle(&node, fence, &both).await?, seqs[..1], "{fence:?}");
        assert_eq!(columns(db, &written[0]).await?, replayed, "{fence:?}");
        assert_eq!(columns(db, &written[1]).await?.status, 1, "{fence:?}");

        let fetched = if fence == Fence::Row { store.claim(&node, &all()).await? } else { store.fetch(&all()).await? };
        let [FetchedRow::Row(read)] = &fetched.rows[..] else { return Err(format!("{fence:?}: {fetched:?}").into()) };
        let last = match fence {
            Fence::Table => &changes[0],
            Fence::Partition => &changes[2],
            Fence::Row => &changes[4],
        };
        let verdict = Verdict { row: read.id(), expected: read.expected(), change: last.clone() };
        assert!(store.settle(&node, fence, &[verdict]).await?.is_empty(), "{fence:?}");
        store.leave(&node).await?;
    }
    Ok(())
}

/// An answer that was lost makes the engine settle again: the second time is refused and changes nothing.
pub(super) async fn settle_twice_counts_once<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(3)?).await?;
    let verdicts = one_of_each(&seqs, 0);
    assert!(settle(&*store, &node, Fence::Table, &verdicts).await?.is_empty());
    let before = rows(db, &written).await?;
    assert_eq!(settle(&*store, &node, Fence::Table, &verdicts).await?, seqs);
    assert_eq!(rows(db, &written).await?, before);
    assert_eq!(before.iter().map(|row| row.attempts).collect::<Vec<_>>(), [0, 1, 1]);
    Ok(())
}

/// A verdict on a row that is not there comes back; the row does not.
pub(super) async fn settle_never_inserts<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs, .. } = owned(db, events(1)?).await?;
    let absent: Vec<i64> = (seqs[0] + 1..=seqs[0] + 3).collect();
    assert_eq!(settle(&*store, &node, Fence::Table, &one_of_each(&absent, 0)).await?, absent);
    let counts = store.counts().await?;
    assert_eq!((counts.new, counts.done, counts.retry, counts.dead), (1, 0, 0, 0));
    assert!(settle(&*store, &node, Fence::Table, &[]).await?.is_empty(), "no verdicts are fine");
    Ok(())
}

/// A database that lost its last rows gives their numbers again: a verdict on an event that was lost changes nothing of the one
/// that has its place. Of every kind, by every right to a row, alone and beside verdicts that count.
pub(super) async fn settle_refuses_another_event_with_the_same_seq<H: Harness>(db: &Db<H>) -> Outcome {
    refuses_others_in_its_place(db, 0).await
}

/// Of an event with several handlers each has a row: a verdict on one of these rows is not one on another.
pub(super) async fn settle_refuses_another_handler_of_the_same_event<H: Harness>(db: &Db<H>) -> Outcome {
    refuses_others_in_its_place(db, 1).await
}

async fn refuses_others_in_its_place<H: Harness>(db: &Db<H>, which: usize) -> Outcome {
    let store = db.store();
    let changes = each_kind();
    for fence in [Fence::Table, Fence::Partition, Fence::Row] {
        let written = events(3)?;
        let seqs = db.write(written.clone()).await?;
        let node = entitled(&*store, fence).await?;
        let there = rows_at(&*store, &seqs).await?;
        let before = rows(db, &written).await?;
        let others: Vec<RowId> = there.iter().map(|row| others_in_the_place_of(row)[which].clone()).collect();
        let verdict = |row: &RowId, change: &Change| Verdict {
            row: row.clone(),
            expected: Expected::FIRST,
            change: change.clone(),
        };
        for change in &changes {
            let verdicts: Vec<Verdict> = others.iter().map(|row| verdict(row, change)).collect();
            let mut refused = store.settle(&node, fence, &verdicts).await?;
            refused.sort_unstable();
            assert_eq!(refused, seqs, "{fence:?}: {change:?}");
            assert_eq!(rows(db, &written).await?, before, "{fence:?}: {change:?}");
        }
        // Each in the place of the other: both are there, and neither where its verdict says.
        if which == 0 {
            let swapped = [RowId { seq: seqs[1], ..there[0].clone() }, RowId { seq: seqs[0], ..there[1].clone() }];
            let retry = &changes[2];
            let verdicts: Vec<Verdict> = swapped.iter().map(|row| verdict(row, retry)).collect();
            assert_eq!(store.settle(&node, fence, &verdicts).await?.len(), 2, "{fence:?}");
            assert_eq!(rows(db, &written).await?, before, "{fence:?}");
        }
        // Beside each other in one call.
        for (change, count) in [(&Change::Done, 1), (&Change::Remove, 2)] {
            let verdicts = [verdict(&others[0], change), verdict(&there[count], change)];
            assert_eq!(store.settle(&node, fence, &verdicts).await?, seqs[..1], "{fence:?}: {change:?}");
        }
        assert_eq!(columns(db, &written[0]).await?, before[0], "{fence:?}");
        assert_eq!(columns(db, &written[1]).await?.status, 1, "{fence:?}");
        assert_eq!(db.columns(written[2].id().as_str()).await?, None, "{fence:?}");
        let last = [verdict(&there[0], &Change::Done)];
        assert!(store.settle(&node, fence, &last).await?.is_empty(), "{fence:?}");
        store.leave(&node).await?;
    }
    Ok(())
}

/// For three rows: DONE, RETRY and DEAD, in this order.
fn one_of_each(seqs: &[i64], expected_attempts: u32) -> Vec<Draft> {
    let attempts = expected_attempts + 1;
    let changes = [
        Change::Done,
        Change::Retry { attempts, delay: HOUR, error: Some("later".to_owned()) },
        Change::Dead { attempts, error: "never".to_owned() },
    ];
    seqs.iter().zip(changes).map(|(seq, change)| verdict(*seq, expected_attempts, change)).collect()
}
