//! A database that failed over or was restored under a node: the log says so, once, in words. In a process of its own, since levels
//! that are on are a matter of the whole process.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod log;

use std::time::Duration;

use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::{Outbox, Role};
use pillarbox_memory::MemoryStore;
use tokio::time::{sleep, timeout};

use log::Log;

/// The lines that tell of another history.
fn changes(log: &Log) -> Vec<String> {
    log.text().lines().filter(|line| line.contains("history changed")).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_changed_history_is_logged_once_with_what_the_node_does() {
    for fails_over in [true, false] {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        let _logging = log::install(subscriber.finish());
        let store = MemoryStore::new();
        let outbox =
            Outbox::single_node(store.clone()).handle_all(|_: Delivery| async {}).start().await.expect("starts");
        let Role::Active { node } = outbox.role() else { panic!("it delivers") };
        let earlier = store.inspect().snapshot();
        // By then it has renewed its lease.
        sleep(Duration::from_secs(12)).await;
        let expected = if fails_over {
            store.inspect().fail_over_to(&earlier);
            "it failed over or was restored"
        } else {
            store.inspect().restore(&earlier);
            "it holds an older state than this node has seen, so it was restored or failed over"
        };
        let anew = async {
            while !matches!(outbox.role(), Role::Active { node: now } if now != node) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), anew).await.expect("it joins anew");
        outbox.shutdown().await;
        let lines = changes(&log);
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in ["WARN", node.as_str(), expected, "this node forgets what it holds and joins anew"] {
            assert!(lines[0].contains(part), "{part:?} in {}", lines[0]);
        }
    }
}
