use std::ops::RangeInclusive;

use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Epochs, Holding, NodeId, NodeMode, Partitions, Rebalanced, spread};
use pillarbox_core::store::Store;
use tokio::time::sleep;

use crate::Harness;
use crate::events::HOUR;
use crate::nodes::{TICK, rebalance, rebalance_by_epoch, rebalancer, stranger};
use crate::run::{Db, Outcome};

/// Each node is told the range that is its part in the order in which they joined, and owns that and nothing else once
/// the others have given what is too much; nodes that come and go move the ranges.
pub(super) async fn rebalance_spreads_the_partitions_evenly<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    // Neither counts: the lease of the one has ended, the other's ends while they rebalance.
    db.register(&stranger()?, "single_node", -1).await?;
    let first = rebalancer(&*store).await?;
    db.register(&NodeId::from_stored("a-1"), NodeMode::Partitioned.name(), 3600).await?;
    let both = rebalance(&*store, &first, Partitions::NONE).await?;
    assert_eq!((both.owned.len(), both.unclean), (128, Partitions::NONE), "{both:?}");
    assert!(both.next_expiry.is_some_and(|wait| wait > HOUR / 2 && wait <= HOUR), "{both:?}");
    db.expire(&NodeId::from_stored("a-1")).await?;
    let alone = rebalance(&*store, &first, Partitions::NONE).await?;
    assert_eq!((alone.owned, alone.target, alone.next_expiry), (Partitions::ALL, Some(0..=255), None));

    let mut nodes = vec![first];
    for (count, sizes) in [(3, vec![86, 85, 85]), (4, vec![64; 4]), (7, vec![37, 37, 37, 37, 36, 36, 36])] {
        while nodes.len() < count {
            nodes.push(rebalancer(&*store).await?);
        }
        assert_eq!(settled(db, &nodes).await?, sizes);
    }
    // The first and one in the middle leave: what they owned is free, and the others move together.
    for gone in [nodes.remove(4), nodes.remove(0)] {
        store.leave(&gone).await?;
    }
    assert_eq!(settled(db, &nodes).await?, [52, 51, 51, 51, 51]);

    // Nodes that 256 others stand before have no part.
    for number in 0..251 {
        db.register(&NodeId::from_stored(&format!("n-{number}")), NodeMode::Partitioned.name(), 3600).await?;
    }
    sleep(TICK).await;
    let last = rebalancer(&*store).await?;
    let nothing = rebalance(&*store, &last, Partitions::NONE).await?;
    assert_eq!((nothing.target, nothing.owned), (None, Partitions::NONE));
    Ok(())
}

/// A node takes those of its part that are free now and waits for no other; what it gives of its own part it takes at
/// once again.
pub(super) async fn rebalance_takes_what_is_free_and_leaves_the_rest<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, other) = (db.store(), db.connect().await?);
    let first = rebalancer(&*store).await?;
    assert_eq!(rebalance(&*store, &first, Partitions::NONE).await?.owned, Partitions::ALL);
    sleep(TICK).await;
    let second = rebalancer(&*other).await?;

    let wanted = rebalance(&*other, &second, Partitions::NONE).await?;
    assert_eq!((wanted.owned, wanted.gained, wanted.target), (Partitions::NONE, Partitions::NONE, Some(128..=255)));
    let gives = rebalance(&*store, &first, set([200..=255, 5..=5])).await?;
    assert_eq!((gives.owned, gives.gained, gives.target), (set([0..=199]), set([5..=5]), Some(0..=127)));
    let part = rebalance(&*other, &second, Partitions::NONE).await?;
    assert_eq!((part.owned, part.gained), (set([200..=255]), set([200..=255])));

    // A hole in the middle and its two neighbours, one of which stays where it is.
    rebalance(&*store, &first, set([150..=150, 130..=140])).await?;
    let more = rebalance(&*other, &second, set([255..=255])).await?;
    assert_eq!(more.gained, set([150..=150, 130..=140, 255..=255]));
    assert_eq!(more.owned, set([150..=150, 130..=140, 200..=255]));
    let rest = spread::surplus(rebalance(&*store, &first, Partitions::NONE).await?.owned, Some(0..=127));
    assert_eq!(rest, set([128..=129, 141..=149, 151..=199]));
    assert_eq!(rebalance(&*store, &first, rest).await?.owned, set([0..=127]));
    assert_eq!(rebalance(&*other, &second, Partitions::NONE).await?.owned, set([128..=255]));

    for (store, node, owned) in [(&store, &first, 0..=127), (&other, &second, 128..=255)] {
        let holding = rebalance(&**store, node, Partitions::NONE).await?;
        assert_eq!((holding.owned, holding.gained), (set([owned]), Partitions::NONE), "nothing is left to do");
    }
    Ok(())
}

