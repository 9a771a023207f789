//! Types that cannot be events, or not with these settings.

use pillarbox::Event;
use serde::Serialize;

#[derive(Event)]
#[event(name = "a.b")]
union Either {
    left: u32,
    right: f32,
}

#[derive(Serialize, Event)]
#[event(name = "a.b", aggregate = "a", key = id)]
enum Variants {
    One { id: u8 },
    Two { id: u8 },
}

#[derive(Event)]
#[event(name = "a.b")]
struct NotSerialize {
    id: u8,
}

fn main() {}
