use pillarbox_core::ownership::{Acquired, Renewal};

use crate::Harness;
use crate::events::HOUR;
use crate::nodes::{member, owner, stranger};
use crate::run::Outcome;

/// The lease runs for the given time from the renewal, and ownership stays where it is.
pub(super) async fn renew_extends_a_living_lease<H: Harness>(db: &H) -> Outcome {
    let store = db.store();
    let first = owner(&*store).await?;
    let second = member(&*store).await?;
    assert_eq!(store.renew(&first, HOUR * 10).await?, Renewal::Renewed);
    match store.acquire(&second).await? {
        Acquired::Standby { owner, expires_in } => {
            assert_eq!(owner, first);
            assert!(expires_in > HOUR * 9 && expires_in <= HOUR * 10, "the lease of ten hours ends in {expires_in:?}");
        }
        answer => return Err(format!("expected a standby, not {answer:?}").into()),
    }
    Ok(())
}

/// A lease that has ended stays ended, even before anybody has cleared the node away; so does one that never was.
pub(super) async fn renew_refuses_an_expired_or_cleared_node<H: Harness>(db: &H) -> Outcome {
    let store = db.store();
    let first = owner(&*store).await?;
    db.expire(&first).await?;
    assert_eq!(store.renew(&first, HOUR).await?, Renewal::Lost, "its lease has ended");
    let second = owner(&*store).await?;
    assert_eq!(store.renew(&first, HOUR).await?, Renewal::Lost, "it was cleared away");
    assert_eq!(store.renew(&second, HOUR).await?, Renewal::Renewed);
    store.leave(&second).await?;
    assert_eq!(store.renew(&second, HOUR).await?, Renewal::Lost, "it has left");
    assert_eq!(store.renew(&stranger()?, HOUR).await?, Renewal::Lost, "it never joined");
    Ok(())
}
