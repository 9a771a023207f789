//! The codec of an event type can write it.

use pillarbox::Event;
use pillarbox::event::Codec;

#[derive(Event)]
#[event(name = "a.json")]
struct NotSerializable;

#[derive(Event)]
#[event(name = "a.raw", codec = raw)]
struct NoBytes;

struct Avro;

impl Codec for Avro {
    const CONTENT_TYPE: &'static str = "application/avro";
}

#[derive(Event)]
#[event(name = "a.avro", codec = Avro)]
struct UnknownToAvro;

fn main() {}
