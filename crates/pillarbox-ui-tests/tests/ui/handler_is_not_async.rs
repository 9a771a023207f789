//! A handler that is not async goes through `blocking`.

use pillarbox::run::SingleNode;
use pillarbox::{Event, Outcome};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

fn handle(_: OrderPlaced) {}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handle(handle)
}

fn register_closure(outbox: SingleNode) -> SingleNode {
    outbox.handle(|_: OrderPlaced| Outcome::Done)
}

fn main() {}
