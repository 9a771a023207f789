//! What an outbox says of its health while its database fails, hangs, or is just idle.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::Admin as _;
use pillarbox_engine::observe::{Health, Problem};
use pillarbox_engine::run::{MultiNode, Outbox, Role};
use pillarbox_memory::MemoryStore;
use pillarbox_testkit::{Fault, FaultyStore, Operation, Recorder};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(15);
/// Longer than any call may take, and than an idle node sleeps.
const LONG: Duration = Duration::from_secs(25);
const SECOND: Duration = Duration::from_secs(1);
/// Longer than any store waits for an answer.
const LONGER_THAN_ANY_CALL: Duration = Duration::from_secs(61);
const HOUR: Duration = Duration::from_secs(3600);

fn store() -> FaultyStore<MemoryStore> {
    FaultyStore::new(MemoryStore::new())
}

/// An outbox that asks for nothing but its lease and its rows: what is said of it is said of these.
fn outbox(store: &FaultyStore<MemoryStore>) -> MultiNode {
    Outbox::multi_node(store.clone()).lease(LEASE).handle_all(|_: Delivery| async {})
}

/// Another program inserts rows, so that the cold path alone brings them.
fn insert(store: &MemoryStore, ids: std::ops::Range<u32>) {
    for id in ids {
        store.inspect().insert_three_columns(&id.to_string(), "order.placed", "1").expect("inserts");
    }
}

fn assert_problems(health: &Health, problems: &[Problem], alive: bool) {
    assert_eq!((&*health.problems, health.is_alive()), (problems, alive), "{health}");
    assert_eq!(health.is_ready(), problems.is_empty());
}

