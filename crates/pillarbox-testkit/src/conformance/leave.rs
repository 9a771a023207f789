use pillarbox_core::ownership::{Acquired, Fence};
use pillarbox_core::row::Change;

use crate::Harness;
use crate::events::{event, settle, verdict};
use crate::nodes::{member, owner};
use crate::run::{Db, Outcome};

/// Nobody waits for the lease of a node that has left, and its verdicts are void from then on.
pub(super) async fn leave_frees_ownership_at_once<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let seqs = db.write(vec![event()?]).await?;
    let first = owner(&*store).await?;
    let second = member(&*other).await?;
    assert!(matches!(other.acquire(&second).await?, Acquired::Standby { .. }));
    store.leave(&first).await?;

    let verdicts: Vec<_> = seqs.iter().map(|seq| verdict(*seq, 0, Change::Done)).collect();
    assert_eq!(settle(&*store, &first, Fence::Table, &verdicts).await?, seqs, "a node that has left settles nothing");
    assert!(matches!(other.acquire(&second).await?, Acquired::Owner { .. }));
    assert_eq!(store.acquire(&first).await?, Acquired::Lost);
    Ok(())
}

/// The second time changes nothing, least of all for the next owner.
pub(super) async fn leave_twice_is_fine<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let first = owner(&*store).await?;
    store.leave(&first).await?;
    store.leave(&first).await?;
    let second = member(&*store).await?;
    let acquired = store.acquire(&second).await?;
    assert!(matches!(acquired, Acquired::Owner { .. }), "{acquired:?}");
    store.leave(&first).await?;
    assert_eq!(store.acquire(&second).await?, acquired);
    Ok(())
}
