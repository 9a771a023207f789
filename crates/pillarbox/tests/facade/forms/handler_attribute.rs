//! Every form of `#[handler]`.

use std::time::Duration;

use pillarbox::run::SingleNode;
use pillarbox::{Delivery, Event, Failure, HandlerError, MemoryStore, Outbox, Outcome, Retry, handler};
use serde::{Deserialize, Serialize};

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