/// The handle may live on in another runtime, or in a thread.
#[test]
fn an_outbox_whose_runtime_is_gone_is_not_alive() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let outbox = runtime.block_on(outbox(&store()).start()).expect("starts");
    assert!(outbox.health().is_alive());
    drop(runtime);
    assert_eq!(outbox.role(), Role::Stopped);
    assert_problems(&outbox.health(), &[Problem::Stopped], false);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_leaves_no_node_behind() {
    let store = store();
    store.set(Operation::Watch, Fault::Refused);
    outbox(&store).start().await.expect_err("operators' interventions cannot be read");
    assert!(store.nodes().await.expect("a list").is_empty(), "others would leave it its share");
    store.set(Operation::Watch, Fault::None);
    outbox(&store).start().await.expect("starts").shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_outbox_is_well_in_every_mode() {
    let handler = |_: Delivery| async {};
    let outboxes = [
        Outbox::single_node(MemoryStore::new()).handle_all(handler).start().await.expect("starts"),
        Outbox::multi_node(MemoryStore::new()).handle_all(handler).start().await.expect("starts"),
        Outbox::partitioned(MemoryStore::new()).handle_all(handler).start().await.expect("starts"),
        Outbox::ordered(MemoryStore::new()).handle_all(handler).start().await.expect("starts"),
    ];
    for _ in 0..100 {
        sleep(SECOND * 7).await;
        for outbox in &outboxes {
            let health = outbox.health();
            assert_problems(&health, &[], true);
            let times = (health.last_poll.expect("it polls"), health.last_renewal.expect("it renews"));
            assert!(times.0 <= SECOND * 5 && times.1 <= LEASE / 3, "{health}");
            assert_eq!(health.oldest_verdict, None);
        }
    }
    let writer = Outbox::writer_only(MemoryStore::new()).start().await.expect("starts");
    sleep(HOUR).await;
    assert_problems(&writer.health(), &[], true);
    assert_eq!((writer.health().last_poll, writer.health().last_renewal), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_well_and_says_when_it_cannot_see_its_turn() {
    let store = store();
    let handler = |_: Delivery| async {};
    let owner = Outbox::single_node(store.clone()).handle_all(handler).start().await.expect("starts");
    let standby = Outbox::single_node(store.clone()).handle_all(handler).start().await.expect("starts");
    sleep(LONG).await;
    assert!(matches!(standby.role(), Role::Standby { .. }));
    assert_problems(&standby.health(), &[], true);
    store.set(Operation::Acquire, Fault::Unreachable);
    sleep(LONG).await;
    assert_problems(&standby.health(), &[Problem::CannotJoin], true);
    assert_problems(&owner.health(), &[], true);
    store.set(Operation::Acquire, Fault::Silence);
    sleep(LONG * 2).await;
    assert_problems(&standby.health(), &[Problem::CannotJoin, Problem::Unanswered], true);
    sleep(LONGER_THAN_ANY_CALL).await;
    assert_problems(&standby.health(), &[Problem::CannotJoin, Problem::Unanswered, Problem::Stuck], false);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_read_is_a_problem_until_it_can() {
    let store = store();
    let outbox = outbox(&store).start().await.expect("starts");
    sleep(SECOND).await;
    for fault in [Fault::Unreachable, Fault::Refused] {
        store.set(Operation::Fetch, fault);
        sleep(HOUR).await;
        assert_problems(&outbox.health(), &[Problem::CannotRead], true);
        assert!(outbox.health().last_poll.is_some_and(|ago| ago > HOUR - LONG), "{}", outbox.health());
        store.set(Operation::Fetch, Fault::None);
        sleep(LONG).await;
        assert_problems(&outbox.health(), &[], true);
    }
}

/// Rows of other programs come without a partition. What a read wrote after its fetch failed, and the fetch looked well.
#[tokio::test(start_paused = true)]
async fn a_read_whose_second_call_fails_is_a_problem_until_it_succeeds() {
    let inner = MemoryStore::new();
    let store = FaultyStore::new(inner.clone());
    let node = Outbox::partitioned(store.clone()).lease(LEASE).handle_all(|_: Delivery| async {});
    let outbox = node.start().await.expect("starts");
    sleep(LONG).await;
    store.set(Operation::Settle, Fault::Refused);
    insert(&inner, 0..1);
    for _ in 0..100 {
        sleep(LONG).await;
        assert_problems(&outbox.health(), &[Problem::CannotRead], true);
    }
    assert!(outbox.health().last_poll.is_some_and(|ago| ago > HOUR / 2), "{}", outbox.health());
    store.set(Operation::Settle, Fault::None);
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[], true);
}

/// A pause that nobody can read holds nothing up, so it has to be seen.
#[tokio::test(start_paused = true)]
async fn pauses_that_cannot_be_read_are_a_problem_until_they_can() {
    let inner = MemoryStore::new();
    let store = FaultyStore::new(inner.clone());
    let outbox = outbox(&store).start().await.expect("starts");
    sleep(LONG).await;
    store.set(Operation::Watch, Fault::Unreachable);
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[], true);
    insert(&inner, 0..1);
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[Problem::CannotReadPauses], true);
    store.set(Operation::Watch, Fault::None);
    sleep(SECOND * 10).await;
    assert_problems(&outbox.health(), &[], true);
}

/// A call waits for what operators have paused, for a second at most. Another node may have the event by then.
#[tokio::test(start_paused = true)]
async fn no_call_begins_when_the_lease_was_lost_meanwhile() {
    for (mode, loses) in [
        (NodeMode::SingleNode, true),
        (NodeMode::Partitioned, true),
        (NodeMode::Ordered, true),
        (NodeMode::SingleNode, false),
    ] {
        let inner = MemoryStore::new();
        let store = FaultyStore::new(inner.clone());
        let recorder = Recorder::new();
        let often = Duration::from_millis(10);
        let outbox = Outbox::builder(mode).store(store.clone()).lease(LEASE).poll_interval(often, often);
        let outbox = outbox.handle_all(recorder.clone()).start().await.expect("starts");
        if loses {
            // It ends 13.5 s after it was given, and none is given again.
            store.set(Operation::Renew, Fault::Unreachable);
            store.set(Operation::Join, Fault::Unreachable);
        }
        store.set(Operation::Watch, Fault::Silence);
        sleep(SECOND * 13).await;
        insert(&inner, 0..1);
        sleep(LONG).await;
        assert_eq!(recorder.calls().len(), usize::from(!loses), "{mode}");
        drop(outbox);
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_is_never_answered_is_stuck() {
    let store = store();
    let outbox = outbox(&store).start().await.expect("starts");
    sleep(SECOND).await;
    store.set(Operation::Fetch, Fault::Silence);
    // The node goes on renewing its lease, which alone would look well.
    sleep(LEASE).await;
    assert_problems(&outbox.health(), &[], true);
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[Problem::Unanswered], true);
    sleep(LONGER_THAN_ANY_CALL).await;
    assert_problems(&outbox.health(), &[Problem::Unanswered, Problem::Stuck], false);
    assert!(outbox.health().last_poll.is_some_and(|ago| ago > LEASE), "{}", outbox.health());
}

#[tokio::test(start_paused = true)]
async fn verdicts_that_wait_are_a_problem_and_one_that_is_never_answered_is_stuck() {
    let inner = MemoryStore::new();
    let store = FaultyStore::new(inner.clone());
    let outbox = outbox(&store).start().await.expect("starts");
    store.set(Operation::Settle, Fault::Unreachable);
    insert(&inner, 0..1);
    sleep(LONG * 2).await;
    let health = outbox.health();
    assert_problems(&health, &[Problem::CannotSettle], true);
    assert!(health.oldest_verdict.is_some_and(|waits| waits > LONG), "{health}");
    store.set(Operation::Settle, Fault::None);
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[], true);
    assert_eq!((outbox.health().oldest_verdict, outbox.stats().done), (None, 1));

    store.set(Operation::Settle, Fault::Silence);
    insert(&inner, 1..2);
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[Problem::Unanswered], true);
    sleep(LONGER_THAN_ANY_CALL).await;
    let health = outbox.health();
    assert_problems(&health, &[Problem::Unanswered, Problem::Stuck], false);
    assert!(health.oldest_verdict.is_some_and(|waits| waits > LEASE), "{health}");
}

