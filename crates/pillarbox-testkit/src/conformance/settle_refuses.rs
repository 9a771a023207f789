use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Fence, begun_by};
use pillarbox_core::settle::{Change, Verdict};

use crate::Harness;
use crate::events::{HOUR, all, claimed, columns, event, events, first_attempt, refused, rows, some, verdict};
use crate::nodes::{member, owner, peer, stranger};
use crate::run::Outcome;

/// A stand-by's, a stranger's and a former owner's verdicts change nothing and all come back, of every kind.
pub(super) async fn settle_refuses_a_node_that_is_not_the_owner<H: Harness>(db: &H) -> Outcome {
    let (store, written) = (db.store(), events(3)?);
    let seqs = db.write(written.clone()).await?;
    let verdicts = one_of_each(&seqs, 0);
    let before = rows(db, &written).await?;
    let nobody_owns_it = member(&*store).await?;
    assert_eq!(refused(&*store, &nobody_owns_it, &verdicts).await?, seqs, "nobody owns it");

    let former = owner(&*store).await?;
    for (who, node) in [("a stand-by", nobody_owns_it), ("a stranger", stranger()?)] {
        assert_eq!(refused(&*store, &node, &verdicts).await?, seqs, "{who}");
    }
    db.expire(&former).await?;
    let present = owner(&*store).await?;
    assert_eq!(refused(&*store, &former, &verdicts).await?, seqs, "the former owner");
    assert_eq!(rows(db, &written).await?, before, "no refused verdict changes a row");
    assert!(store.settle(&present, Fence::Table, &verdicts).await?.is_empty(), "the owner");
    Ok(())
}

/// Where each row names its node, only that node's verdicts count: not those on a row that nobody holds, that another
/// node holds, or that was taken from it. An attempt that was announced is still its own.
pub(super) async fn settle_refuses_a_row_that_another_node_holds<H: Harness>(db: &H) -> Outcome {
    let (store, written) = (db.store(), events(3)?);
    let seqs = db.write(written.clone()).await?;
    let [first, second] = [peer(&*store).await?, peer(&*store).await?];
    let verdicts = one_of_each(&seqs, 0);
    let settle = async |node| {
        let mut refused = store.settle(node, Fence::Row, &verdicts).await?;
        refused.sort_unstable();
        Ok::<_, BoxError>(refused)
    };

    assert_eq!(settle(&first).await?, seqs, "nobody holds them");
    assert_eq!(claimed(&*store, &first, &all()).await?, seqs);
    let before = rows(db, &written).await?;
    assert_eq!(settle(&second).await?, seqs, "another node holds them");
    db.expire(&first).await?;
    assert_eq!(store.reclaim(&second, false).await?.freed, 3);
    assert_eq!(settle(&first).await?, seqs, "they were taken from it");
    assert_eq!(settle(&second).await?, seqs, "and nobody has claimed them since");
    let freed = rows(db, &written).await?;
    assert!(before.iter().zip(&freed).all(|(before, after)| (before.status, before.attempts) == (after.status, 0)));

    assert_eq!(claimed(&*store, &second, &some(3)).await?, seqs);
    assert!(store.begin_attempt(&second, Fence::Row, &first_attempt(seqs[0])).await?);
    assert_eq!(columns(db, &written[0]).await?.locked_by, Some(begun_by(&second)));
    assert!(settle(&second).await?.is_empty(), "they are its own");
    let after = rows(db, &written).await?;
    assert_eq!(
        after.iter().map(|row| (row.status, row.locked_by.as_deref())).collect::<Vec<_>>(),
        [(1, None), (2, None), (3, None)]
    );

    // Beside each other in one call: what is the node's own is recorded, the rest comes back.
    let more = db.write(vec![event()?, event()?]).await?;
    assert_eq!(claimed(&*store, &second, &some(1)).await?, more[..1]);
    let both: Vec<_> = more.iter().map(|seq| verdict(*seq, 0, Change::Done)).collect();
    assert_eq!(store.settle(&second, Fence::Row, &both).await?, more[1..]);
    Ok(())
}