/// A node gives only partitions that it owns: none of another node, none that nobody owns, and none at all if it is not
/// registered.
pub(super) async fn rebalance_gives_only_what_the_node_owns<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [first, second] = two_in_order(&*store).await?;
    for node in [&first, &second] {
        assert_eq!(rebalance(&*store, node, Partitions::NONE).await?.owned.len(), 128);
    }
    let gives = rebalance_by_epoch(&*store, &second, &all_by(1)).await?;
    assert_eq!((gives.owned, gives.gained), (set([128..=255]), set([128..=255])), "its own it takes at once again");
    let gives = rebalance_by_epoch(&*store, &second, &all_by(2).of(set([0..=127]))).await?;
    assert_eq!((gives.owned, gives.gained), (set([128..=255]), Partitions::NONE));
    assert_eq!(store.rebalance(&stranger()?, &all_by(1)).await?, Rebalanced::Lost);
    let keeps = rebalance(&*store, &first, Partitions::NONE).await?;
    assert_eq!((keeps.owned, keeps.gained), (set([0..=127]), Partitions::NONE));

    store.leave(&second).await?;
    let third = rebalancer(&*store).await?;
    let all = rebalance(&*store, &third, Partitions::ALL).await?;
    assert_eq!((all.owned, all.gained), (set([128..=255]), set([128..=255])), "free before and after");
    assert_eq!(rebalance(&*store, &first, Partitions::ALL).await?.owned, set([0..=127]));
    Ok(())
}

/// A gift under an epoch that is over changes nothing: it may be the request of a connection that hung, while the node gave
/// the partition, and came to own it anew. Each taking has an epoch of its own, whoever takes and however it came to be free.
pub(super) async fn rebalance_gives_nothing_under_an_old_epoch<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [first, second] = two_in_order(&*store).await?;
    let before = rebalance(&*store, &first, Partitions::NONE).await?;
    let theirs = rebalance(&*store, &second, Partitions::NONE).await?;
    assert_eq!((before.epochs.partitions(), theirs.epochs.partitions()), (before.owned, theirs.owned));

    let late = before.epochs.clone();
    let anew = rebalance_by_epoch(&*store, &first, &late).await?;
    assert_eq!((anew.owned, anew.gained), (before.owned, before.owned), "given, and taken at once");
    let newer = |(partition, epoch): (u8, i64)| late.get(partition).is_some_and(|before| before < epoch);
    assert!(anew.epochs.iter().all(newer), "{:?} after {late:?}", anew.epochs);
    let again = rebalance_by_epoch(&*store, &first, &late).await?;
    assert_eq!((again.owned, again.gained, &again.epochs), (before.owned, Partitions::NONE, &anew.epochs));

    // Across other owners too: what was given, was owned by another, who left, and came back.
    store.leave(&second).await?;
    let all = rebalance(&*store, &first, Partitions::NONE).await?;
    assert_eq!(all.owned, Partitions::ALL);
    let late = all.epochs.of(set([128..=255]));
    sleep(TICK).await;
    let third = rebalancer(&*store).await?;
    assert_eq!(rebalance_by_epoch(&*store, &first, &late).await?.owned, set([0..=127]));
    assert_eq!(rebalance(&*store, &third, Partitions::NONE).await?.owned, set([128..=255]));
    store.leave(&third).await?;
    let back = rebalance(&*store, &first, Partitions::NONE).await?;
    assert_eq!(back.owned, Partitions::ALL);
    sleep(TICK).await;
    let fourth = rebalancer(&*store).await?;
    let after = rebalance_by_epoch(&*store, &first, &late).await?;
    assert_eq!((after.owned, &after.epochs), (Partitions::ALL, &back.epochs), "the late request gives nothing");
    assert_eq!(rebalance(&*store, &fourth, Partitions::NONE).await?.owned, Partitions::NONE);
    Ok(())
}

