//! Partitions that go from one node to another while their events are delivered.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::partition_of;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::{NodeId, Partitions};
use pillarbox_core::store::Admin as _;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::super::setting::{drained, nodes_of, settled, until};
use super::{eager, failing, in_order_of_success, in_turn, kept_in_order, statuses};
use crate::events::columns;
use crate::invariants::{
    i2_no_two_deliveries_of_an_event_overlap as i2, i3_events_of_a_key_are_handled_one_at_a_time_and_in_order as i3,
};
use crate::recorder::gated;
use crate::run::{Db, Outcome};
use crate::{Ending, Fault, FaultyStore, Harness, Operation, Recorder};

/// Nodes come and leave while they deliver, and events are written all the time: nothing twice, nothing out of order.
pub(in crate::scenarios) async fn nodes_that_come_and_leave_deliver_nothing_twice<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::around(async |_: Delivery| sleep(Duration::from_millis(1)).await);
    let is_over = Cell::new(false);
    let writing = async {
        let mut written = in_turn(40, 400)?;
        db.write(written.clone()).await?;
        while !is_over.get() {
            let more = in_turn(40, 40)?;
            db.write(more.clone()).await?;
            written.extend(more);
            sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, BoxError>(written)
    };
    let have_delivered = async |nodes: usize| until(async || Ok(nodes_of(&recorder).len() == nodes)).await;
    let nodes = async {
        let first = eager(db.store(), &recorder)?.node_name("first").start().await?;
        recorder.wait_for_calls(50).await;
        let second = eager(db.connect().await?, &recorder)?.node_name("second").start().await?;
        have_delivered(2).await?;
        let third = eager(db.connect().await?, &recorder)?.node_name("third").start().await?;
        have_delivered(3).await?;
        first.shutdown().await;
        recorder.wait_for_calls(recorder.calls().len() + 50).await;
        third.shutdown().await;
        recorder.wait_for_calls(recorder.calls().len() + 50).await;
        is_over.set(true);
        Ok(second)
    };
    let (written, second) = try_join(writing, nodes).await?;
    kept_in_order(db, &second, &recorder, &written).await
}

/// It takes what is free of its share at once, and the rest when the owner has given it.
pub(in crate::scenarios) async fn partitions_are_shared_evenly<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let first = eager(db.store(), &recorder)?.start().await?;
    let second = eager(db.connect().await?, &recorder)?.start().await?;
    shares(db, &[128, 128]).await?;
    let third = eager(db.connect().await?, &recorder)?.start().await?;
    shares(db, &[86, 85, 85]).await?;
    second.shutdown().await;
    shares(db, &[128, 128]).await?;
    for node in [first, third] {
        node.shutdown().await;
    }
    assert_eq!(db.store().partitions().await?.unowned, 256);
    Ok(())
}

