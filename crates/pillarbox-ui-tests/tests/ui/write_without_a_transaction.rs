//! Events are written on a transaction, and nothing else.

use pillarbox::{Event, Outbox};
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(name = "a.b")]
struct Happened;

async fn write(outbox: &Outbox) {
    let mut no_transaction = String::new();
    let written = outbox.write(&mut no_transaction, &Happened);
}

fn main() {}
