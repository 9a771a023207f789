//! The future of a handler can move between threads.

use pillarbox::Event;
use pillarbox::run::SingleNode;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

async fn handle(_: OrderPlaced) {
    let local = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(local);
}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handle(handle)
}

fn main() {}
