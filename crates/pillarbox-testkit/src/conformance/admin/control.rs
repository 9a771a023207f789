//! Changes of pending rows by operators.

use std::time::Duration;

use pillarbox_core::ownership::Fence;
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{CANCELLED, Counts, Fetch, FetchScope, Heads, Purge, Purgeable};

use super::replay::one_in_each_state;
use crate::Harness;
use crate::events::{
    HOUR, all, claimed, columns, delayed, event, events, everything, keyed_each, rows, seqs_of, settle_all,
    settle_held, within,
};
use crate::nodes::{owner, peer};
use crate::rows::rows_at;
use crate::run::{Db, Outcome};

/// A row that is delayed, or waits for another attempt, is due, above any row that was read before, and as it was otherwise.
pub(in crate::conformance) async fn retry_now_makes_waiting_rows_due<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let (failed, late, held, plain) = (event()?, delayed()?, event()?, event()?);
    let seqs = db.write(vec![failed.clone(), late.clone(), held.clone(), plain]).await?;
    let retry = Change::Retry { attempts: 2, delay: HOUR, error: Some("no answer".to_owned()) };
    settle_all(&*store, &node, &seqs[..1], &retry).await?;
    settle_all(&*store, &node, &seqs[2..3], &Change::RetryInPlace { attempts: 1, error: "not yet".to_owned() }).await?;
    let before = [columns(db, &failed).await?, columns(db, &late).await?];
    assert_eq!(seqs_of(&store.fetch(&all()).await?), seqs[2..]);

    let mut changed = store.retry_now(&seqs).await?;
    changed.sort_unstable();
    assert_eq!(changed, seqs[..3], "the last one waits for nothing");
    let mut due = seqs_of(&store.fetch(&Fetch { above: seqs[3], ..all() }).await?);
    due.sort_unstable();
    assert_eq!(due, seqs[..3], "they are found wherever reading has got to");
    for (event, before) in [&failed, &late].into_iter().zip(before) {
        let after = columns(db, event).await?;
        assert_eq!(
            (after.status, after.attempts, after.last_error),
            (before.status, before.attempts, before.last_error)
        );
    }
    let record = store.record(seqs[2]).await?.ok_or("the row is gone")?;
    let due = record.available_at.ok_or("who holds it in its place cannot tell")?;
    let is_due = "it is due, and stays so if the clock is set back now";
    assert_eq!(due.as_micros(), record.created_at.as_micros() + i64::from(record.attempts), "{is_due}");
    settle_all(&*store, &node, &seqs[3..], &Change::Done).await?;
    Ok(())
}

/// The record of a failure says when its row is due, whatever was asked for since the call that failed had begun.
pub(in crate::conformance) async fn retry_now_is_for_the_call_whose_failure_is_not_recorded_yet<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let seqs = db.write(events(2)?).await?;
    let error = || "no answer".to_owned();
    settle_all(&*store, &node, &seqs, &Change::RetryInPlace { attempts: 1, error: error() }).await?;
    assert_eq!(store.retry_now(&seqs).await?.len(), 2);
    let retry = Change::Retry { attempts: 2, delay: HOUR, error: Some(error()) };
    let changes = [Change::RetryInPlace { attempts: 2, error: error() }, retry];
    let verdicts = rows_at(&*store, &seqs).await?.into_iter().zip(changes).map(|(row, change)| Verdict {
        row,
        expected: Expected { attempts: 1, replays: 0 },
        change,
    });
    let refused = store.settle(&node, Fence::Table, &verdicts.collect::<Vec<_>>()).await?;
    assert!(refused.is_empty(), "{refused:?}");
    let held = store.record(seqs[0]).await?.ok_or("the row is gone")?;
    assert_eq!((held.attempts, held.available_at), (2, None), "who holds it has not been asked for anything");
    assert_eq!(seqs_of(&store.fetch(&all()).await?), seqs[..1], "the other one is due in an hour");
    Ok(())
}

/// Of all that is asked for only what waits for a time is changed, and said to be.
pub(in crate::conformance) async fn retry_now_leaves_other_states_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let (written, seqs) = one_in_each_state(db).await?;
    let (before, intervened) = (rows(db, &written).await?, store.interventions().await?.count);
    assert!(store.retry_now(&[]).await?.is_empty());
    assert!(store.retry_now(&[seqs[0], seqs[1], seqs[2], seqs[4], seqs[4] + 1, -1]).await?.is_empty());
    assert_eq!(rows(db, &written).await?, before);
    assert_eq!(store.interventions().await?.count, intervened, "nothing has changed");
    assert_eq!(store.retry_now(&[&seqs[..], &[seqs[4] + 1]].concat()).await?, seqs[3..4]);
    assert_eq!(store.interventions().await?.count, intervened + 1);
    Ok(())
}

