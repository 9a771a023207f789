use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::{Clock, SystemClock, Timestamp};
use pillarbox_core::error::{BoxError, StoreErrorKind};
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, Path};
use pillarbox_core::ownership::{NodeId, NodeMode};
use pillarbox_core::store::Store;
use pillarbox_core::write::Finish as _;
use pillarbox_engine::run::{MultiNode, Outbox, Role, StartError};
use tokio::time::{Instant, sleep};

use super::setting::{
    assert_soon, delivered_once, drained, first_delivered, nodes_of, settled, until, write, write_guarded,
};
use crate::events::{HOUR, all, columns, event, events, holders};
use crate::nodes;
use crate::recorder::gated;
use crate::run::{Db, Outcome};
use crate::{Fault, FaultyStore, Harness, Operation, Recorder};

/// A node that never polls the table unless it has a reason to.
fn unpolled(store: Arc<dyn Store>, recorder: &Recorder) -> MultiNode {
    Outbox::multi_node(store).poll_interval(HOUR, HOUR).handle_all(recorder.clone())
}

/// A node that polls the table all the time.
fn eager(store: Arc<dyn Store>, recorder: &Recorder) -> MultiNode {
    let polling = Outbox::multi_node(store).poll_interval(Duration::from_millis(1), Duration::from_millis(20));
    polling.handle_all(recorder.clone())
}

fn node_of(outbox: &Outbox) -> Result<NodeId, BoxError> {
    match outbox.role() {
        Role::Active { node } => Ok(node),
        role => Err(format!("it should deliver, and is {role:?}").into()),
    }
}

/// Three nodes at once on one backlog, small batches, written to while they are at it: each delivers, and there is one call per event.
pub(super) async fn nodes_share_a_backlog_without_a_second_call<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, gate) = gated();
    let written = events(600)?;
    db.write(written[..400].to_vec()).await?;
    let mut nodes = Vec::new();
    for store in [db.store(), db.connect().await?, db.connect().await?] {
        nodes.push(eager(store, &recorder).claim_batch(7).cold_capacity(20).start().await?);
    }
    // None has room for all of it, so each gets some as long as no call ends.
    until(async || Ok(nodes_of(&recorder).len() == 3)).await?;
    gate.close();
    for (index, chunk) in written[400..].chunks(10).enumerate() {
        write_guarded(db, &nodes[index % 3], chunk).await?;
    }
    settled(&*db.store()).await?;
    for node in &nodes[1..] {
        node.shutdown().await;
    }
    delivered_once(db, &nodes[0], &recorder, &written).await
}

/// Its row is inserted as the writer's own, so no other node can take it meanwhile.
pub(super) async fn a_guarded_commit_is_delivered_from_memory_by_its_writer<H: Harness>(db: &Db<H>) -> Outcome {
    let (ours, theirs) = (Recorder::new(), Recorder::new());
    let outbox = unpolled(db.store(), &ours).start().await?;
    // The look with which a node begins is over when it has found something.
    let first = first_delivered(db, &outbox, &ours).await?;
    let neighbour = eager(db.connect().await?, &theirs).start().await?;
    let mut written = events(40)?;
    for event in &written {
        // The neighbour polls the table all the time, but has no time to take what is not its own.
        write_guarded(db, &outbox, std::slice::from_ref(event)).await?;
    }
    settled(&*db.store()).await?;
    assert!(ours.calls()[1..].iter().all(|call| call.path == Path::Hot), "from memory");
    assert_eq!(theirs.calls().len(), 0, "by nobody else");
    neighbour.shutdown().await;
    written.push(first);
    delivered_once(db, &outbox, &ours, &written).await
}

/// The time between two looks for a row that was written this long ago or longer, and is not visible yet.
const LOOKS_APART: Duration = Duration::from_millis(80);

