//! A handler of deliveries does not say which events it takes.

use pillarbox::run::SingleNode;
use pillarbox::{Delivery, Outcome};

async fn handle(_: Delivery) -> Outcome {
    Outcome::Done
}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handle(handle)
}

fn main() {}
