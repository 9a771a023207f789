use pillarbox::run::SingleNode;
use pillarbox::{Delivery, handler};

async fn without(_: Delivery) {}

#[handler]
async fn says_no_event(_: Delivery) {}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handler(without)
}

fn main() {}
