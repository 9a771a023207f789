//! Each part of the signature that is wrong is named where it stands.

use pillarbox::{Delivery, Event, handler};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

#[derive(Serialize, Event)]
#[event(name = "order.written")]
struct WriteOnly;

struct NoEvent;

#[handler]
async fn no_event(_: NoEvent) {}

#[handler]
async fn cannot_be_read(_: WriteOnly) {}

#[handler]
async fn two_events(_: OrderPlaced, _: OrderPlaced) {}

#[handler]
async fn returns_a_number(_: OrderPlaced) -> u32 {
    7
}

#[handler]
async fn fails_with_a_number(_: OrderPlaced, _: Delivery) -> Result<(), u32> {
    Ok(())
}

#[handler]
async fn result_of_a_number(_: OrderPlaced) -> Result<u32, String> {
    Ok(7)
}

#[handler(event = "order.placed")]
async fn names_it_twice(_: OrderPlaced) {}

#[handler(event = "order.placed", batch = 10)]
async fn one_of_a_batch(_: Delivery) -> Vec<()> {
    vec![()]
}

#[handler(event = "order.placed", batch = 10)]
async fn one_answer_for_all(_: Vec<Delivery>) -> Result<(), String> {
    Ok(())
}

fn main() {}
