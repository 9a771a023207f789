//! A handler takes one event, and then perhaps its delivery.

use pillarbox::run::SingleNode;
use pillarbox::{Delivery, Event};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

async fn two_payloads(_: OrderPlaced, _: OrderPlaced) {}

async fn swapped(_: Delivery, _: OrderPlaced) {}

async fn borrowed(_: &OrderPlaced) {}

async fn nothing() {}

fn register_two_payloads(outbox: SingleNode) -> SingleNode {
    outbox.handle(two_payloads)
}

fn register_swapped(outbox: SingleNode) -> SingleNode {
    outbox.handle(swapped)
}

fn register_borrowed(outbox: SingleNode) -> SingleNode {
    outbox.handle(borrowed)
}

fn register_nothing(outbox: SingleNode) -> SingleNode {
    outbox.handle(nothing)
}

fn main() {}
