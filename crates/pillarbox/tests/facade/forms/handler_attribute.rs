//! Every form of `#[handler]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pillarbox::handle::Rate;
use pillarbox::run::SingleNode;
use pillarbox::{Delivery, Event, Failure, HandlerError, MemoryStore, Outbox, Outcome, Retry, handler, handlers};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
pub(crate) struct OrderPlaced;

/// Documented as before.
#[handler]
pub(crate) async fn plain(_: OrderPlaced) {}

#[handler(name = "mailer", retry = Retry::fixed(Duration::from_secs(5)).max_retries(3), fallback = by_letter, on_dead = tell_support)]
async fn send_receipt(OrderPlaced: OrderPlaced, delivery: Delivery) -> Result<Outcome, HandlerError> {
    drop(delivery);
    Ok(Outcome::Done)
}

#[handler(event = "order.cancelled", aggregate = "order")]
pub(crate) async fn refund(_: Delivery) -> Result<(), std::io::Error> {
    Ok(())
}

#[handler(event = "order.sent", batch = 100, name = "index", timeout = Duration::from_secs(30))]
async fn index(deliveries: Vec<Delivery>) -> Vec<Outcome> {
    deliveries.iter().map(|_| Outcome::Done).collect()
}

mod elsewhere {
    #[super::handler(event = "order.lost", on_dead = async |_: pillarbox::Delivery, _: super::Failure| {})]
    pub(super) async fn lost(mut delivery: pillarbox::Delivery) {
        delivery = delivery.clone();
        drop(delivery);
    }

    mod deeper {
        pub(crate) use ::pillarbox as prelude;

        #[prelude::handler(event = "order.found", crate = prelude)]
        pub(crate) async fn found(_: prelude::Delivery) {}
    }
    pub(super) use deeper::found;
}

#[handler(event = "order.returned", name = "partner", accepts = |event: &pillarbox::Envelope| event.tenant_id() == Some("partner"))]
async fn for_one_tenant(_: Delivery) {}

/// Handlers that share their state.
struct Mailer<T> {
    to: T,
    sent: AtomicUsize,
    called: Notify,
}

#[handlers]
impl<T> Mailer<T>
where
    T: ToString + Send + Sync + 'static,
{
    fn new(to: T) -> Self {
        Self { to, sent: AtomicUsize::new(0), called: Notify::new() }
    }

    /// Documented as before.
    #[handler(name = "letters", timeout = Duration::from_secs(3), concurrency = 4, rate = Rate::per_second(100).burst(10))]
    async fn send_letter(&self, _: OrderPlaced) -> Result<(), HandlerError> {
        self.sent.fetch_add(self.to.to_string().len(), Ordering::Relaxed);
        self.called.notify_one();
        Ok(())
    }

    #[pillarbox::handler(event = "order.cancelled", aggregate = "order")]
    pub(crate) async fn tell(self: Arc<Self>, delivery: Delivery) -> Outcome {
        self.sent.fetch_add(delivery.failures() as usize, Ordering::Relaxed);
        Outcome::Done
    }

    #[handler(event = "order.sent", batch = 100)]
    async fn index(&self, deliveries: Vec<Delivery>) -> Vec<Result<(), String>> {
        deliveries.iter().map(|_| Ok(())).collect()
    }

    #[handler(event = "order.returned")]
    async fn without_state(_: Delivery) {}

    async fn is_no_handler(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

async fn by_letter(_: Delivery, _: Failure) -> Outcome {
    Outcome::Done
}

async fn tell_support(_: Delivery, _: Failure) -> Result<(), String> {
    Ok(())
}

fn register(outbox: SingleNode) -> SingleNode {
    outbox
        .handler(plain)
        .handler(send_receipt)
        .handler(refund)
        .handler(index)
        .handler(elsewhere::lost)
        .handler(elsewhere::found)
        .handler(for_one_tenant)
}

/// As functions they are what they were.
async fn call(delivery: Delivery) -> Result<(), HandlerError> {
    plain(OrderPlaced).await;
    send_receipt(OrderPlaced, delivery.clone()).await?;
    refund(delivery.clone()).await.map_err(HandlerError::retryable)?;
    let function: fn(Delivery) -> _ = *elsewhere::lost;
    function(delivery).await;
    Ok(())
}

#[test]
fn every_form_can_be_registered() {
    drop(register(Outbox::single_node(MemoryStore::new())));
}

#[test]
fn a_function_within_a_function_can_be_registered() {
    #[derive(Serialize, Deserialize, Event)]
    #[event(name = "order.counted")]
    struct Counted;

    #[handler(name = "inner")]
    async fn count(_: Counted, _: Delivery) -> Result<(), HandlerError> {
        Ok(())
    }

    drop(Outbox::single_node(MemoryStore::new()).handler(count));
}

#[test]
fn methods_are_the_handlers_of_their_value() {
    let mailer = Arc::new(Mailer::new("ann"));
    let names: Vec<_> = Arc::clone(&mailer).handlers().iter().map(|one| one.name().map(str::to_owned)).collect();
    assert_eq!(names, [Some("letters".to_owned()), None, None, None]);
    drop(Outbox::single_node(MemoryStore::new()).handlers(Mailer::new("ann")));
}

#[tokio::test]
async fn methods_are_called_with_the_state_of_their_value() {
    let mailer = Arc::new(Mailer::new("ann"));
    let store = MemoryStore::new();
    let outbox =
        Outbox::single_node(store.clone()).handlers(Arc::clone(&mailer).handlers()).start().await.expect("started");
    let mut transaction = store.begin();
    let written = outbox.write(&mut transaction, &OrderPlaced).await.expect("written");
    transaction.commit();
    outbox.notify_committed(written);
    tokio::time::timeout(Duration::from_secs(10), mailer.called.notified()).await.expect("the method is called");
    outbox.shutdown().await;
    mailer.send_letter(OrderPlaced).await.expect("it is called as before");
    assert_eq!(mailer.is_no_handler().await, 6);
}