#[tokio::test(start_paused = true)]
async fn handlers_that_take_hours_are_no_problem_where_that_is_said() {
    let inner = MemoryStore::new();
    let slow = Outbox::single_node(inner.clone()).workers(1).cold_capacity(1).handle_all(|_: Delivery| sleep(HOUR * 5));
    let outbox = slow.handler_timeout(None).slow_after(HOUR * 6).start().await.expect("starts");
    insert(&inner, 0..10);
    sleep(HOUR * 3).await;
    let health = outbox.health();
    assert_problems(&health, &[], true);
    assert!(health.last_poll.is_some_and(|ago| ago > HOUR), "there is no room for more: {health}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_database_costs_the_lease_and_then_the_life() {
    let store = store();
    let outbox = outbox(&store).start().await.expect("starts");
    sleep(SECOND).await;
    store.set(Operation::Renew, Fault::Unreachable);
    sleep(LEASE / 2).await;
    assert_problems(&outbox.health(), &[Problem::CannotRenew], true);
    store.set_all(Fault::Silence);
    assert!(outbox.wait_for_role(|role| *role == Role::Joining).await);
    sleep(LEASE).await;
    let health = outbox.health();
    assert_problems(&health, &[Problem::NotJoined], true);
    assert_eq!((health.last_poll, health.last_renewal), (None, None), "there is neither term nor lease");
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[Problem::NotJoined, Problem::Unanswered], true);
    sleep(LONGER_THAN_ANY_CALL).await;
    assert_problems(&outbox.health(), &[Problem::NotJoined, Problem::Unanswered, Problem::Stuck], false);
}

#[tokio::test(start_paused = true)]
async fn partitions_that_cannot_be_rebalanced_are_a_problem() {
    let store = store();
    let node = Outbox::partitioned(store.clone()).lease(LEASE).handle_all(|_: Delivery| async {});
    let outbox = node.start().await.expect("starts");
    sleep(LONG).await;
    store.set(Operation::Acquire, Fault::Unreachable);
    sleep(LONG).await;
    assert_problems(&outbox.health(), &[Problem::CannotRebalance], true);
    store.set(Operation::Acquire, Fault::Silence);
    sleep(LONG * 2).await;
    assert_problems(&outbox.health(), &[Problem::CannotRebalance, Problem::Unanswered], true);
    sleep(LONGER_THAN_ANY_CALL).await;
    assert_problems(&outbox.health(), &[Problem::CannotRebalance, Problem::Unanswered, Problem::Stuck], false);
}

#[tokio::test(start_paused = true)]
async fn an_outbox_that_stops_is_not_ready_and_one_that_has_stopped_is_not_alive() {
    let inner = MemoryStore::new();
    let slow = Outbox::single_node(inner.clone()).handle_all(|_: Delivery| sleep(SECOND)).drain_timeout(SECOND * 60);
    let outbox = slow.start().await.expect("starts");
    let mut tx = inner.begin();
    let written = outbox.write(&mut tx, Envelope::json("order.placed", "1").expect("valid")).await.expect("writes");
    tx.commit();
    outbox.notify_committed(written);
    sleep(SECOND / 2).await;
    let look = async {
        sleep(SECOND / 4).await;
        assert_problems(&outbox.health(), &[Problem::Stopping], true);
    };
    tokio::join!(outbox.shutdown(), look);
    assert_problems(&outbox.health(), &[Problem::Stopped], false);
}
