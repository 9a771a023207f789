//! A handler returns an outcome or a result.

use pillarbox::Event;
use pillarbox::run::SingleNode;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

async fn number(_: OrderPlaced) -> u32 {
    7
}

async fn no_error(_: OrderPlaced) -> Result<(), u32> {
    Ok(())
}

fn register(outbox: SingleNode) -> SingleNode {
    outbox.handle(number)
}

fn register_another(outbox: SingleNode) -> SingleNode {
    outbox.handle(no_error)
}

fn main() {}
