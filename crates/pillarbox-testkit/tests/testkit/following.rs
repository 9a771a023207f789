//! The one task that asks the table for all who wait: its pace, its pauses while the database fails, and its end. The clock is paused, so that the
//! statements of a span of time can be counted.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::ops::RangeInclusive;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use pillarbox_core::event::EventId;
use pillarbox_engine::follow::WaitError;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_testkit::{Fault, FaultyStore, Operation};
use tokio::time::{Instant, sleep};

const DAY: Duration = Duration::from_secs(24 * 3600);

type Store = FaultyStore<MemoryStore>;

async fn web() -> (Outbox, Store) {
    let store = FaultyStore::new(MemoryStore::new());
    (Outbox::writer_only(store.clone()).start().await.expect("starts"), store)
}

fn id(number: usize) -> EventId {
    EventId::new(format!("event-{number}")).expect("an id")
}

/// Waits for an event that nobody writes, while something else goes on.
async fn waiting_meanwhile(web: &Outbox, meanwhile: impl Future<Output = ()>) {
    let waiting = pin!(async { web.delivered(id(0)).within(DAY).await });
    if let Either::Left((end, _)) = select(waiting, pin!(meanwhile)).await {
        panic!("nobody writes it: {end:?}");
    }
}

/// The number of statements of the next `milliseconds` is in this range.
async fn asks(store: &Store, milliseconds: u64, expected: RangeInclusive<usize>) {
    let before = store.calls(Operation::Follow);
    sleep(Duration::from_millis(milliseconds)).await;
    let asked = store.calls(Operation::Follow) - before;
    assert!(expected.contains(&asked), "{asked} statements in {milliseconds} ms, and not {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_asked_for_less_often_the_longer_it_is_waited_for() {
    let (web, store) = web().await;
    waiting_meanwhile(&web, async {
        asks(&store, 1000, 85..=101).await;
        sleep(Duration::from_secs(59)).await;
        asks(&store, 6000, 8..=11).await;
        sleep(Duration::from_secs(1000)).await;
        asks(&store, 10_000, 9..=11).await;
    })
    .await;
    asks(&store, 10_000, 0..=0).await;
    web.shutdown().await;
}

/// However many events are due at however many moments.
#[tokio::test(start_paused = true)]
async fn a_process_sends_200_statements_a_second_at_most() {
    let (web, store) = web().await;
    let waiting = join_all((0..900).map(|number| {
        let web = &web;
        async move {
            sleep(Duration::from_millis(u64::try_from(number).expect("fits"))).await;
            web.delivered(id(number)).within(DAY).await
        }
    }));
    let counting = async {
        sleep(Duration::from_millis(100)).await;
        asks(&store, 700, 110..=141).await;
    };
    if let Either::Left((ends, _)) = select(pin!(waiting), pin!(counting)).await {
        panic!("nobody writes them: {} ends", ends.len());
    }
    web.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_database_that_fails_is_asked_less_and_less_often_and_then_as_before() {
    let (web, store) = web().await;
    store.set(Operation::Follow, Fault::Refused);
    waiting_meanwhile(&web, async {
        asks(&store, 1000, 3..=9).await;
        sleep(Duration::from_secs(60)).await;
        // Pauses of five seconds, shortened at random.
        asks(&store, 100_000, 19..=41).await;
        store.set(Operation::Follow, Fault::None);
        sleep(Duration::from_secs(6)).await;
        asks(&store, 10_000, 5..=11).await;
        store.set(Operation::Follow, Fault::Refused);
        // The short pauses come first again.
        asks(&store, 3000, 3..=9).await;
    })
    .await;
    web.shutdown().await;
}

/// Even in the pause after a failure, and it asks nothing more.
#[tokio::test(start_paused = true)]
async fn it_ends_at_once_when_the_outbox_stops() {
    let (web, store) = web().await;
    store.set(Operation::Follow, Fault::Refused);
    let stopping = async {
        sleep(Duration::from_secs(60)).await;
        let began = Instant::now();
        web.shutdown().await;
        began.elapsed()
    };
    let (end, took) = tokio::join!(async { web.delivered(id(0)).within(DAY).await }, stopping);
    assert!(matches!(end, Err(WaitError::Stopped)), "{end:?}");
    assert!(took < Duration::from_millis(100), "{took:?}");
    asks(&store, 60_000, 0..=0).await;
}