/// Waits until the nodes own so many partitions each.
async fn shares<H: Harness>(db: &Db<H>, wanted: &[u16]) -> Outcome {
    loop {
        let nodes = db.store().nodes().await?;
        let mut owned: Vec<u16> = nodes.iter().map(|node| node.partitions).collect();
        owned.sort_unstable_by(|a, b| b.cmp(a));
        if owned == wanted {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// A node that cannot reach the database loses its keys to another; what its handlers have said meanwhile changes nothing.
pub(in crate::scenarios) async fn the_keys_of_a_node_that_was_cut_off_go_to_another<H: Harness>(db: &Db<H>) -> Outcome {
    let (stuck, gate) = gated();
    let faulty = FaultyStore::new(db.store());
    let first =
        eager(Arc::new(faulty.clone()), &stuck)?.lease(Duration::from_millis(400)).node_name("first").start().await?;
    let written = in_turn(5, 20)?;
    db.write(written.clone()).await?;
    stuck.wait_for_calls(4).await;
    // Two calls end well while the lease lasts, and that cannot be recorded.
    faulty.set(Operation::Settle, Fault::Unreachable);
    gate.add_permits(2);
    stuck.wait_for_ends(2).await;
    faulty.set_all(Fault::Unreachable);
    let recorder = Recorder::new();
    let second = eager(db.connect().await?, &recorder)?.node_name("second").start().await?;
    settled(&*db.store()).await?;
    let said = stuck.calls().into_iter().filter(|call| call.ended.is_some_and(|(_, ending)| ending == Ending::Done));
    assert_eq!(said.count(), 2, "no other call has ended well");
    gate.add_permits(1_000_000);
    faulty.set_all(Fault::None);
    first.shutdown().await;
    second.shutdown().await;
    assert_eq!(statuses(db, &written).await?, [1; 20]);
    assert_eq!(recorder.calls().len(), 20, "all by the one that was left");
    let observed = db.observed(&written, recorder.calls()).await?;
    i3(&observed)?;
    Ok(())
}

/// A key of a partition that the second of two nodes is to own, and that none of the keys `in_turn` is in.
fn key_of_the_second() -> Result<String, BoxError> {
    let others: Partitions = (0..40).map(|number| partition_of(&format!("key-{number}"))).collect();
    let fits = |key: &String| partition_of(key) >= 128 && !others.contains(partition_of(key));
    let found = (0..1000).map(|number| format!("slow-{number}")).find(fits);
    found.ok_or_else(|| "one of a thousand keys is there".into())
}

/// A handler that runs for longer than the drain is told to stop, and keeps its partition for as long as it runs: the node that
/// joins takes the rest of its share at once, and delivers nothing of the key before the handler has ended.
pub(in crate::scenarios) async fn a_handler_longer_than_the_drain_keeps_its_partition<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let (told, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (tells, waits) = (Arc::clone(&told), Arc::clone(&gate));
    let recorder = Recorder::around(move |delivery: Delivery| {
        let (tells, waits) = (Arc::clone(&tells), Arc::clone(&waits));
        async move {
            if delivery.event_type() == "bad" {
                delivery.stop_requested().await;
                tells.add_permits(1);
                drop(waits.acquire().await);
            }
        }
    });
    let slow = key_of_the_second()?;
    let first =
        eager(db.store(), &recorder)?.drain_timeout(Duration::from_millis(100)).node_name("first").start().await?;
    let mut written = failing(&[("bad", &slow), ("good", &slow), ("good", &slow)])?;
    written.extend(in_turn(40, 200)?);
    db.write(written.clone()).await?;
    recorder.wait_for_ends(200).await;

    let second = eager(db.connect().await?, &recorder)?.node_name("second").start().await?;
    shares(db, &[129, 127]).await?;
    drop(told.acquire().await?);
    // What is written now is delivered by both, the key that waits aside.
    let mut later = in_turn(40, 200)?;
    later.extend(failing(&[("good", &slow)])?);
    db.write(later.clone()).await?;
    recorder.wait_for_ends(400).await;
    assert_eq!(recorder.calls().len(), 401, "nothing of the key but what runs");
    shares(db, &[129, 127]).await?;

    gate.add_permits(1);
    shares(db, &[128, 128]).await?;
    drained(db, &first).await?;
    written.extend(later);
    kept_in_order(db, &second, &recorder, &written).await?;
    let behind =
        recorder.calls().into_iter().filter(|call| call.order_key.as_ref().is_some_and(|key| *key.key == *slow));
    let nodes: Vec<NodeId> = behind.map(|call| call.node).collect();
    assert!(nodes.len() == 4 && nodes[1..].iter().all(|node| *node == nodes[3] && *node != nodes[0]), "{nodes:?}");
    Ok(())
}

/// A handler that ends with an error because it was told to stop has not failed: no attempt is counted, and the node that waited
/// for the partition delivers the event, before the others of its key.
pub(in crate::scenarios) async fn a_handler_that_ends_when_it_is_told_to_has_not_failed<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let stubborn = Arc::new(Semaphore::new(1));
    let recorder = Recorder::around(move |delivery: Delivery| {
        let stays = delivery.event_type() == "bad" && stubborn.try_acquire().map(|permit| permit.forget()).is_ok();
        async move {
            if stays {
                delivery.stop_requested().await;
                return Err("told to stop");
            }
            Ok(())
        }
    });
    let slow = key_of_the_second()?;
    let first =
        eager(db.store(), &recorder)?.drain_timeout(Duration::from_millis(100)).node_name("first").start().await?;
    let written = failing(&[("bad", &slow), ("good", &slow)])?;
    db.write(written.clone()).await?;
    recorder.wait_for_calls(1).await;
    let second = eager(db.connect().await?, &recorder)?.node_name("second").start().await?;
    drained(db, &first).await?;
    second.shutdown().await;
    let row = columns(db, &written[0]).await?;
    assert_eq!((row.status, row.attempts, row.last_error), (1, 0, None));
    assert_eq!(recorder.calls().len(), 3);
    in_order_of_success(&recorder, &written);
    let observed = db.observed(&written, recorder.calls()).await?;
    i2(&observed)?;
    i3(&observed)?;
    Ok(())
}
