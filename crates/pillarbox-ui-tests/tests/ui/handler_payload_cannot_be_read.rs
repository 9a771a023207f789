//! The argument of a handler can be read from JSON.

use pillarbox::Event;
use pillarbox::run::SingleNode;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(name = "order.placed")]
struct WriteOnly;

async fn handle(_: WriteOnly) {}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handle(handle)
}

fn main() {}
