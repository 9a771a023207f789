//! Settings that name a field which is not there, or something that is no field.

use pillarbox::Event;
use serde::Serialize;

#[derive(Serialize)]
struct Customer {
    id: u64,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", key = order)]
struct Unknown {
    order_id: String,
    total: i64,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", headers("customer" = customer.name))]
struct UnknownInside {
    customer: Customer,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", tenant = 1)]
struct UnknownPosition(String);

#[derive(Serialize, Event)]
#[event(name = "a.b", tenant = 1e0)]
struct NoPosition(String);

#[derive(Serialize, Event)]
#[event(name = "a.b", tenant = 0.)]
struct NothingAfterTheDot(String);

#[derive(Serialize, Event)]
#[event(name = "a.b", key = id)]
struct NoFields;

#[derive(Serialize, Event)]
#[event(name = "a.b", key = "id")]
struct Quoted {
    id: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", key = self.id)]
struct WithSelf {
    id: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", key = id.to_string())]
struct MethodCall {
    id: u8,
}

fn main() {}
