//! Every shape a handler can have.

use pillarbox::handle::{BoxFuture, Handler};
use pillarbox::run::SingleNode;
use pillarbox::{Delivery, Event, HandlerError, MemoryStore, Outbox, Outcome, blocking};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

async fn nothing(_: OrderPlaced) {}
async fn outcome(_: OrderPlaced, _: Delivery) -> Outcome {
    Outcome::Done
}
async fn result(_: OrderPlaced) -> Result<(), std::io::Error> {
    Ok(())
}
async fn both(_: OrderPlaced, _: Delivery) -> Result<Outcome, HandlerError> {
    Ok(Outcome::Done)
}
async fn text(_: OrderPlaced) -> Result<(), String> {
    Err("no".to_owned())
}
async fn boxed(_: OrderPlaced) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Ok(())
}
async fn any(_: Delivery) -> Result<(), HandlerError> {
    Ok(())
}

fn register(outbox: SingleNode) -> SingleNode {
    outbox
        .handle(nothing)
        .handle(outcome)
        .handle(result)
        .handle(both)
        .handle(text)
        .handle(boxed)
        .handle(async |_: OrderPlaced| Ok::<_, HandlerError>(()))
        .handle(|_: OrderPlaced, delivery: Delivery| async move { drop(delivery) })
        .handle(blocking(|_: OrderPlaced| Outcome::Done))
        .handle(blocking(|_: OrderPlaced, _: Delivery| Err::<(), _>("no")))
        .handle_type("order.placed", any)
        .handle_type(("order", "order.placed"), |_: Delivery| async {})
        .handle_all(blocking(|_: Delivery| ()))
        .handle_all(Dynamic)
}

struct Dynamic;

impl Handler for Dynamic {
    fn handle(&self, _: Delivery) -> BoxFuture<'_, Result<Outcome, HandlerError>> {
        Box::pin(async { Ok(Outcome::Done) })
    }
}

#[test]
fn every_shape_can_be_registered() {
    drop(register(Outbox::single_node(MemoryStore::new())));
}
