//! The tests of the inbox that every adapter runs.

use pillarbox_core::inbox::{Inbox, InboxError, Once};
use pillarbox_core::store::{Admin as _, Dialect};
use pillarbox_core::write::{Begin as _, Finish};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;

use super::suite::{Tries, begin};
use super::{Driver, Outcome};
use crate::drop_after;

/// In one transaction, in later ones, and in one of the driver's own.
pub async fn a_message_is_received_once<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let [inbox, other] = [Inbox::new(driver.store(), "billing")?, Inbox::new(driver.store(), "mailer")?];
    let mut transaction = begin(driver, &outbox).await?;
    assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::First);
    assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::Again);
    transaction.commit().await?;
    for _ in 0..3 {
        let mut transaction = driver.source().begin().await?;
        assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::Again);
        Finish::<D::Marker>::commit(transaction).await?;
    }
    let mut transaction = begin(driver, &outbox).await?;
    assert_eq!(other.once(&mut transaction, "m-1").await?, Once::First);
    assert_eq!(inbox.once(&mut transaction, "m-2").await?, Once::First);
    transaction.commit().await?;
    assert_eq!(driver.store().count_inbox("billing").await?, 2);
    outbox.shutdown().await;
    Ok(())
}

/// By the guard's rollback, by dropping it, by dropping the receipt at any of its waits, and to a savepoint.
pub async fn a_message_that_was_rolled_back_is_received_again<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let inbox = Inbox::new(driver.store(), "billing")?;
    for drops in [false, true] {
        let mut transaction = begin(driver, &outbox).await?;
        assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::First, "dropped: {drops}");
        if drops {
            drop(transaction);
        } else {
            transaction.rollback().await?;
        }
    }
    let mut tries = Tries::<1>::default();
    while let Some(waits) = tries.next::<D>() {
        let mut transaction = begin(driver, &outbox).await?;
        let received = drop_after(waits, inbox.once(&mut transaction, "m-1")).await.is_some();
        tries.count([received]);
        drop(transaction);
        assert_eq!(driver.store().count_inbox("billing").await?, 0, "dropped after {waits} waits");
    }
    let mut transaction = begin(driver, &outbox).await?;
    D::execute(&mut transaction, "SAVEPOINT a").await?;
    assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::First);
    D::execute(&mut transaction, "ROLLBACK TO SAVEPOINT a").await?;
    assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::First);
    assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::Again);
    transaction.commit().await?;
    assert_eq!(driver.store().count_inbox("billing").await?, 1);
    outbox.shutdown().await;
    Ok(())
}

/// By their bytes: case, spaces at the end and accents count. The transaction stays usable after a refusal.
pub async fn message_ids_are_told_apart_and_bad_ones_refused_before_any_sql<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let inbox = Inbox::new(driver.store(), "billing")?;
    let (long, longer) = ("é".repeat(127) + "x", "é".repeat(128));
    let ids = ["a", "A", "a ", "ä", "a\u{308}", "'", "\\", "1", "01", &long];
    let mut transaction = begin(driver, &outbox).await?;
    for bad in ["", "a\0", &longer] {
        let refused = inbox.once(&mut transaction, bad).await;
        assert!(matches!(refused, Err(InboxError::InvalidId { .. })), "{refused:?}");
    }
    let elsewhere = Inbox::new(MemoryStore::new(), "billing")?.once(&mut transaction, "m-1").await;
    assert!(matches!(elsewhere, Err(InboxError::WrongDatabase { inbox: Dialect::MEMORY, .. })), "{elsewhere:?}");
    for expected in [Once::First, Once::Again] {
        for id in ids {
            assert_eq!(inbox.once(&mut transaction, id).await?, expected, "{id:?}");
        }
    }
    transaction.commit().await?;
    assert_eq!(driver.store().count_inbox("billing").await?, 10);
    outbox.shutdown().await;
    Ok(())
}
