//! Settings that name a field which cannot be read as text.

use pillarbox::Event;
use serde::Serialize;

#[derive(Serialize)]
struct Money {
    cents: i64,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", key = price)]
struct NoText {
    price: Money,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", headers("price" = order.price))]
struct NoTextInside {
    order: NoText,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", tenant = prices)]
struct OptionOfNoText {
    prices: Option<Vec<u8>>,
}

fn main() {}