/// Waits until the node has polled the table once more, and returns when it had.
async fn next_look(outbox: &Outbox) -> Instant {
    let asked = Instant::now();
    loop {
        let now = Instant::now();
        if let Some(ago) = outbox.health().last_poll
            && ago < now - asked
        {
            return now - ago;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Nobody held it from the start, so reporting the commit makes the nodes claim it like any other row.
///
/// The node looks for what it has written by itself. So the transaction is open until those looks are far apart, and commits right
/// after one: if it is claimed long before the next, that is for the report.
pub(super) async fn a_reported_commit_of_the_users_own_is_claimed_at_once<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db.store(), &recorder).start().await?;
    let (mut written, mut prompt) = (Vec::new(), false);
    // On a busy machine, one claim or another comes later.
    while !prompt && written.len() < 50 {
        let event = event()?;
        let mut open = db.begin().await?;
        let receipt = outbox.write(&mut open, event.clone()).await?;
        written.push(event);
        sleep(LOOKS_APART).await;
        let looked = next_look(&outbox).await;
        open.commit().await?;
        outbox.notify_committed(receipt);
        recorder.wait_for_calls(written.len()).await;
        prompt = recorder.calls().last().is_some_and(|call| call.began < looked + LOOKS_APART / 2);
    }
    assert!(prompt, "each was claimed by a look that was due anyway");
    assert!(recorder.calls().iter().all(|call| call.path == Path::Cold));
    delivered_once(db, &outbox, &recorder, &written).await
}

/// More guarded commits than memory has room for: the rest is taken from the table, by whichever node.
pub(super) async fn rows_that_memory_has_no_room_for_are_claimed<H: Harness>(db: &Db<H>) -> Outcome {
    let (recorder, gate) = gated();
    let outbox = unpolled(db.store(), &recorder).workers(1).hot_capacity(2).cold_capacity(2).start().await?;
    let written = events(30)?;
    for chunk in written.chunks(5) {
        write_guarded(db, &outbox, chunk).await?;
    }
    gate.close();
    delivered_once(db, &outbox, &recorder, &written).await?;
    assert!(recorder.calls().iter().any(|call| call.path == Path::Cold), "from the table");
    Ok(())
}

/// A row that the table says is this node's and that is not in its memory is delivered all the same.
pub(super) async fn rows_that_a_node_forgot_are_found_again<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db.store(), &recorder).start().await?;
    let first = first_delivered(db, &outbox, &recorder).await?;
    // Longer than any look that the write has brought about.
    sleep(Duration::from_millis(300)).await;
    // Claimed in its name, as by a claim whose answer was lost.
    let written = events(3)?;
    db.write(written.clone()).await?;
    let claimed = db.store().claim(&node_of(&outbox)?, &all()).await?;
    assert_eq!(claimed.rows.len(), 3);
    // Any reason to look will do.
    let last = event()?;
    write(db, &outbox, std::slice::from_ref(&last)).await?;
    recorder.wait_for_calls(5).await;
    delivered_once(db, &outbox, &recorder, &[written, vec![first, last]].concat()).await
}

/// It died with rows in its memory; another delivers them when its lease has ended, and not before.
pub(super) async fn the_rows_of_a_dead_node_are_delivered_by_another<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let dead = nodes::stranger()?;
    let lease = Duration::from_millis(700);
    let joined = Instant::now();
    store.join(&dead, NodeMode::MultiNode, lease).await?;
    let written = events(20)?;
    db.write(written.clone()).await?;
    assert_eq!(store.claim(&dead, &all()).await?.rows.len(), 20);

    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder).start().await?;
    recorder.wait_for_calls(20).await;
    let took = joined.elapsed();
    assert!(took >= lease, "they were its own until then");
    // A busy machine may be late; the look every ten seconds at all that dead nodes left would be later still.
    assert!(took < Duration::from_secs(9), "it took {took:?}");
    delivered_once(db, &outbox, &recorder, &written).await
}

/// A handler that takes several leases is called once: the node renews meanwhile, and the row stays its own.
pub(super) async fn a_handler_longer_than_the_lease_runs_once<H: Harness>(db: &Db<H>) -> Outcome {
    let lease = Duration::from_secs(1);
    let recorder = Recorder::around(move |_: Delivery| sleep(lease * 2));
    let outbox = eager(db.store(), &recorder).lease(lease).start().await?;
    let neighbour = eager(db.connect().await?, &recorder).lease(lease).start().await?;
    let written = events(4)?;
    db.write(written.clone()).await?;
    drained(db, &neighbour).await?;
    delivered_once(db, &outbox, &recorder, &written).await
}