/// A cancelled row is over: nobody is given it, its attempts stay, and it says that it was cancelled. It goes when DONE rows go.
pub(in crate::conformance) async fn cancel_ends_pending_rows_without_delivery<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let written = events(3)?;
    let mut seqs = db.write(written.clone()).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?, seqs);
    let retry = Change::Retry { attempts: 2, delay: HOUR, error: Some("no answer".to_owned()) };
    settle_held(&*store, &node, &seqs[1..2], &retry).await?;
    seqs.extend(db.write(vec![delayed()?]).await?);

    let mut cancelled = store.cancel(&seqs).await?;
    cancelled.sort_unstable();
    assert_eq!(cancelled, seqs);
    for (index, attempts) in [(0, 0), (1, 2), (2, 0), (3, 0)] {
        let record = store.record(seqs[index]).await?.ok_or("the row is gone")?;
        assert!(record.is_cancelled() && record.done_at.is_some(), "{record:?}");
        assert_eq!((record.status, record.attempts, record.locked_by), (1, attempts, None));
        assert_eq!(record.last_error.as_deref(), Some(CANCELLED));
    }
    let verdict = |row| Verdict { row, expected: Expected::FIRST, change: Change::Done };
    let late: Vec<Verdict> = rows_at(&*store, &seqs[..1]).await?.into_iter().map(verdict).collect();
    assert_eq!(
        store.settle(&node, Fence::Row, &late).await?,
        seqs[..1],
        "the verdict on a call that ran comes too late"
    );
    assert!(claimed(&*store, &node, &all()).await?.is_empty());
    assert_eq!(store.counts().await?, Counts { cancelled: 4, ..Counts::default() });
    let fresh = db.write(vec![event()?]).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?, fresh, "it is not stopped");
    settle_held(&*store, &node, &fresh, &Change::Done).await?;
    assert_eq!(store.counts().await?, Counts { done: 1, cancelled: 4, ..Counts::default() });
    assert_eq!(store.purge(&Purge::new(Purgeable::Done, Duration::ZERO, 100)).await?.removed, 5);
    Ok(())
}

/// Of all that is asked for only what is pending is cancelled, held or not, and said to be.
pub(in crate::conformance) async fn cancel_leaves_other_states_alone<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let (written, seqs) = one_in_each_state(db).await?;
    let before = rows(db, &written).await?;
    assert!(store.cancel(&[]).await?.is_empty());
    assert!(store.cancel(&[seqs[2], seqs[4], seqs[4] + 1, -1]).await?.is_empty());
    assert_eq!(rows(db, &written).await?, before);
    let mut cancelled = store.cancel(&[&seqs[..], &[seqs[4] + 1]].concat()).await?;
    cancelled.sort_unstable();
    assert_eq!(cancelled, [seqs[0], seqs[1], seqs[3]]);
    let after = rows(db, &written).await?;
    assert_eq!([&after[2], &after[4]], [&before[2], &before[4]]);
    assert!(store.cancel(&seqs).await?.is_empty());
    Ok(())
}

/// Rows behind a head that is cancelled wait no longer, and whoever reads is told to begin anew.
pub(in crate::conformance) async fn cancel_lets_later_events_of_its_key_go_on<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let seqs = db.write(keyed_each(&["a", "a"])?).await?;
    let retry = Change::Retry { attempts: 1, delay: HOUR, error: None };
    settle_all(&*store, &node, &seqs[..1], &retry).await?;
    let fetch = within(FetchScope { heads: Heads::RetryAndDead, ..everything() });
    let before = store.fetch(&fetch).await?;
    assert!(seqs_of(&before).is_empty());
    assert_eq!(store.cancel(&seqs[..1]).await?, seqs[..1]);
    let after = store.fetch(&fetch).await?;
    assert_eq!((seqs_of(&after), after.interventions), (seqs[1..].to_vec(), before.interventions + 1));
    Ok(())
}

/// Operators and a node that end the same rows at the same time, in opposite orders, neither wait in a circle nor both succeed.
pub(in crate::conformance) async fn cancel_and_settle_at_once_end_a_row_once<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let node = peer(&*store).await?;
    for _ in 0..10 {
        let seqs = db.write(events(20)?).await?;
        assert_eq!(claimed(&*store, &node, &all()).await?.len(), 20);
        let rows = rows_at(&*store, &seqs).await?;
        let verdict = |(index, row)| {
            let dead = Change::Dead { attempts: 1, error: "broken".to_owned() };
            Verdict { row, expected: Expected::FIRST, change: if index % 2 == 0 { dead } else { Change::Done } }
        };
        let verdicts: Vec<Verdict> = rows.into_iter().enumerate().map(verdict).collect();
        let backwards: Vec<i64> = seqs.iter().rev().copied().collect();
        let (refused, cancelled) = tokio::join!(store.settle(&node, Fence::Row, &verdicts), other.cancel(&backwards));
        let (mut refused, mut cancelled) = (refused?, cancelled?);
        refused.sort_unstable();
        cancelled.sort_unstable();
        assert_eq!(refused, cancelled, "what one has ended is refused to the other");
        assert_eq!(store.counts().await?.pending(), 0);
    }
    Ok(())
}

/// The number is the one that comes with a fetch in a scope.
pub(in crate::conformance) async fn interventions_are_those_that_a_fetch_counts<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let (_, seqs) = one_in_each_state(db).await?;
    let fetch = within(everything());
    for _ in 0..3 {
        assert_eq!(store.interventions().await?.count, store.fetch(&fetch).await?.interventions);
        let before = store.interventions().await?.count;
        let changed = [store.replay(&seqs).await?, store.cancel(&seqs).await?].concat();
        assert_eq!(store.interventions().await?.count > before, !changed.is_empty());
    }
    Ok(())
}
