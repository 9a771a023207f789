//! All settings together, on every kind of type.

use pillarbox::Event;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
struct OrderPlaced {
    order_id: String,
    total_cents: i64,
}

#[derive(Serialize, Event)]
#[event(
    crate = pillarbox,
    name = "order.shipped",
    aggregate = "order",
    aggregate_id = 0,
    key = 1.0,
    tenant = 2,
    headers("source" = 2, "x-parcel" = 1.0,),
)]
struct OrderShipped(u64, (String,), Option<&'static str>);

#[derive(Serialize, Event)]
#[event(name = "order.changed")]
enum OrderChanged<T> {
    Cancelled,
    Amended(T),
}

fn main() {
    fn event<E: Event>() {}
    event::<OrderPlaced>();
    event::<OrderShipped>();
    event::<OrderChanged<OrderPlaced>>();
}
