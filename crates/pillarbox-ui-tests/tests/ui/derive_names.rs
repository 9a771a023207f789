//! Names are strings within the limits of the table, and required.

use pillarbox::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
struct NoAttribute;

#[derive(Serialize, Event)]
#[event(aggregate = "order")]
struct NoName;

#[derive(Serialize, Event)]
#[event(name = "")]
struct Empty;

#[derive(Serialize, Event)]
#[event(name = "a\0b")]
struct Nul;

#[derive(Serialize, Event)]
#[event(
    name = "äaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)]
struct TooLong;

#[derive(Serialize, Event)]
#[event(name = "a.b", aggregate = "äaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")]
struct AggregateTooLong;

const NAME: &str = "order.placed";

#[derive(Serialize, Event)]
#[event(name = NAME)]
struct NotWrittenOut;

#[derive(Serialize, Event)]
#[event("order.placed")]
struct Positional;

#[derive(Serialize, Event)]
#[event]
struct NoList;

fn main() {}
