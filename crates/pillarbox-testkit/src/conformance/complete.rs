use futures_util::future::join_all;
use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Fence, NodeId, Partitions};
use pillarbox_core::row::{Change, Expected, Position, Verdict};
use pillarbox_core::store::{RowId, Store};
use pillarbox_core::write::{Action, Command, Connection as _, Finish as _, insert};

use crate::Harness;
use crate::events::{
    Owned, all, claimed, columns, entitled, event, events, keyed_each, others_in_the_place_of, owned, record, row_at,
    rows, settle_all,
};
use crate::nodes::{member, owner, peer, rebalance, rebalancer, stranger};
use crate::run::{Db, Outcome, unrefused};

const RIGHTS: [Fence; 3] = [Fence::Table, Fence::Partition, Fence::Row];

/// The row is DONE for everybody once the transaction has committed, not before, as is what else was written in it; by every right to
/// a row.
pub(super) async fn complete_commits_with_the_transaction<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    for fence in RIGHTS {
        let (written, follow_up) = (event()?, event()?);
        let seq = db.write(vec![written.clone()]).await?[0];
        let node = entitled(&*store, fence).await?;
        let verdict = first(row_at(&*store, seq).await?, Change::Done);
        let mut transaction = begun(db).await?;
        insert(&*store, &mut transaction, vec![follow_up.clone()]).await?;
        assert_eq!(transaction.run(&store.complete(&node, fence, &verdict)).await?, 1, "{fence:?}");
        assert_eq!(columns(db, &written).await?.status, 0, "{fence:?}: not committed yet");
        transaction.commit().await?;
        let row = columns(db, &written).await?;
        assert_eq!((row.status, row.ended, row.locked_by), (1, true, None), "{fence:?}");
        assert_eq!(columns(db, &follow_up).await?.status, 0, "{fence:?}");
        store.leave(&node).await?;
    }
    Ok(())
}

/// A row that failed before is completed as any other, and its error is cleared.
pub(super) async fn complete_clears_the_error_of_earlier_attempts<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(1)?).await?;
    let failed = Change::Retry { attempts: 2, delay: crate::events::HOUR, error: Some("not yet".to_owned()) };
    settle_all(&*store, &node, &seqs, &failed).await?;
    let row = row_at(&*store, seqs[0]).await?;
    let expected = Expected { attempts: 2, replays: 0 };
    assert!(completes(db, &node, Fence::Table, &Verdict { row, expected, change: Change::Done }).await?);
    let row = columns(db, &written[0]).await?;
    assert_eq!((row.status, row.attempts, row.last_error), (1, 2, None));
    Ok(())
}

/// As a settle does.
pub(super) async fn complete_keeps_the_position<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    for fence in RIGHTS {
        let written = event()?;
        let seq = db.write(vec![written.clone()]).await?[0];
        let node = entitled(&*store, fence).await?;
        let position = Position::new("it's \"7\"/Grüße/🦀")?;
        let verdict = first(row_at(&*store, seq).await?, Change::DeliveredAs(position.clone()));
        assert!(completes(db, &node, fence, &verdict).await?, "{fence:?}");
        let record = record(db, &written).await?;
        assert_eq!((record.status, record.delivered_as.as_deref()), (1, Some(position.as_str())), "{fence:?}");
        store.leave(&node).await?;
    }
    Ok(())
}

/// As a settle does that keeps no rows.
pub(super) async fn complete_removes_the_row_if_asked<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    for fence in RIGHTS {
        let written = events(2)?;
        let seqs = db.write(written.clone()).await?;
        let node = entitled(&*store, fence).await?;
        let verdict = first(row_at(&*store, seqs[0]).await?, Change::Remove);
        assert!(completes(db, &node, fence, &verdict).await?, "{fence:?}");
        assert_eq!(db.columns(written[0].id().as_str()).await?, None, "{fence:?}");
        assert_eq!(columns(db, &written[1]).await?.status, 0, "{fence:?}: the other one");
        store.leave(&node).await?;
    }
    Ok(())
}

/// A completion goes with the whole transaction, and with the part of it behind a savepoint.
pub(super) async fn complete_rolled_back_leaves_the_row_pending<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(1)?).await?;
    let before = rows(db, &written).await?;
    let verdict = first(row_at(&*store, seqs[0]).await?, Change::Done);
    for how in ["rolled back", "dropped", "to a savepoint"] {
        let mut transaction = db.begin().await?;
        H::savepoint(transaction.inner_mut(), "here").await?;
        mark(db, &mut transaction).await?;
        assert_eq!(transaction.run(&store.complete(&node, Fence::Table, &verdict)).await?, 1, "{how}");
        match how {
            "rolled back" => transaction.rollback().await?,
            "dropped" => drop(transaction),
            _ => {
                H::rollback_to(transaction.inner_mut(), "here").await?;
                transaction.commit().await?;
            }
        }
        assert_eq!(rows(db, &written).await?, before, "{how}");
    }
    assert!(completes(db, &node, Fence::Table, &verdict).await?, "and it can be completed afterwards");
    Ok(())
}

