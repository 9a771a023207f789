//! A way to the destination that carries few messages in the time of a call.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{BatchHandler as _, Delivery, HandlerErrorKind};
use pillarbox_core::publisher::{FailureScope, Message, PublishError, Publisher, PublisherInfo, Receipt};
use pillarbox_core::row::NewRow;
use pillarbox_core::store::Row;
use pillarbox_routes::{Route, Routes};
use tokio::time::{Instant, sleep};

/// The time that a call may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Takes calls of a few messages. Of a larger one nothing arrives in time, as where all of it shares a slow link.
#[derive(Debug)]
struct SlowWay {
    info: PublisherInfo,
    carries: usize,
    /// The part that it blames.
    scope: FailureScope,
    calls: Mutex<Vec<usize>>,
}

impl SlowWay {
    fn new(carries: usize, scope: FailureScope) -> Arc<Self> {
        let info = PublisherInfo::new("slow", "memory");
        Arc::new(Self { info, carries, scope, calls: Mutex::default() })
    }

    fn calls(&self) -> Vec<usize> {
        std::mem::take(&mut *self.calls.lock().expect("not poisoned"))
    }
}

#[async_trait]
impl Publisher for SlowWay {
    fn info(&self) -> &PublisherInfo {
        &self.info
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Receipt> {
        self.calls.lock().expect("not poisoned").push(messages.len());
        if messages.len() > self.carries {
            sleep(TIMEOUT).await;
            let silent = PublishError::unavailable("did not answer in time").limited_to(self.scope);
            return vec![Err(silent); messages.len()];
        }
        sleep(Duration::from_millis(100)).await;
        vec![Ok(None); messages.len()]
    }

    async fn check(&self, _: &[String]) -> Result<(), PublishError> {
        Err(PublishError::unavailable("events show it"))
    }

    async fn close(&self) {}
}

fn events(count: usize) -> Vec<Delivery> {
    let event = |number: usize| {
        let event = Envelope::builder("order.placed").tenant_id(number.to_string()).payload_json("{}");
        let row = Row::fresh(&NewRow::new(event.build().expect("valid")), 1, Timestamp::from_micros(0));
        Delivery::detached(row).with_queued_at(Instant::now())
    };
    (0..count).map(event).collect()
}

/// Sends batches of 256 until one is taken as a whole, or five minutes have passed. Returns the sizes of the calls, and how many events were taken.
async fn sent(publisher: &Arc<SlowWay>, target: &str) -> (Vec<usize>, usize) {
    let publisher_of_route: Arc<dyn Publisher> = Arc::clone(publisher) as _;
    let forwarder = Routes::new().route(Route::to(publisher_of_route, target)).build().expect("valid");
    let (began, mut left) = (Instant::now(), 256);
    while left > 0 && began.elapsed() < Duration::from_secs(300) {
        let mut longest = Duration::ZERO;
        // As they come back from the table.
        for answer in forwarder.handle(events(left)).await {
            match answer.as_ref().map_err(|error| error.kind()) {
                Ok(_) => left -= 1,
                Err(HandlerErrorKind::DeferredOnThisNode(delay)) => longest = longest.max(delay),
                Err(other) => panic!("an attempt is counted: {other:?}"),
            }
        }
        sleep(longest).await;
    }
    (publisher.calls(), 256 - left)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_met_by_silence_is_followed_by_smaller_ones_until_they_get_through() {
    for (carries, first) in [(256, vec![256]), (40, vec![256, 32]), (5, vec![256, 32, 4]), (1, vec![256, 32, 4, 1])] {
        for scope in [FailureScope::Broker, FailureScope::Target] {
            let publisher = SlowWay::new(carries, scope);
            let (calls, taken) = sent(&publisher, "here").await;
            assert!(calls.starts_with(&first), "{carries}: {calls:?}");
            assert_eq!(taken, 256, "{carries}, {scope:?}: {calls:?}");
            let in_vain = calls.iter().filter(|size| **size > carries).count();
            assert!(in_vain <= first.len() + 256 / carries / 64, "{carries}: {in_vain} in vain: {calls:?}");
        }
    }
}

/// Each of many targets may be silent for itself.
#[tokio::test(start_paused = true)]
async fn silent_targets_are_asked_at_once() {
    let publisher = SlowWay::new(0, FailureScope::Target);
    let (calls, taken) = sent(&publisher, "{tenant_id}").await;
    assert_eq!(taken, 0);
    assert!(calls.len() > 2 && calls.iter().all(|size| *size == 256), "{calls:?}");
}
