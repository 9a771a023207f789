use std::collections::BTreeSet;

use pillarbox_core::error::BoxError;
use pillarbox_core::row::Change;
use pillarbox_core::store::{FetchedRow, Writers};
use pillarbox_core::write::{Finish, insert};

use crate::Harness;
use crate::events::{all, event, events, settle_all};
use crate::nodes::owner;
use crate::run::{Db, Outcome};

/// The names of those who may still commit; `None` only where the backend declares that its store does not tell.
fn open<H: Harness>(writers: Writers) -> Option<BTreeSet<String>> {
    assert_eq!(writers.open.is_some(), H::CAPABILITIES.tells_writers, "whether it tells who writes: {writers:?}");
    writers.open.map(BTreeSet::from_iter)
}

/// The highest `seq` is that of a committed row. Where the store tells who may still commit below it, an open transaction
/// that has inserted is named, always by the same names and by none of another's, from before the rows above it are seen
/// until it has ended.
pub(super) async fn writers_knows_who_may_still_commit<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let node = owner(&*store).await?;
    assert_eq!(store.writers().await?.highest, 0, "an empty table");
    let seqs = db.write(events(3)?).await?;
    let writers = store.writers().await?;
    assert_eq!(writers.highest, seqs[2]);
    assert!(open::<H>(writers).is_none_or(|open| open.is_empty()), "nobody writes");
    settle_all(&*store, &node, &seqs, &Change::Done).await?;
    assert_eq!(other.writers().await?.highest, seqs[2], "whatever their states");
    if !H::CAPABILITIES.concurrent_writers {
        return Ok(());
    }

    let mut seen = BTreeSet::new();
    for commits in [true, false, true] {
        let mut late = db.begin().await?;
        let below = insert(&*store, &mut late, vec![event()?]).await?[0];
        assert!(store.writers().await?.highest < below, "it is not committed");
        let highest = *db.write(events(2)?).await?.last().ok_or("two rows were written")?;
        let [here, there] = [store.writers().await?, other.writers().await?];
        assert_eq!((here.highest, there.highest), (highest, highest));
        let names = [here, there].map(open::<H>);
        assert_eq!(names[0], names[1], "whoever asks");
        if let [Some(names), _] = names {
            assert!(!names.is_empty() && names.is_disjoint(&seen), "{names:?} after {seen:?}");
            seen.extend(names);
        }
        if commits {
            late.commit().await?;
        } else {
            late.rollback().await?;
        }
        let writers = store.writers().await?;
        assert_eq!(writers.highest, highest);
        assert!(open::<H>(writers).is_none_or(|open| open.is_empty()), "it has ended");
    }

    // Two at once, of which the later ends first.
    let mut first = db.begin().await?;
    insert(&*store, &mut first, vec![event()?]).await?;
    let mut second = db.begin().await?;
    insert(&*store, &mut second, vec![event()?]).await?;
    let mut third = db.begin().await?;
    let highest = insert(&*store, &mut third, vec![event()?]).await?[0];
    third.commit().await?;
    let still_open = async || {
        let writers = other.writers().await?;
        assert_eq!(writers.highest, highest);
        Ok::<_, BoxError>(open::<H>(writers))
    };
    let both = still_open().await?;
    second.rollback().await?;
    let one = still_open().await?;
    first.commit().await?;
    let none = still_open().await?;
    if let (Some(both), Some(one), Some(none)) = (both, one, none) {
        assert!(!one.is_empty() && one.is_subset(&both) && one != both, "{one:?} of {both:?}");
        assert!(none.is_empty(), "{none:?}");
    }
    Ok(())
}

/// A row that is written between two readings of the clock was created between them.
pub(super) async fn now_is_the_clock_of_created_at<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let before = store.now().await?;
    db.write(events(1)?).await?;
    let after = store.now().await?;
    let fetched = store.fetch(&all()).await?;
    let [FetchedRow::Row(row)] = &fetched.rows[..] else { return Err(format!("{:?}", fetched.rows).into()) };
    assert!(before <= row.created_at && row.created_at <= after, "{before} {row:?} {after}");
    Ok(())
}