/// A node that takes a partition learns, once, that its last owner died, whichever node evicted that one; not if the owner
/// gave the partition or left.
pub(super) async fn rebalance_tells_of_an_owner_that_died<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let [first, second] = two_in_order(&*store).await?;
    for node in [&first, &second] {
        assert_eq!(
            rebalance(&*store, node, Partitions::NONE).await?.unclean,
            Partitions::NONE,
            "there was none before"
        );
    }
    // One dies after it has given a part.
    store.leave(&first).await?;
    assert_eq!(rebalance(&*store, &second, Partitions::NONE).await?.unclean, Partitions::NONE, "it left");
    let third = rebalancer(&*store).await?;
    rebalance(&*store, &second, set([128..=199])).await?;
    db.expire(&second).await?;
    let taken = rebalance(&*store, &third, Partitions::NONE).await?;
    assert_eq!((taken.gained, taken.unclean), (Partitions::ALL, set([0..=127, 200..=255])));
    let again = rebalance(&*store, &third, set([0..=9])).await?;
    assert_eq!((again.gained, again.unclean), (set([0..=9]), Partitions::NONE), "it has been said before");

    // Evicted by one whose part it is not, and taken later, piece by piece.
    sleep(TICK).await;
    let fourth = rebalancer(&*store).await?;
    rebalance(&*store, &third, set([128..=255])).await?;
    assert_eq!(rebalance(&*store, &fourth, Partitions::NONE).await?.unclean, Partitions::NONE, "it was given");
    sleep(TICK).await;
    let fifth = rebalancer(&*store).await?;
    sleep(TICK).await;
    let sixth = rebalancer(&*store).await?;
    db.expire(&third).await?;
    // Now the fourth's part is 0..=85, the fifth's 86..=170 and the sixth's 171..=255.
    let part = rebalance(&*store, &fifth, Partitions::NONE).await?;
    assert_eq!((part.target, part.unclean), (Some(86..=170), set([86..=127])));
    let part = rebalance(&*store, &fourth, set([128..=255])).await?;
    assert_eq!((part.gained, part.unclean), (set([0..=85]), set([0..=85])));
    for (node, gained) in [(&fifth, 128..=170), (&sixth, 171..=255)] {
        let part = rebalance(&*store, node, Partitions::NONE).await?;
        assert_eq!((part.gained, part.unclean), (set([gained]), Partitions::NONE));
    }

    // A reclaim evicts too.
    for node in [&fifth, &sixth] {
        db.expire(node).await?;
    }
    store.reclaim(&fourth, false).await?;
    let rest = rebalance(&*store, &fourth, Partitions::NONE).await?;
    assert_eq!((rest.owned, rest.unclean), (Partitions::ALL, set([86..=255])));
    Ok(())
}

/// A node that never joined, that another evicted, or whose lease has ended owns nothing and is told so; what it
/// owned is free.
pub(super) async fn rebalance_by_a_node_that_was_evicted_is_lost<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    assert_eq!(store.rebalance(&stranger()?, &Epochs::none()).await?, Rebalanced::Lost, "it never joined");

    let [first, second] = two_in_order(&*store).await?;
    rebalance(&*store, &first, Partitions::NONE).await?;
    db.expire(&first).await?;
    assert_eq!(rebalance(&*store, &second, Partitions::NONE).await?.owned, Partitions::ALL);
    assert_eq!(store.rebalance(&first, &Epochs::none()).await?, Rebalanced::Lost, "the second node evicted it");
    assert_eq!(store.rebalance(&first, &all_by(1)).await?, Rebalanced::Lost, "and it has nothing to give");
    let keeps = rebalance(&*store, &second, Partitions::NONE).await?;
    assert_eq!((keeps.owned, keeps.gained), (Partitions::ALL, Partitions::NONE));

    // Its own call evicts an expired node too.
    db.expire(&second).await?;
    assert_eq!(store.rebalance(&second, &Epochs::none()).await?, Rebalanced::Lost, "its own lease has ended");
    let third = rebalancer(&*store).await?;
    let taken = rebalance(&*store, &third, Partitions::NONE).await?;
    assert_eq!((taken.owned, taken.unclean), (Partitions::ALL, Partitions::ALL));
    Ok(())
}

/// Two members of which the first joined first.
async fn two_in_order(store: &dyn Store) -> Result<[NodeId; 2], BoxError> {
    let first = rebalancer(store).await?;
    sleep(TICK).await;
    Ok([first, rebalancer(store).await?])
}

/// All partitions under this epoch.
fn all_by(epoch: i64) -> Epochs {
    Partitions::ALL.iter().map(|partition| (partition, epoch)).collect()
}

fn set<const N: usize>(runs: [RangeInclusive<u8>; N]) -> Partitions {
    runs.into_iter().flatten().collect()
}

/// The number of partitions that each node owns, in the order in which they joined, once all have given and taken. Three rounds
/// suffice, in which each learns its part, gives its surplus, and takes the partitions that the others gave.
async fn settled<H: Harness>(db: &Db<H>, nodes: &[NodeId]) -> Result<Vec<usize>, BoxError> {
    let store = db.store();
    let mut holdings = vec![Holding::default(); nodes.len()];
    for _ in 0..3 {
        for (node, holding) in nodes.iter().zip(&mut holdings) {
            let surplus = spread::surplus(holding.owned, holding.target.clone());
            *holding = rebalance(&*store, node, surplus).await?;
        }
    }
    let mut left = Partitions::ALL;
    let mut sizes = Vec::new();
    let listed = store.nodes().await?;
    let members: Vec<NodeId> = listed.iter().map(|status| status.node.clone()).collect();
    for status in &listed {
        let at = nodes.iter().position(|node| *node == status.node).ok_or("a node is listed that has not joined")?;
        let holding = &holdings[at];
        let target = spread::target(&members, &status.node).ok_or("each has a part")?;
        assert_eq!((holding.owned, holding.target.clone()), (Partitions::from(target.clone()), Some(target)));
        assert_eq!(usize::from(status.partitions), holding.owned.len());
        assert_eq!(holding.owned.intersection(left), holding.owned, "no partition has two owners");
        left = left.difference(holding.owned);
        sizes.push(holding.owned.len());
    }
    assert!(left.is_empty(), "nobody owns {left:?}");
    Ok(sizes)
}
