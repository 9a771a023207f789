use std::time::Duration;

use futures_util::future::{join, join_all};
use pillarbox_core::error::BoxError;
use pillarbox_core::inbox::{Inbox, Once};
use pillarbox_core::write::Finish as _;
use tokio::time::sleep;

use crate::Harness;
use crate::run::{Db, Outcome};

/// In the same transaction and in later ones, and by each consumer.
pub(super) async fn receive_tells_the_first_time_from_all_others<H: Harness>(db: &Db<H>) -> Outcome {
    let [inbox, other] = [inbox(db, "billing")?, inbox(db, "mailer")?];
    let mut transaction = db.begin().await?;
    assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::First);
    assert_eq!(inbox.once(&mut transaction, "m-1").await?, Once::Again, "in the same transaction");
    assert_eq!(inbox.once(&mut transaction, "m-2").await?, Once::First);
    transaction.commit().await?;
    for _ in 0..3 {
        assert_eq!(receives(db, &inbox, "m-1").await?, Once::Again);
    }
    assert_eq!(receives(db, &other, "m-1").await?, Once::First, "by another consumer");
    assert_eq!(receives(db, &inbox, "m-3").await?, Once::First);
    Ok(())
}

/// With the whole transaction, and with the part of it behind a savepoint.
pub(super) async fn receive_rolled_back_leaves_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let inbox = inbox(db, "billing")?;
    for how in ["rolled back", "dropped", "to a savepoint"] {
        let mut transaction = db.begin().await?;
        assert_eq!(inbox.once(&mut transaction, how).await?, Once::First);
        H::savepoint(transaction.inner_mut(), "here").await?;
        assert_eq!(inbox.once(&mut transaction, "behind it").await?, Once::First, "{how}");
        match how {
            "rolled back" => transaction.rollback().await?,
            "dropped" => drop(transaction),
            _ => {
                H::rollback_to(transaction.inner_mut(), "here").await?;
                assert_eq!(inbox.once(&mut transaction, how).await?, Once::Again, "before the savepoint");
                transaction.commit().await?;
            }
        }
        let before = if how == "to a savepoint" { Once::Again } else { Once::First };
        assert_eq!(receives(db, &inbox, how).await?, before, "{how}");
    }
    assert_eq!(receives(db, &inbox, "behind it").await?, Once::First, "and it can be received afterwards");
    Ok(())
}

/// Texts that collations or padding could take for one another, and the longest ones.
pub(super) async fn receive_tells_ids_and_consumers_apart_byte_by_byte<H: Harness>(db: &Db<H>) -> Outcome {
    let long = "é".repeat(127) + "x";
    let another = "é".repeat(127) + "y";
    let ids =
        ["a", "A", "a ", " a", "a\t", "ä", "a\u{308}", "ß", "ss", "'", "\\", "%", "1", "01", "1.0", &long, &another];
    let longest = "c".repeat(64);
    for consumer in ["billing", "Billing", "billing ", &longest, &longest[1..]] {
        let inbox = inbox(db, consumer)?;
        for expected in [Once::First, Once::Again] {
            for id in ids {
                assert_eq!(receives(db, &inbox, id).await?, expected, "{consumer:?}: {id:?}");
            }
        }
    }
    Ok(())
}

/// Of many transactions at once that receive a message, one does so first.
pub(super) async fn receive_concurrently_records_a_message_once<H: Harness>(db: &Db<H>) -> Outcome {
    let inbox = inbox(db, "billing")?;
    for id in ["m-1", "m-2", "m-3"] {
        let received = join_all((0..4).map(async |_| receives(db, &inbox, id).await)).await;
        let received = received.into_iter().collect::<Result<Vec<_>, _>>()?;
        assert_eq!(received.iter().filter(|once| once.is_first()).count(), 1, "{id}: {received:?}");
    }
    Ok(())
}

/// If the other one commits, the message was received before by all that wait; if it is rolled back, one that waits receives it first.
pub(super) async fn receive_waits_for_the_end_of_another_transaction<H: Harness>(db: &Db<H>) -> Outcome {
    let inbox = inbox(db, "billing")?;
    // Where several wait for a transaction that is rolled back, a database may let only one of them go on.
    for (id, commits, waiters) in [("committed", true, 2), ("rolled back", false, 1)] {
        let mut open = db.begin().await?;
        assert_eq!(inbox.once(&mut open, id).await?, Once::First);
        let end = async {
            // In memory they wait once they are polled, which `join` does first.
            while H::CAPABILITIES.row_locks && db.waiting().await? < waiters {
                sleep(Duration::from_millis(5)).await;
            }
            let ended = if commits { open.commit().await } else { open.rollback().await };
            Ok::<_, BoxError>(ended?)
        };
        let (received, ended) = join(join_all((0..waiters).map(async |_| receives(db, &inbox, id).await)), end).await;
        ended?;
        let received = received.into_iter().collect::<Result<Vec<_>, _>>()?;
        let first = received.iter().filter(|once| once.is_first()).count();
        assert_eq!(first, usize::from(!commits), "{id}: {received:?}");
    }
    Ok(())
}

pub(super) fn inbox<H: Harness>(db: &Db<H>, consumer: &str) -> Result<Inbox, BoxError> {
    Ok(Inbox::new(db.store(), consumer)?)
}

/// Receives a message in a transaction of its own, and commits it.
pub(super) async fn receives<H: Harness>(db: &Db<H>, inbox: &Inbox, message_id: &str) -> Result<Once, BoxError> {
    let mut transaction = db.begin().await?;
    let once = inbox.once(&mut transaction, message_id).await?;
    transaction.commit().await?;
    Ok(once)
}
