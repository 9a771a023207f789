//! The argument of a handler is an event.

use pillarbox::run::SingleNode;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct NoEvent;

async fn handle(_: NoEvent) {}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handle(handle)
}

fn register_closure(outbox: SingleNode) -> SingleNode {
    outbox.handle(async |_: NoEvent| {})
}

fn main() {}
