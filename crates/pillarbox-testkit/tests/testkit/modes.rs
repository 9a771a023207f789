//! The outbox of tests in every mode, and on a store that the test brings.

use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EnvelopeBuilder};
use pillarbox_core::handle::Delivery;
use pillarbox_core::retry::FixedBackoff;
use pillarbox_core::row::Status;
use pillarbox_core::store::Store;
use pillarbox_engine::run::kind::DeliveringMode;
use pillarbox_engine::run::{Mode, Outbox, OutboxBuilder};
use pillarbox_memory::MemoryStore;
use pillarbox_testkit::{Recorder, TestOutbox};

type Outcome = Result<(), BoxError>;

const HOUR: Duration = Duration::from_secs(3600);

fn event(id: &str, key: &str) -> EnvelopeBuilder {
    Envelope::builder("order.placed").id(id).key(key).payload_json("{}")
}

/// A handler that fails at the first attempt of event `a`.
fn stumbles() -> Recorder {
    Recorder::around(async |delivery: Delivery| match (delivery.id().as_str(), delivery.attempt()) {
        ("a", 1) => Err("the mail server is down"),
        _ => Ok(()),
    })
}

async fn write(test: &TestOutbox) -> Outcome {
    let mut tx = test.begin(test.store()).await?;
    test.write_all(&mut tx, [event("a", "k"), event("b", "k"), event("c", "other")]).await?;
    tx.commit().await?;
    test.wait_until_idle().await
}

fn calls(recorder: &Recorder) -> Vec<String> {
    recorder.calls().iter().map(|call| call.id.as_str().to_owned()).collect()
}

/// Without an order, an event that fails is tried again once the test lets the time pass.
async fn retries_wait_for_the_clock<K: DeliveringMode>(
    mode: Mode,
    build: impl Fn(MemoryStore) -> OutboxBuilder<K>,
) -> Outcome {
    let recorder = stumbles();
    let test = TestOutbox::start_as(|store| build(store).handle_all(recorder.clone())).await?;
    assert_eq!(test.mode(), mode);
    write(&test).await?;
    assert_eq!(recorder.calls().len(), 3);
    assert_eq!(
        test.rows().iter().map(|row| row.status).collect::<Vec<_>>(),
        [Status::Retry, Status::Done, Status::Done]
    );
    test.advance(HOUR).await?;
    assert_eq!(calls(&recorder)[3..], ["a"]);
    assert!(test.rows().iter().all(|row| row.status == Status::Done));
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn single_node_and_multi_node_retry_once_the_time_has_passed() -> Outcome {
    retries_wait_for_the_clock(Mode::SingleNode, Outbox::single_node).await?;
    retries_wait_for_the_clock(Mode::MultiNode, Outbox::multi_node).await
}

#[tokio::test]
async fn partitioned_is_idle_while_a_key_waits_behind_its_failing_event() -> Outcome {
    let recorder = stumbles();
    let test = TestOutbox::start_as(|store| Outbox::partitioned(store).handle_all(recorder.clone())).await?;
    write(&test).await?;
    let mut handled = calls(&recorder);
    handled.sort();
    assert_eq!(handled, ["a", "c"], "`b` waits");
    test.advance(HOUR).await?;
    assert_eq!(calls(&recorder)[2..], ["a", "b"]);
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn ordered_tries_a_failing_event_again_in_its_place() -> Outcome {
    let recorder = stumbles();
    let soon = FixedBackoff::new(Duration::from_millis(1))?;
    let build = |store| Outbox::ordered(store).handle_all(recorder.clone()).retry_policy(soon);
    let test = TestOutbox::start_as(build).await?;
    write(&test).await?;
    assert_eq!(calls(&recorder), ["a", "a", "b", "c"]);
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn days_can_pass_without_ending_a_lease() -> Outcome {
    let recorder = Recorder::new();
    let test = TestOutbox::start_as(|store| Outbox::partitioned(store).handle_all(recorder.clone())).await?;
    for day in 1..=3_usize {
        let mut tx = test.begin(test.store()).await?;
        test.write(&mut tx, event(&day.to_string(), "k").deliver_after(20 * HOUR)).await?;
        tx.commit().await?;
        test.wait_until_idle().await?;
        assert_eq!(recorder.calls().len(), day - 1);
        test.advance(24 * HOUR).await?;
        assert_eq!(recorder.calls().len(), day);
    }
    assert_eq!(test.store().inspect().nodes().len(), 1);
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn everything_is_delivered_whatever_it_takes() -> Outcome {
    let fails = Recorder::around(async |delivery: Delivery| match delivery.id().as_str() {
        "a" => Err("never"),
        _ => Ok(()),
    });
    let build = |store| Outbox::partitioned(store).max_attempts(3).handle_all(fails.clone());
    let test = TestOutbox::start_as(build).await?;
    write(&test).await?;
    test.deliver_all().await?;
    assert_eq!(calls(&fails).iter().filter(|id| *id == "a").count(), 3);
    assert_eq!(test.rows()[0].status, Status::Dead);
    test.shutdown().await;

    let (recorder, soon) = (stumbles(), FixedBackoff::new(Duration::from_millis(20))?);
    let build = |store| Outbox::multi_node(store).handle_all(recorder.clone()).retry_policy(soon);
    let test = TestOutbox::on(MemoryStore::new(), build).await?;
    let mut tx = test.begin(test.store()).await?;
    test.write_all(&mut tx, [event("a", "k"), event("late", "k").deliver_after(HOUR)]).await?;
    tx.commit().await?;
    test.deliver_all().await?;
    assert_eq!(calls(&recorder), ["a", "a"], "what is delayed is left alone");
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_store_of_the_tests_own_is_migrated_and_delivers() -> Outcome {
    let (store, recorder) = (MemoryStore::new(), Recorder::new());
    let test = TestOutbox::on(store, |store| Outbox::single_node(store).handle_all(recorder.clone())).await?;
    test.store().check().await?;
    let mut tx = test.begin(test.store()).await?;
    test.write(&mut tx, event("a", "k")).await?;
    let mut written = test.written_in(&mut tx).await?;
    assert_eq!(written.take_type("order.placed").record.event_id, "a");
    tx.commit().await?;
    test.wait_until_idle().await?;
    assert_eq!(calls(&recorder), ["a"]);
    assert_eq!(test.committed().await?.take_type("order.placed").record.status, Status::Done.code());
    test.shutdown().await;
    Ok(())
}
