use std::time::Duration;

use pillarbox_core::clock::{Clock as _, SystemClock};
use pillarbox_core::ownership::{NodeId, NodeMode};
use tokio::time::sleep;

use crate::Harness;
use crate::events::HOUR;
use crate::nodes::{member, stranger};
use crate::run::{Db, Outcome};

/// The list has the registered nodes in the order in which they came, each with its start, its mode and the rest of its lease,
/// and tells the owner of the table. A node whose lease has ended is there until it is evicted, and has none left.
pub(in crate::conformance) async fn nodes_lists_the_registered_and_says_who_owns_the_table<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    assert!(store.nodes().await?.is_empty());
    // Their names are in the opposite order.
    let [third, second, first] = ["c", "b", "a"].map(|name| NodeId::from_stored(&format!("{name}-1")));
    for node in [&third, &second, &first] {
        store.join(node, NodeMode::SingleNode, HOUR).await?;
        // Some databases' clocks count in milliseconds.
        sleep(Duration::from_millis(5)).await;
    }
    store.acquire(&second).await?;
    let nodes = store.nodes().await?;
    let told: Vec<_> = nodes.iter().map(|status| (&status.node, status.partitions)).collect();
    assert_eq!(told, [(&third, 0), (&second, 256), (&first, 0)]);
    let now = SystemClock.now();
    for status in &nodes {
        assert_eq!(status.mode, "single_node");
        assert!(status.lease_left.is_some_and(|left| left > HOUR / 2 && left <= HOUR), "{status:?}");
        // Clocks differ between hosts, but not by days.
        let apart = now.since(status.started_at).max(status.started_at.since(now));
        assert!(apart < HOUR * 24, "{status:?} at {now}");
    }

    store.leave(&third).await?;
    db.expire(&second).await?;
    let later = stranger()?;
    db.register(&later, "a_mode_of_a_later_release", 3600).await?;
    let nodes = store.nodes().await?;
    let ended: Vec<_> = nodes.iter().filter(|status| status.lease_left.is_none()).collect();
    assert!(nodes.len() == 3 && ended.len() == 1 && ended[0].node == second && ended[0].partitions == 256, "{nodes:?}");
    let unknown = nodes.iter().find(|status| status.node == later).ok_or("the later release's node is missing")?;
    assert_eq!((unknown.mode.as_str(), unknown.partitions), ("a_mode_of_a_later_release", 0));
    store.acquire(&first).await?;
    let owners: Vec<_> = store.nodes().await?.into_iter().filter(|status| status.partitions > 0).collect();
    assert!(owners.len() == 1 && owners[0].node == first, "the expired one was evicted: {owners:?}");

    store.leave(&first).await?;
    store.leave(&later).await?;
    let standby = member(&*store).await?;
    let nodes = store.nodes().await?;
    assert!(
        nodes.len() == 1 && nodes[0].node == standby && nodes[0].partitions == 0,
        "nobody owns the table: {nodes:?}"
    );
    Ok(())
}
