//! A builder has the options of its mode and no others.

use std::time::Duration;

use pillarbox::run::{FailingHead, FailingKey};
use pillarbox::{Delivery, MemoryStore, Outbox};

async fn handle(_: Delivery) {}

fn main() {
    let store = MemoryStore::new();
    let one_at_a_time = Outbox::ordered(store.clone()).workers(4);
    let no_memory = Outbox::partitioned(store.clone()).hot_capacity(100);
    let no_keys = Outbox::multi_node(store.clone()).failing_key(FailingKey::Continue);
    let no_order = Outbox::single_node(store.clone()).failing_head(FailingHead::DeadAndContinue);
    let no_end = Outbox::single_node(store.clone()).purge_all_after(Duration::from_secs(60));
    let no_delivery = Outbox::writer_only(store.clone()).handle_all(handle);
    let no_lease = Outbox::writer_only(store).lease(Duration::from_secs(5));
}
