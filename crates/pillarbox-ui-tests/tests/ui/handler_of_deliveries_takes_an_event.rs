//! A typed handler is registered with `handle`.

use pillarbox::Event;
use pillarbox::run::SingleNode;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

async fn handle(_: OrderPlaced) {}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handle_all(handle)
}

fn register_by_name(outbox: SingleNode) -> SingleNode {
    outbox.handle_type("order.placed", handle)
}

fn main() {}
