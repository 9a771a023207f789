use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Fence, NodeId, begun_by};
use pillarbox_core::row::{Change, Expected};
use pillarbox_core::store::BegunAttempt;

use crate::Harness;
use crate::events::{
    all, claimed, columns, entitled, event, events, first_attempt, others_in_the_place_of, row_at, rows, settle,
    settle_all, settle_held, verdict,
};
use crate::nodes::{owner, peer, stranger};
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// The row says who has begun, by whichever right to it. If an earlier attempt is found to have crashed, that one is counted
/// and its error recorded; the row's place and state are left alone, and the attempt ends in a verdict like any other.
pub(super) async fn begin_attempt_marks_the_row_and_counts_the_crashed_one<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(3)?);
    let seqs = db.write(written.clone()).await?;
    let each = seqs.iter().zip(&written);
    for (fence, (&seq, event)) in [Fence::Table, Fence::Partition, Fence::Row].into_iter().zip(each) {
        let node = entitled(&*store, fence).await?;
        let row = row_at(&*store, seq).await?;
        let begin = |expected, attempts, error: Option<&str>| BegunAttempt {
            row: row.clone(),
            expected: Expected { attempts: expected, ..Expected::FIRST },
            attempts,
            error: error.map(str::to_owned),
        };
        let said = async || {
            let row = columns(db, event).await?;
            assert_eq!((row.status, row.timed, row.ended, row.locked_by), (0, false, false, Some(begun_by(&node))));
            Ok::<_, BoxError>((row.attempts, row.last_error))
        };

        assert!(store.begin_attempt(&node, fence, &begin(0, 0, None)).await?, "{fence:?}");
        assert_eq!(said().await?, (0, None), "{fence:?}");
        assert!(store.begin_attempt(&node, fence, &begin(0, 1, Some("its node died"))).await?);
        assert_eq!(said().await?, (1, Some("its node died".to_owned())), "{fence:?}");
        assert!(store.begin_attempt(&node, fence, &begin(1, 1, None)).await?);
        assert_eq!(said().await?, (1, Some("its node died".to_owned())), "no error leaves the one that is there");

        let dead = Change::Dead { attempts: 2, error: "again".to_owned() };
        assert!(settle(&*store, &node, fence, &[verdict(seq, 1, dead)]).await?.is_empty(), "{fence:?}");
        let row = columns(db, event).await?;
        assert_eq!((row.status, row.attempts, row.locked_by), (3, 2, None), "{fence:?}");
        store.leave(&node).await?;
    }
    Ok(())
}

/// An attempt that was decided before the row went DEAD and was replayed is refused.
pub(super) async fn begin_attempt_refuses_what_was_decided_before_a_replay<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), event()?);
    let seqs = db.write(vec![written.clone()]).await?;
    let node = owner(&*store).await?;
    let late = first_attempt(&*store, seqs[0]).await?;
    settle_all(&*store, &node, &seqs, &Change::Dead { attempts: 1, error: "never".to_owned() }).await?;
    assert_eq!(store.replay(&seqs).await?, seqs);
    let replayed = columns(db, &written).await?;
    assert!(!store.begin_attempt(&node, Fence::Table, &late).await?);
    assert_eq!(columns(db, &written).await?, replayed);
    let expected = Expected { attempts: 0, replays: 1 };
    assert!(store.begin_attempt(&node, Fence::Table, &BegunAttempt { expected, ..late }).await?);
    Ok(())
}

/// A node that may not settle a row may not begin it: the answer is false, and the row stays as it was.
pub(super) async fn begin_attempt_is_refused_as_a_settle_is<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(4)?);
    let seqs = db.write(written.clone()).await?;
    let rows_there = rows_at(&*store, &[seqs.clone(), vec![seqs[3] + 1]].concat()).await?;
    let begin = |index: usize, expected| BegunAttempt {
        row: rows_there[index].clone(),
        expected: Expected { attempts: expected, ..Expected::FIRST },
        attempts: 7,
        error: Some("no".to_owned()),
    };

    let node = owner(&*store).await?;
    settle_all(&*store, &node, &seqs[..1], &Change::Done).await?;
    settle_all(&*store, &node, &seqs[1..2], &Change::Dead { attempts: 0, error: "no".to_owned() }).await?;
    let refuses = async |fence, cases: &[(&str, &NodeId, BegunAttempt)]| {
        let before = rows(db, &written).await?;
        for (why, node, attempt) in cases {
            assert!(!store.begin_attempt(node, fence, attempt).await?, "{why}");
            assert_eq!(rows(db, &written).await?, before, "{why}");
        }
        Ok::<_, BoxError>(())
    };
    let cases = [
        ("a row that is DONE", &node, begin(0, 0)),
        ("a row that is DEAD", &node, begin(1, 0)),
        ("unexpected attempts", &node, begin(2, 1)),
        ("a row that is not there", &node, begin(4, 0)),
        ("a node that does not own the table", &stranger()?, begin(2, 0)),
    ];
    refuses(Fence::Table, &cases).await?;
    store.leave(&node).await?;

    let [first, second] = [peer(&*store).await?, peer(&*store).await?];
    refuses(Fence::Row, &[("nobody holds it", &first, begin(2, 0))]).await?;
    assert_eq!(claimed(&*store, &first, &all()).await?, seqs[2..]);
    settle_held(&*store, &first, &seqs[3..], &Change::Done).await?;
    let cases = [
        ("another node holds it", &second, begin(2, 0)),
        ("a row that is DONE", &first, begin(3, 0)),
        ("unexpected attempts", &first, begin(2, 1)),
        ("a row that is not there", &first, begin(4, 0)),
    ];
    refuses(Fence::Row, &cases).await?;
    db.expire(&first).await?;
    assert_eq!(store.reclaim(&second, false).await?.freed, 1);
    let cases = [&first, &second].map(|node| ("it was taken from its node", node, begin(2, 0)));
    refuses(Fence::Row, &cases).await
}

/// An attempt at an event that is not there any more begins nothing, whichever node the place belongs to.
pub(super) async fn begin_attempt_refuses_another_event_with_the_same_seq<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(1)?);
    let seqs = db.write(written.clone()).await?;
    let there = row_at(&*store, seqs[0]).await?;
    for fence in [Fence::Table, Fence::Partition, Fence::Row] {
        let node = entitled(&*store, fence).await?;
        let before = rows(db, &written).await?;
        for row in others_in_the_place_of(&there) {
            let attempt = BegunAttempt { row, expected: Expected::FIRST, attempts: 1, error: Some("no".to_owned()) };
            assert!(!store.begin_attempt(&node, fence, &attempt).await?, "{fence:?}: {attempt:?}");
            assert_eq!(rows(db, &written).await?, before, "{fence:?}");
        }
        assert!(store.begin_attempt(&node, fence, &first_attempt(&*store, seqs[0]).await?).await?, "{fence:?}");
        store.release(&node, std::slice::from_ref(&there)).await?;
        store.leave(&node).await?;
    }
    Ok(())
}
