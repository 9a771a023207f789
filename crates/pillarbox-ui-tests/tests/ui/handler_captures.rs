//! A closure is called many times, by any thread.

use std::rc::Rc;

use pillarbox::run::SingleNode;
use pillarbox::{Delivery, Event};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

async fn send(_: String) {}

fn once(outbox: SingleNode, address: String) -> SingleNode {
    outbox.handle(move |_: OrderPlaced| send(address))
}

fn of_one_thread(outbox: SingleNode, counter: Rc<u32>) -> SingleNode {
    outbox.handle(move |_: OrderPlaced| {
        let _ = *counter;
        async {}
    })
}

fn delivery_first(outbox: SingleNode) -> SingleNode {
    outbox.handle(async |_: Delivery, _: OrderPlaced| {})
}

fn main() {}
