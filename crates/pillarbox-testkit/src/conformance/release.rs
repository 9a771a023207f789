use pillarbox_core::ownership::{Fence, begun_by};
use pillarbox_core::row::Change;
use pillarbox_core::store::Fetch;

use crate::events::{
    all, claimed, events, first_attempt, others_in_the_place_of, row_at, rows, seqs_of, settle_held, some,
};
use crate::nodes::peer;
use crate::rows::rows_at;
use crate::run::{Db, Outcome};
use crate::{Columns, Harness};

/// Rows that the node holds, begun or not, are free at once, as if nobody had ever held them. Those it keeps, those of
/// another node, those that have ended and those that are not there stay as they are.
pub(super) async fn release_frees_what_the_node_holds_and_nothing_else<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(6)?);
    let seqs = db.write(written.clone()).await?;
    let [node, neighbour] = [peer(&*store).await?, peer(&*store).await?];
    assert_eq!(claimed(&*store, &neighbour, &some(1)).await?, seqs[..1]);
    assert_eq!(claimed(&*store, &node, &all()).await?, seqs[1..]);
    for seq in [seqs[1], seqs[5]] {
        assert!(store.begin_attempt(&node, Fence::Row, &first_attempt(&*store, seq).await?).await?);
    }
    settle_held(&*store, &node, &seqs[2..3], &Change::Done).await?;

    let before = rows(db, &written).await?;
    store.release(&node, &[]).await?;
    assert_eq!(rows(db, &written).await?, before);
    let given_up: Vec<i64> = seqs[..5].iter().copied().chain([seqs[5] + 1, -1]).collect();
    let given_up = rows_at(&*store, &given_up).await?;
    for _ in 0..2 {
        store.release(&node, &given_up).await?;
        let after = rows(db, &written).await?;
        let [others, kept] = [neighbour.to_string(), begun_by(&node)].map(Some);
        assert_eq!(
            after.iter().map(|row| row.locked_by.clone()).collect::<Vec<_>>(),
            [others, None, None, None, None, kept]
        );
        let otherwise_unchanged = |(before, after): (&Columns, &Columns)| {
            Columns { locked_by: None, ..before.clone() } == Columns { locked_by: None, ..after.clone() }
        };
        assert!(before.iter().zip(&after).all(otherwise_unchanged), "{after:?}");
    }
    let taken = store.claim(&neighbour, &Fetch { exclude: seqs[..1].to_vec(), ..all() }).await?;
    assert_eq!(seqs_of(&taken), [seqs[1], seqs[3], seqs[4]], "any node may claim them");
    Ok(())
}

/// A row that the node holds is given up by its event, not by its place.
pub(super) async fn release_leaves_another_event_with_the_same_seq_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(2)?);
    let seqs = db.write(written.clone()).await?;
    let node = peer(&*store).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?, seqs);
    assert!(store.begin_attempt(&node, Fence::Row, &first_attempt(&*store, seqs[1]).await?).await?);
    let before = rows(db, &written).await?;
    for seq in seqs {
        let [another, _] = others_in_the_place_of(&row_at(&*store, seq).await?);
        store.release(&node, std::slice::from_ref(&another)).await?;
        assert_eq!(rows(db, &written).await?, before, "{another:?}");
    }
    Ok(())
}