/// Rows that a node had in memory and could not deliver are free when it has stopped, and no node takes it for dead.
pub(super) async fn a_clean_stop_gives_back_what_it_holds<H: Harness>(db: &Db<H>) -> Outcome {
    let stuck = Recorder::around(async |_: Delivery| std::future::pending::<()>().await);
    let first = eager(db.store(), &stuck).workers(1).drain_timeout(Duration::from_millis(50)).start().await?;
    let written = events(50)?;
    db.write(written.clone()).await?;
    stuck.wait_for_calls(1).await;
    let recorder = Recorder::new();
    let second = eager(db.connect().await?, &recorder).start().await?;
    first.shutdown().await;
    let stopped = Instant::now();
    recorder.wait_for_calls(50).await;
    assert_soon(stopped);
    drained(db, &second).await?;
    for event in &written {
        let row = columns(db, event).await?;
        assert_eq!((row.status, row.attempts), (1, 0), "the attempt that was cut off is no failure");
        assert_eq!(recorder.calls_of(event.id()).len(), 1);
    }
    Ok(())
}

/// A node that is told to stop before its claim is answered gives back what the claim takes, so that others take it at once.
pub(super) async fn a_stop_in_the_middle_of_a_claim_gives_back_what_it_takes<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written, recorder) = (FaultyStore::new(db.store()), events(10)?, Recorder::new());
    db.write(written.clone()).await?;
    store.set(Operation::Fetch, Fault::LateAnswer);
    let outbox = eager(Arc::new(store.clone()), &recorder).start().await?;
    // Until it has claimed what it does not know of yet.
    let mut late = 1;
    store.wait_for_faults(Operation::Fetch, late).await;
    while holders(db, &written).await?.iter().any(Option::is_none) {
        late += 1;
        store.wait_for_faults(Operation::Fetch, late).await;
    }
    outbox.shutdown().await;
    assert_eq!(recorder.calls().len(), 0, "the claim was answered too soon for this test");
    assert_eq!(holders(db, &written).await?, vec![None; written.len()], "they are free");
    Ok(())
}

/// Rows would have two owners.
pub(super) async fn modes_that_cannot_coexist_refuse_to_start<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let running = eager(db.store(), &recorder).start().await?;
    let other = db.connect().await?;
    let single = Outbox::single_node(Arc::clone(&other)).handle_all(recorder.clone()).start().await;
    let ordered = Outbox::ordered(Arc::clone(&other)).handle_all(recorder.clone()).start().await;
    for refused in [single, ordered] {
        match refused {
            Err(StartError::Store(error)) => {
                assert_eq!(error.kind(), StoreErrorKind::IncompatibleMode);
                assert!(error.to_string().contains("multi_node"), "{error}");
            }
            other => return Err(format!("it should have been refused, not {other:?}").into()),
        }
    }
    // One that only writes disturbs nobody.
    let writer = Outbox::writer_only(Arc::clone(&other)).start().await?;
    let written = event()?;
    write(db, &writer, std::slice::from_ref(&written)).await?;
    recorder.wait_for_calls(1).await;
    writer.shutdown().await;
    assert_eq!(writer.role(), Role::Stopped);
    delivered_once(db, &running, &recorder, &[written]).await
}

/// A host's clock that is minutes off.
#[derive(Debug)]
pub(super) struct Off(pub(super) Duration, pub(super) bool);

impl Clock for Off {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now();
        if self.1 {
            now.plus(self.0)
        } else {
            Timestamp::from_micros(now.as_micros() - i64::try_from(self.0.as_micros()).unwrap_or(0))
        }
    }
}

/// Leases and due times are the database's; what the hosts take for the time decides nothing.
pub(super) async fn clocks_minutes_apart_change_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let lease = Duration::from_secs(2);
    let off = Duration::from_secs(600);
    let fast = eager(db.store(), &recorder).clock(Off(off, true)).lease(lease).start().await?;
    let slow = eager(db.connect().await?, &recorder).clock(Off(off, false)).lease(lease).start().await?;
    let (one, two) = (node_of(&fast)?, node_of(&slow)?);
    let written: Vec<Envelope> = events(60)?;
    for (index, chunk) in written.chunks(5).enumerate() {
        let node = if index % 2 == 0 { &fast } else { &slow };
        write_guarded(db, node, chunk).await?;
        // Long enough for several renewals of both.
        sleep(Duration::from_millis(250)).await;
    }
    settled(&*db.store()).await?;
    assert_eq!((node_of(&fast)?, node_of(&slow)?), (one, two), "neither lost its lease");
    slow.shutdown().await;
    delivered_once(db, &fast, &recorder, &written).await
}