/// A stranger's, a stand-by's, a former owner's, one on another event or handler, and one that was decided on another state change
/// nothing.
pub(super) async fn complete_is_refused_as_a_settle_is<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(1)?).await?;
    let row = row_at(&*store, seqs[0]).await?;
    let there = first(row.clone(), Change::Done);
    let before = columns(db, &written[0]).await?;
    for other in [stranger()?, member(&*store).await?] {
        assert!(!completes(db, &other, Fence::Table, &there).await?, "{other}");
    }
    for other in others_in_the_place_of(&row) {
        assert!(!completes(db, &node, Fence::Table, &first(other, Change::Done)).await?);
    }
    for (attempts, replays) in [(1, 0), (0, 1)] {
        let expected = Expected { attempts, replays };
        assert!(!completes(db, &node, Fence::Table, &Verdict { expected, ..there.clone() }).await?, "{expected:?}");
    }
    assert_eq!(columns(db, &written[0]).await?, before);
    db.expire(&node).await?;
    let next = owner(&*store).await?;
    assert!(!completes(db, &node, Fence::Table, &there).await?, "the former owner");
    assert_eq!(columns(db, &written[0]).await?, before);
    for change in [Change::Done, Change::Remove] {
        let verdict = Verdict { change, ..there.clone() };
        let ends = verdict.change == Change::Done;
        assert_eq!(completes(db, &next, Fence::Table, &verdict).await?, ends, "the second time it is over");
    }
    Ok(())
}

/// A node whose right rests on the row or on its partition completes no other row.
pub(super) async fn complete_is_refused_for_rows_of_others<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let seq = db.write(events(1)?).await?[0];
    let held = first(row_at(&*store, seq).await?, Change::Done);
    let [one, other] = [peer(&*store).await?, peer(&*store).await?];
    assert!(!completes(db, &one, Fence::Row, &held).await?, "nobody holds it");
    assert_eq!(claimed(&*store, &one, &all()).await?, [seq]);
    assert!(!completes(db, &other, Fence::Row, &held).await?, "another node holds it");
    assert!(completes(db, &one, Fence::Row, &held).await?);
    for node in [one, other] {
        store.leave(&node).await?;
    }

    // Partitions 33 and 159.
    let seqs = db.write(keyed_each(&["order-1", "order-2"])?).await?;
    let node = rebalancer(&*store).await?;
    rebalance(&*store, &node, Partitions::NONE).await?;
    rebalance(&*store, &node, (128..=255).collect()).await?;
    let mine = first(row_at(&*store, seqs[0]).await?, Change::Done);
    assert!(!completes(db, &stranger()?, Fence::Partition, &mine).await?);
    let second = rebalancer(&*store).await?;
    rebalance(&*store, &second, Partitions::NONE).await?;
    assert!(!completes(db, &second, Fence::Partition, &mine).await?, "another node's partition");
    assert!(completes(db, &node, Fence::Partition, &mine).await?);
    Ok(())
}

/// After the transaction was ended by SQL, what else was done in it may be gone.
pub(super) async fn complete_outside_of_a_transaction_changes_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(1)?).await?;
    let before = rows(db, &written).await?;
    for change in [Change::Done, Change::DeliveredAs(Position::new("s/1")?), Change::Remove] {
        let verdict = first(row_at(&*store, seqs[0]).await?, change);
        for ended in [&["ROLLBACK"][..], &["COMMIT"]] {
            let mut transaction = begun(db).await?;
            for statement in ended {
                H::execute_in(transaction.inner_mut(), statement).await?;
            }
            let changed = transaction.run(&store.complete(&node, Fence::Table, &verdict)).await;
            assert!(!matches!(changed, Ok(1..)), "{ended:?}: {changed:?}");
            drop(transaction);
            assert_eq!(rows(db, &written).await?, before, "{ended:?}");
        }
    }
    Ok(())
}

/// Of many transactions at once that complete a row, one commits.
pub(super) async fn complete_concurrently_changes_the_row_once<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(1)?).await?;
    let verdict = first(row_at(&*store, seqs[0]).await?, Change::Done);
    // A database may refuse instead of letting wait.
    let completions = (0..4).map(async |_| completes(db, &node, Fence::Table, &verdict).await);
    let committed = unrefused(db, join_all(completions).await)?.into_iter().filter(|committed| *committed).count();
    assert_eq!((committed, columns(db, &written[0]).await?.status), (1, 1));
    Ok(())
}

/// A verdict on a row that was never tried.
fn first(row: RowId, change: Change) -> Verdict {
    Verdict { row, expected: Expected::FIRST, change }
}

/// Completes a row in a transaction of its own; false if that changed nothing.
async fn completes<H: Harness>(db: &Db<H>, node: &NodeId, fence: Fence, verdict: &Verdict) -> Result<bool, BoxError> {
    let mut transaction = begun(db).await?;
    let changed = transaction.run(&db.store().complete(node, fence, verdict)).await?;
    if changed == 0 {
        transaction.rollback().await?;
    } else {
        transaction.commit().await?;
    }
    Ok(changed == 1)
}

/// A transaction as a handler gets it.
async fn begun<H: Harness>(db: &Db<H>) -> Result<H::Transaction, BoxError> {
    let mut transaction = db.begin().await?;
    mark(db, &mut transaction).await?;
    Ok(transaction)
}

async fn mark<H: Harness>(db: &Db<H>, transaction: &mut H::Transaction) -> Outcome {
    if let Some(statement) = db.store().mark_transaction() {
        transaction.run(&Command { action: Action::Mark, statements: vec![statement] }).await?;
    }
    Ok(())
}
