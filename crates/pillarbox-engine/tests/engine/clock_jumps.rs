//! A database whose clock runs ahead: what is deleted or given up by its age is so for good.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pillarbox_core::clock::{Clock, Timestamp};
use pillarbox_core::handle::Delivery;
use pillarbox_core::store::Admin as _;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use tokio::time::{Instant, sleep};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The runtime's clock, ahead by so many seconds.
#[derive(Debug)]
struct JumpingClock {
    start: Instant,
    ahead: AtomicU64,
}

impl JumpingClock {
    fn set_ahead(&self, ahead: Duration) {
        self.ahead.store(ahead.as_secs(), Ordering::SeqCst);
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        let ahead = Duration::from_secs(self.ahead.load(Ordering::SeqCst));
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.start.elapsed() + ahead)
    }
}

/// A store with one event of this type.
fn with_event(event_type: &str) -> (Arc<JumpingClock>, MemoryStore) {
    let clock = Arc::new(JumpingClock { start: Instant::now(), ahead: AtomicU64::new(0) });
    let store = MemoryStore::with_clock(clock.clone());
    store.inspect().insert_three_columns("e-1", event_type, "1").expect("inserts");
    (clock, store)
}

async fn start(store: &MemoryStore) -> Outbox {
    let outbox = Outbox::single_node(store.clone()).purge_done_after(2 * DAY);
    outbox.handle_type("known", |_: Delivery| async {}).start().await.expect("starts")
}

#[tokio::test(start_paused = true)]
async fn nothing_is_purged_by_a_time_that_has_not_stood_for_a_day() {
    let (clock, store) = with_event("known");
    let outbox = start(&store).await;
    sleep(2 * HOUR).await;
    for (ahead, wait, done) in
        [(30 * DAY, 20 * HOUR, 1), (Duration::ZERO, 2 * HOUR, 1), (30 * DAY, 20 * HOUR, 1), (30 * DAY, 8 * HOUR, 0)]
    {
        clock.set_ahead(ahead);
        sleep(wait).await;
        assert_eq!(store.counts().await.expect("counts").done, done, "{ahead:?} ahead, {wait:?} later");
    }
    outbox.shutdown().await;
}

/// The clock is looked at once in ten minutes, so one of these jumps meets a look.
#[tokio::test(start_paused = true)]
async fn an_event_that_no_handler_takes_is_not_given_up_by_a_clock_that_is_ahead_for_minutes() {
    for phase in [0, 5] {
        let (clock, store) = with_event("unknown");
        let outbox = start(&store).await;
        sleep(2 * HOUR + phase * MINUTE).await;
        clock.set_ahead(3 * DAY);
        sleep(9 * MINUTE).await;
        clock.set_ahead(Duration::ZERO);
        sleep(HOUR).await;
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.dead, counts.retry), (0, 1), "after {phase} minutes");
        outbox.shutdown().await;
    }
}
