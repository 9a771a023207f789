//! Settings that do not exist, come twice or have no value.

use pillarbox::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(name = "a.b", tenant_id = id)]
struct Misspelled {
    id: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", topic = "orders")]
struct Unknown;

#[derive(Serialize, Event)]
#[event(name = "a.b")]
#[event(name = "a.c")]
struct Twice;

#[derive(Serialize, Event)]
#[event(name = "a.b", key)]
struct NoValue {
    key: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", headers = id)]
struct HeadersAreAList {
    id: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", headers(id = id))]
struct HeaderNamesAreStrings {
    id: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", headers("x-id" = id, "x-id" = id))]
struct HeaderTwice {
    id: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b")]
struct OnAField {
    #[event(key)]
    id: u8,
}

#[derive(Serialize, Event)]
#[event(name = "a.b" key = id)]
struct NoComma {
    id: u8,
}

fn main() {}