/// DONE and DEAD are for ever, whatever the verdict.
pub(super) async fn settle_refuses_terminal_rows<H: Harness>(db: &H) -> Outcome {
    let (store, written) = (db.store(), events(6)?);
    let node = owner(&*store).await?;
    let seqs = db.write(written.clone()).await?;
    let dead = Change::Dead { attempts: 0, error: "gave up".to_owned() };
    let ends = [[Change::Done; 1].iter().cycle().take(3).cloned().collect::<Vec<_>>(), vec![dead; 3]].concat();
    let ending: Vec<_> = seqs.iter().zip(ends).map(|(seq, change)| verdict(*seq, 0, change)).collect();
    assert!(store.settle(&node, Fence::Table, &ending).await?.is_empty());

    let before = rows(db, &written).await?;
    let again = [one_of_each(&seqs[..3], 0), one_of_each(&seqs[3..], 0)].concat();
    assert_eq!(refused(&*store, &node, &again).await?, seqs);
    assert_eq!(rows(db, &written).await?, before);
    Ok(())
}

/// A verdict on an attempt that is not the row's current one is void; those beside it count.
pub(super) async fn settle_refuses_unexpected_attempts<H: Harness>(db: &H) -> Outcome {
    let (store, written) = (db.store(), events(6)?);
    let node = owner(&*store).await?;
    let seqs = db.write(written.clone()).await?;
    let before = rows(db, &written).await?;
    assert_eq!(refused(&*store, &node, &one_of_each(&seqs[..3], 1)).await?, seqs[..3], "too many");
    assert_eq!(rows(db, &written).await?, before);

    let mixed = [one_of_each(&seqs[..3], 7), one_of_each(&seqs[3..], 0)].concat();
    assert_eq!(refused(&*store, &node, &mixed).await?, seqs[..3], "those that do not fit, and only those");
    let after = rows(db, &written).await?;
    assert_eq!(after[..3], before[..3]);
    assert_eq!(after[3..].iter().map(|row| row.status).collect::<Vec<_>>(), [1, 2, 3]);
    Ok(())
}

/// An answer that was lost makes the engine settle again: the second time is refused and changes nothing.
pub(super) async fn settle_twice_counts_once<H: Harness>(db: &H) -> Outcome {
    let (store, written) = (db.store(), events(3)?);
    let node = owner(&*store).await?;
    let seqs = db.write(written.clone()).await?;
    let verdicts = one_of_each(&seqs, 0);
    assert!(store.settle(&node, Fence::Table, &verdicts).await?.is_empty());
    let before = rows(db, &written).await?;
    assert_eq!(refused(&*store, &node, &verdicts).await?, seqs);
    assert_eq!(rows(db, &written).await?, before);
    assert_eq!(before.iter().map(|row| row.attempts).collect::<Vec<_>>(), [0, 1, 1]);
    Ok(())
}

/// A verdict on a row that is not there comes back; the row does not.
pub(super) async fn settle_never_inserts<H: Harness>(db: &H) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let seqs = db.write(events(1)?).await?;
    let absent: Vec<i64> = (seqs[0] + 1..=seqs[0] + 3).collect();
    assert_eq!(refused(&*store, &node, &one_of_each(&absent, 0)).await?, absent);
    let counts = store.counts().await?;
    assert_eq!((counts.new, counts.done, counts.retry, counts.dead), (1, 0, 0, 0));
    assert!(store.settle(&node, Fence::Table, &[]).await?.is_empty(), "no verdicts are fine");
    Ok(())
}

/// For three rows: DONE, RETRY and DEAD, in this order.
fn one_of_each(seqs: &[i64], expected_attempts: u32) -> Vec<Verdict> {
    let attempts = expected_attempts + 1;
    let changes = [
        Change::Done,
        Change::Retry { attempts, delay: HOUR, error: Some("later".to_owned()) },
        Change::Dead { attempts, error: "never".to_owned() },
    ];
    seqs.iter().zip(changes).map(|(seq, change)| verdict(*seq, expected_attempts, change)).collect()
}
