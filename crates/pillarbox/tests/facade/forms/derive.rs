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

#[test]
fn every_kind_of_type_takes_every_setting() {
    let order = || OrderPlaced { order_id: "o-1".to_owned(), total_cents: 1 };
    let placed = order().to_builder().build().expect("valid");
    let shipped = OrderShipped(7, ("p-1".to_owned(),), Some("post")).to_builder().build().expect("valid");
    let changed = OrderChanged::Amended(order()).to_builder().build().expect("valid");
    let types = [&placed, &shipped, &changed].map(|event| event.event_type());
    assert_eq!(types, ["order.placed", "order.shipped", "order.changed"]);
    assert_eq!((shipped.aggregate_id(), shipped.key(), shipped.tenant_id()), (Some("7"), Some("p-1"), Some("post")));
    assert_eq!((shipped.headers().get("source"), shipped.headers().get("x-parcel")), (Some("post"), Some("p-1")));
}
