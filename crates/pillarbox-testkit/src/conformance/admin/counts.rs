use pillarbox_core::row::Change;
use pillarbox_core::store::Counts;
use pillarbox_core::write::{Finish, insert};

use crate::Harness;
use crate::events::{HOUR, delayed, events, retry_in, settle_all};
use crate::nodes::owner;
use crate::run::{Db, Outcome};

/// Each committed row counts in its own state and in no other.
pub(in crate::conformance) async fn counts_match_the_rows<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    assert_eq!(store.counts().await?, Counts::default());
    let seqs = db.write(events(20)?).await?;
    db.write(vec![delayed()?, delayed()?]).await?;
    db.insert_broken("broken").await?;
    settle_all(&*store, &node, &seqs[..3], &Change::Done).await?;
    settle_all(&*store, &node, &seqs[3..8], &retry_in(HOUR)).await?;
    settle_all(&*store, &node, &seqs[8..15], &Change::Dead { attempts: 0, error: "no".to_owned() }).await?;
    let expected = Counts { new: 8, done: 3, retry: 5, dead: 7, cancelled: 0, unknown: 0 };
    assert_eq!(store.counts().await?, expected);

    // Last, since in some databases an open transaction keeps others from writing.
    let mut open = db.begin().await?;
    insert(&*store, &mut open, events(4)?).await?;
    assert_eq!(store.counts().await?, expected, "rows that are not committed do not count");
    open.rollback().await?;
    assert_eq!(store.counts().await?, expected);
    Ok(())
}
