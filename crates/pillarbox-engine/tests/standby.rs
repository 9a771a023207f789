//! What a standby says, in a process of its own: who logs what is a matter of the whole process.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod log;

use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::{Outbox, Role};
use pillarbox_memory::MemoryStore;
use tracing_subscriber::EnvFilter;

use log::Log;

/// The lines of a standby.
fn standing_by(log: &Log) -> Vec<String> {
    log.text().lines().filter(|line| line.contains("standing by")).map(str::to_owned).collect()
}

async fn start(store: &MemoryStore, name: &str) -> Outbox {
    let outbox = Outbox::single_node(store.reopen()).node_name(name).handle_all(|_: Delivery| async {});
    outbox.start().await.expect("starts")
}

/// Once for each owner that it waits for, with the node whose lease it is and how long that runs.
#[tokio::test(start_paused = true)]
async fn a_standby_says_once_whose_lease_it_waits_for_and_again_after_a_takeover() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("info"))
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let _logging = log::install(subscriber.finish());
    let store = MemoryStore::new();
    let first = start(&store, "first").await;
    let second = start(&store, "second").await;
    // Asks again and again meanwhile.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let said = standing_by(&log);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("owner=first-") && said[0].contains("lease_ends_in=1"), "{said:?}");

    let third = start(&store, "third").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(standing_by(&log).len(), 2, "one line of each");
    first.shutdown().await;
    let mut active = false;
    for outbox in [&second, &third] {
        tokio::time::sleep(Duration::from_secs(10)).await;
        active |= matches!(outbox.role(), Role::Active { .. });
    }
    assert!(active, "one of the two has taken over");
    let said = standing_by(&log);
    assert_eq!(said.len(), 3, "the other waits for it: {said:?}");
    assert!(!said[2].contains("owner=first-"), "{said:?}");
    second.shutdown().await;
    third.shutdown().await;
}
