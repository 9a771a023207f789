use std::time::Duration;

use pillarbox_core::row::Change;
use pillarbox_core::store::Backlog;

use crate::Harness;
use crate::events::{HOUR, claimed, delayed, event, events, retry_in, settle_held, some};
use crate::nodes::peer;
use crate::run::{Db, Outcome};

/// Due rows, held by a node or not, rows that wait for their time, and DEAD ones; what has been delivered is not looked
/// at.
pub(in crate::conformance) async fn backlog_counts_what_is_pending_and_dead<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    assert_eq!(store.backlog().await?, Backlog::default());
    let seqs = db.write(events(20)?).await?;
    db.write(vec![delayed()?]).await?;
    db.insert_broken("broken").await?;
    assert_eq!(claimed(&*store, &node, &some(18)).await?, seqs[..18]);
    settle_held(&*store, &node, &seqs[..4], &Change::Done).await?;
    settle_held(&*store, &node, &seqs[4..6], &Change::Dead { attempts: 1, error: "no".to_owned() }).await?;
    let retry = |delay| Change::Retry { attempts: 1, delay, error: None };
    settle_held(&*store, &node, &seqs[6..9], &retry(HOUR)).await?;
    settle_held(&*store, &node, &seqs[9..11], &retry(Duration::ZERO)).await?;
    // Seven are held, two free, two due again, one broken; three wait for their next attempt and one for its first.
    let backlog = store.backlog().await?;
    assert_eq!((backlog.due, backlog.delayed, backlog.dead), (12, 4, 2));
    assert!(backlog.oldest_due.is_some());
    Ok(())
}

/// A row waits from its creation or, if it has a due time, from then; the longest wait is told, if any row is due.
pub(in crate::conformance) async fn backlog_knows_the_age_of_the_oldest_due_row<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let old = db.write(events(3)?).await?;
    let late = delayed()?;
    db.write(vec![late.clone()]).await?;
    db.age(1800).await?;
    assert_eq!(claimed(&*store, &node, &some(3)).await?, old);
    let recent = event()?;
    db.write(vec![recent]).await?;
    let oldest = store.backlog().await?.oldest_due;
    let half_an_hour = Duration::from_secs(1800)..Duration::from_secs(2400);
    assert!(oldest.is_some_and(|age| half_an_hour.contains(&age)), "written half an hour ago: {oldest:?}");

    settle_held(&*store, &node, &old[..1], &Change::Done).await?;
    settle_held(&*store, &node, &old[1..2], &Change::Dead { attempts: 0, error: "no".to_owned() }).await?;
    settle_held(&*store, &node, &old[2..], &retry_in(HOUR)).await?;
    // Of the old rows only the delayed one is due, and that only since now.
    db.make_due(late.id().as_str()).await?;
    let oldest = store.backlog().await?.oldest_due;
    assert!(oldest.is_some_and(|age| age < Duration::from_secs(600)), "the others have just become due: {oldest:?}");
    Ok(())
}
