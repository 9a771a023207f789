use futures_util::future::try_join_all;
use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Acquired, Partitions};
use tokio::task::JoinSet;

use crate::Harness;
use crate::events::HOUR;
use crate::nodes::{member, owner, rebalance, rebalancer, stranger};
use crate::run::{Db, Outcome};

/// On tables that nobody owns, the first node to ask becomes the owner.
pub(super) async fn acquire_makes_the_first_node_owner<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = member(&*store).await?;
    assert!(matches!(store.acquire(&node).await?, Acquired::Owner { .. }));
    Ok(())
}

/// While the owner lives, any other node is told who it is and how long its lease still runs.
pub(super) async fn acquire_by_a_second_node_is_standby_and_names_the_owner<H: Harness>(db: &Db<H>) -> Outcome {
    let first = owner(&*db.store()).await?;
    let other = db.connect().await?;
    let second = member(&*other).await?;
    for _ in 0..2 {
        match other.acquire(&second).await? {
            Acquired::Standby { owner, expires_in } => {
                assert_eq!(owner, first);
                assert!(expires_in <= HOUR && expires_in > HOUR / 2, "the lease of an hour ends in {expires_in:?}");
            }
            answer => return Err(format!("expected a standby, not {answer:?}").into()),
        }
    }
    Ok(())
}

/// Asking again changes nothing for the owner, its epoch included.
pub(super) async fn acquire_again_by_the_owner_is_owner<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = member(&*store).await?;
    let first = store.acquire(&node).await?;
    assert!(matches!(first, Acquired::Owner { .. }), "{first:?}");
    assert_eq!(store.acquire(&node).await?, first);
    Ok(())
}

/// Once the owner's lease has ended, the next node that asks owns everything, in a greater epoch.
pub(super) async fn acquire_takes_over_from_an_expired_node<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let first = member(&*store).await?;
    let Acquired::Owner { epoch: before, .. } = store.acquire(&first).await? else {
        return Err("the first node should be the owner".into());
    };
    let second = member(&*other).await?;
    assert!(matches!(other.acquire(&second).await?, Acquired::Standby { .. }));
    db.expire(&first).await?;
    match other.acquire(&second).await? {
        Acquired::Owner { epoch, .. } => assert!(epoch > before, "epoch {epoch} comes after {before}"),
        answer => return Err(format!("expected the owner, not {answer:?}").into()),
    }
    Ok(())
}

/// A node that was evicted, or never joined, cannot own anything and is told so.
pub(super) async fn acquire_by_a_node_that_was_evicted_is_lost<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert_eq!(store.acquire(&stranger()?).await?, Acquired::Lost, "it never joined");

    let first = owner(&*store).await?;
    db.expire(&first).await?;
    let second = owner(&*store).await?;
    assert_eq!(store.acquire(&first).await?, Acquired::Lost, "the second node evicted it");

    // Its own attempt evicts an expired node too.
    db.expire(&second).await?;
    assert_eq!(store.acquire(&second).await?, Acquired::Lost, "its own lease has ended");
    Ok(())
}

/// However many nodes ask at the same time, on free tables and again after the owner's lease has ended, one gets them.
pub(super) async fn acquire_concurrently_makes_exactly_one_owner<H: Harness>(db: &Db<H>) -> Outcome {
    const NODES: usize = 24;
    let stores = try_join_all((0..4).map(|_| db.connect())).await?;
    let mut last_epoch = i64::MIN;
    for round in 0..3 {
        let mut tasks = JoinSet::new();
        for store in stores.iter().cycle().take(NODES).cloned() {
            let node = member(&*store).await?;
            tasks.spawn(async move { store.acquire(&node).await.map(|answer| (node, answer)) });
        }
        let answers = tasks.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let owners: Vec<_> = answers
            .iter()
            .filter_map(|(node, answer)| match answer {
                Acquired::Owner { epoch, .. } => Some((node, *epoch)),
                _ => None,
            })
            .collect();
        let [(owner, epoch)] = owners[..] else {
            return Err(format!("round {round} made {} owners", owners.len()).into());
        };
        let all_others_know_it = answers.iter().all(|(node, answer)| match answer {
            Acquired::Standby { owner: named, .. } => named == owner && node != owner,
            Acquired::Owner { .. } => true,
            Acquired::Lost => false,
        });
        assert!(all_others_know_it, "round {round}: {answers:?}");
        assert!(epoch > last_epoch, "epoch {epoch} comes after {last_epoch}");
        last_epoch = epoch;
        db.expire(owner).await?;
    }
    Ok(())
}

/// A node that takes over learns, once, whether the owner before had died; a node that had not owned anything may die without a
/// word.
pub(super) async fn acquire_says_whether_the_owner_before_had_left<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let mut node = member(&*store).await?;
    assert!(!unclean(store.acquire(&node).await?)?, "there was none");
    for (dies, round) in [(false, 1), (true, 2), (true, 3), (false, 4)] {
        let [next, standby] = [member(&*store).await?, member(&*store).await?];
        if dies {
            db.expire(&node).await?;
        } else {
            store.leave(&node).await?;
        }
        db.expire(&standby).await?;
        assert_eq!(unclean(store.acquire(&next).await?)?, dies, "round {round}");
        assert!(!unclean(store.acquire(&next).await?)?, "round {round}: it has been said before");
        node = next;
    }

    // Whichever node evicts it, and though it owned a part only.
    db.expire(&node).await?;
    let next = member(&*store).await?;
    store.reclaim(&next, false).await?;
    assert!(unclean(store.acquire(&next).await?)?, "a reclaim evicted it");
    store.leave(&next).await?;
    let [first, second] = [rebalancer(&*store).await?, rebalancer(&*store).await?];
    for node in [&first, &second] {
        rebalance(&*store, node, Partitions::NONE).await?;
    }
    store.leave(&first).await?;
    db.expire(&second).await?;
    let next = member(&*store).await?;
    assert!(unclean(store.acquire(&next).await?)?, "one of two that shared the partitions died");
    assert!(!unclean(store.acquire(&next).await?)?, "it has been said before");
    Ok(())
}

fn unclean(acquired: Acquired) -> Result<bool, BoxError> {
    match acquired {
        Acquired::Owner { unclean, .. } => Ok(unclean),
        other => Err(format!("expected the owner, not {other:?}").into()),
    }
}
