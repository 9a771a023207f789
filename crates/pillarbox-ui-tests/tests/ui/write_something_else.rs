//! What is written is an event.

use pillarbox::write::Connection;
use pillarbox::{Event, Outbox};
use serde::Serialize;

#[derive(Serialize)]
struct NoEvent;

#[derive(Serialize, Event)]
#[event(name = "a.b")]
struct Happened;

async fn no_event<M, C: Connection<M>>(outbox: &Outbox, transaction: &mut C) {
    let written = outbox.write(transaction, &NoEvent);
}

async fn by_value<M, C: Connection<M>>(outbox: &Outbox, transaction: &mut C) {
    let written = outbox.write(transaction, Happened);
}

async fn text<M, C: Connection<M>>(outbox: &Outbox, transaction: &mut C) {
    let written = outbox.write(transaction, String::from("{}"));
}

async fn among_many<M, C: Connection<M>>(outbox: &Outbox, transaction: &mut C) {
    let written = outbox.write_all(transaction, [NoEvent]);
}

fn main() {}