/// A node whose one worker is stuck, beside one with nothing to do.
struct Neighbours {
    busy: Outbox,
    idle: Outbox,
    recorder: Recorder,
}

async fn neighbours<H: Harness>(db: &Db<H>, hot: usize, cold: usize) -> Result<Neighbours, BoxError> {
    let (stuck, recorder) = (Recorder::around(async |_: Delivery| std::future::pending::<()>().await), Recorder::new());
    let busy = unpolled(db.store(), &stuck).workers(1).hot_capacity(hot).cold_capacity(cold);
    let busy = busy.drain_timeout(Duration::ZERO).start().await?;
    let idle = eager(db.connect().await?, &recorder).start().await?;
    Ok(Neighbours { busy, idle, recorder })
}

/// The idle node gets all that the busy one has no room for, and those that it `held` when it has stopped.
async fn idle_gets_the_rest<H: Harness>(db: &Db<H>, nodes: &Neighbours, written: &[Envelope], held: usize) -> Outcome {
    let Neighbours { busy, idle, recorder } = nodes;
    recorder.wait_for_calls(written.len() - held).await;
    busy.shutdown().await;
    recorder.wait_for_calls(written.len()).await;
    drained(db, idle).await?;
    assert!(written.iter().all(|event| recorder.calls_of(event.id()).len() == 1));
    Ok(())
}

/// Rows that one node has no room for in memory are not its own for long: a neighbour with nothing to do gets its share.
pub(super) async fn a_full_hot_queue_leaves_the_rest_to_others<H: Harness>(db: &Db<H>) -> Outcome {
    let nodes = neighbours(db, 5, 5).await?;
    let written = events(60)?;
    for chunk in written.chunks(4) {
        write_guarded(db, &nodes.busy, chunk).await?;
    }
    // One running, five in each queue.
    idle_gets_the_rest(db, &nodes, &written, 11).await
}

/// Two transactions are open at once, and each writes as much as there is room for, as the node's own. What the second has no room
/// for when it commits is given back.
pub(super) async fn rows_that_two_guards_hold_for_the_same_room_are_left_to_others<H: Harness>(db: &Db<H>) -> Outcome {
    let nodes = neighbours(db, 10, 1).await?;
    let written = events(20)?;
    let mut first = nodes.busy.begin(db.source()).await?;
    nodes.busy.write_all(&mut first, written[..10].iter().cloned()).await?;
    let mut second = nodes.busy.begin(db.source()).await?;
    nodes.busy.write_all(&mut second, written[10..].iter().cloned()).await?;
    first.commit().await?;
    second.commit().await?;
    // One running, ten and one in the queues.
    idle_gets_the_rest(db, &nodes, &written, 12).await
}

/// The process lives, so an attempt that was cut off by the loss of its lease has not crashed, however often that happens. Nor has one
/// that was announced, and whose announcement could not be taken back, since the database was away: who has lost its own lease does not
/// count it.
///
/// A node loses its lease four times during an attempt; `leaving` is what becomes of its announcements and of its registration then.
pub(super) async fn losses_of_a_lease_count_no_attempt<H: Harness>(db: &Db<H>, leaving: Fault) -> Outcome {
    let slow = Recorder::around(async |delivery: Delivery| {
        tokio::select! {
            () = delivery.stop_requested() => Err("told to stop"),
            () = sleep(Duration::from_millis(1500)) => Ok(()),
        }
    });
    let store = FaultyStore::new(db.store());
    let outbox = Outbox::multi_node(store.clone()).max_attempts(2).lease(Duration::from_millis(300));
    let outbox = outbox.poll_interval(Duration::from_millis(1), Duration::from_millis(20)).handle_all(slow.clone());
    let outbox = outbox.start().await?;
    let written = event()?;
    db.write(vec![written.clone()]).await?;
    store.set(Operation::Leave, leaving);
    for losses in 1..=4 {
        slow.wait_for_calls(losses).await;
        store.set(Operation::Renew, Fault::Unreachable);
        slow.wait_for_ends(losses).await;
        store.set(Operation::Renew, Fault::None);
    }
    store.set(Operation::Leave, Fault::None);
    drained(db, &outbox).await?;
    let row = columns(db, &written).await?;
    assert_eq!((row.status, row.attempts), (1, 0));
    Ok(())
}
