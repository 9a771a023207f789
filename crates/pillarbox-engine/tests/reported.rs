//! A receipt that is reported for a row that is not there: the log says so, once, in words. In a process of its own, since
//! levels that are on are a matter of the whole process.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod log;

use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use tokio::time::{sleep, timeout};

use log::Log;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    SingleNode,
    Standby,
    MultiNode,
    Partitioned,
    Ordered,
    /// What is not in the table may have been delivered.
    DeletesDelivered,
}

const CASES: [Case; 6] =
    [Case::SingleNode, Case::Standby, Case::MultiNode, Case::Partitioned, Case::Ordered, Case::DeletesDelivered];

impl Case {
    async fn start(self, store: MemoryStore) -> Outbox {
        let handler = |_: Delivery| async {};
        let outbox = match self {
            Self::SingleNode | Self::Standby => Outbox::single_node(store).handle_all(handler).start().await,
            Self::MultiNode => Outbox::multi_node(store).handle_all(handler).start().await,
            Self::Partitioned => Outbox::partitioned(store).handle_all(handler).start().await,
            Self::Ordered => Outbox::ordered(store).handle_all(handler).start().await,
            Self::DeletesDelivered => Outbox::multi_node(store).delete_done(true).handle_all(handler).start().await,
        };
        outbox.expect("starts")
    }
}

#[tokio::test]
async fn a_receipt_of_nothing_is_logged_with_what_it_was_for() {
    for case in CASES {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        let _logging = log::install(subscriber.finish());
        let store = MemoryStore::new();
        let owner = case.start(store.clone()).await;
        let standby = if case == Case::Standby { Some(case.start(store.reopen()).await) } else { None };
        let outbox = standby.as_ref().unwrap_or(&owner);
        // A node that delivers is one that looks them up.
        report_committed(&store, outbox).await;
        until(|| owner.stats().done == 1).await;
        for id in ["rolled-back-1", "rolled-back-2"] {
            report_rolled_back(&store, outbox, id).await;
        }
        let lines = || -> Vec<String> {
            log.text().lines().filter(|line| line.contains("reported as committed")).map(str::to_owned).collect()
        };
        if case == Case::DeletesDelivered {
            // Another node, which looks up once a second as well and has begun later, does so after this one would have.
            let store = MemoryStore::new();
            let other = Case::MultiNode.start(store.clone()).await;
            report_committed(&store, &other).await;
            until(|| other.stats().done == 1).await;
            report_rolled_back(&store, &other, "of-the-other").await;
            until(|| !lines().is_empty()).await;
            assert!(lines().len() == 1 && lines()[0].contains("of-the-other"), "{:?}", lines());
            owner.shutdown().await;
            other.shutdown().await;
            continue;
        }
        until(|| !lines().is_empty()).await;
        owner.shutdown().await;
        if let Some(standby) = &standby {
            standby.shutdown().await;
        }
        let lines = lines();
        assert_eq!(lines.len(), 1, "{case:?}: one line in ten seconds: {lines:?}");
        for part in
            ["WARN", "rolled-back-1", "order.placed", "its transaction was rolled back, or has not committed yet"]
        {
            assert!(lines[0].contains(part), "{case:?}: {part:?} in {}", lines[0]);
        }
        assert!(!log.text().contains("secret"), "{case:?}: {}", log.text());
        assert_eq!(owner.stats().done, 1, "{case:?}: and neither was delivered");
    }
}

async fn report_committed(store: &MemoryStore, outbox: &Outbox) {
    let mut tx = store.begin();
    let event = Envelope::json("order.placed", "{}").expect("valid");
    let receipt = outbox.write(&mut tx, event).await.expect("writes");
    tx.commit();
    outbox.notify_committed(receipt);
}

async fn report_rolled_back(store: &MemoryStore, outbox: &Outbox, id: &str) {
    let mut tx = store.begin();
    let event = Envelope::builder("order.placed").id(id).payload_json("\"the secret\"").build().expect("valid");
    let receipt = outbox.write(&mut tx, event).await.expect("writes");
    tx.rollback();
    outbox.notify_committed(receipt);
}

async fn until(is_true: impl Fn() -> bool) {
    let becomes = async {
        while !is_true() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), becomes).await.expect("it happens");
}
