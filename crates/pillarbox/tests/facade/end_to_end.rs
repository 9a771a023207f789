//! From a derived event to its handler, with nothing but this crate: what a user who depends on it alone writes.
#![cfg(feature = "macros")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pillarbox::{Delivery, Event, Failure, HandlerError, MemoryStore, Outbox, Outcome, Retry, blocking, handler};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::timeout;

#[derive(Serialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id, tenant = shop, headers("source" = source))]
struct OrderPlaced {
    order_id: String,
    shop: Option<u16>,
    source: &'static str,
}

/// The same event as its handler reads it: fields that it does not need are left out.
#[derive(Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
struct Placed {
    order_id: String,
}

#[derive(Serialize, Deserialize, Event)]
#[event(name = "label.wanted")]
struct LabelWanted(u8);

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_derived_event_reaches_its_handler_as_written() -> Result<(), Box<dyn std::error::Error>> {
    let (seen, mut deliveries) = mpsc::unbounded_channel();
    let store = MemoryStore::new();
    let outbox = Outbox::single_node(store.clone())
        .handle(move |event: Placed, delivery: Delivery| {
            let sent = seen.send((event, delivery)).map_err(HandlerError::retryable);
            async move { sent }
        })
        .start()
        .await?;

    let placed = OrderPlaced { order_id: "o-1".to_owned(), shop: Some(7), source: "web" };
    let mut tx = outbox.begin(&store).await?;
    let written = outbox.write(&mut tx, &placed).await?;
    tx.commit().await?;

    let (event, delivery) = timeout(SOON, deliveries.recv()).await?.ok_or("the handler is gone")?;
    assert_eq!(event, Placed { order_id: "o-1".to_owned() });
    assert_eq!(Some(delivery.id()), written.id());
    assert_eq!((delivery.event_type(), delivery.aggregate_type()), ("order.placed", "order"));
    assert_eq!((delivery.aggregate_id(), delivery.key(), delivery.tenant_id()), (Some("o-1"), Some("o-1"), Some("7")));
    assert_eq!(delivery.headers().iter().collect::<Vec<_>>(), [("source", "web")]);
    assert_eq!(delivery.payload().as_json(), Some(r#"{"order_id":"o-1","shop":7,"source":"web"}"#));
    outbox.shutdown().await;
    assert!(deliveries.recv().await.is_none(), "one event, one delivery");
    Ok(())
}

#[tokio::test]
async fn blocking_and_catch_all_handlers_are_registered_through_the_facade() -> Result<(), Box<dyn std::error::Error>> {
    let (seen, mut calls) = mpsc::unbounded_channel();
    let (typed, rest) = (seen.clone(), seen);
    let store = MemoryStore::new();
    let outbox = Outbox::single_node(store.clone())
        .handle(blocking(move |label: LabelWanted| typed.send(format!("label {}", label.0))))
        .handle_all(move |delivery: Delivery| {
            let sent = rest.send(format!("other {}", delivery.event_type()));
            async move { sent.map(|()| Outcome::Done) }
        })
        .start()
        .await?;

    // The caller's own transaction, once with and once without saying that it committed.
    let mut tx = store.begin();
    let written = outbox.write(&mut tx, &LabelWanted(3)).await?;
    tx.commit();
    outbox.notify_committed(written);
    let mut tx = store.begin();
    let envelope = pillarbox::Envelope::json("order.lost", "{}")?;
    outbox.write(&mut tx, envelope).await?;
    tx.commit();

    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.push(timeout(SOON, calls.recv()).await?.ok_or("the handlers are gone")?);
    }
    seen.sort();
    assert_eq!(seen, ["label 3", "other order.lost"]);
    outbox.shutdown().await;
    assert!(calls.recv().await.is_none(), "two events, two deliveries");
    Ok(())
}

#[derive(Serialize, Deserialize, Event)]
#[event(name = "receipt.wanted", aggregate = "order", key = order)]
struct ReceiptWanted {
    order: String,
}

/// Calls of the handlers below, which are functions and so have nowhere else to count.
static MAILED: AtomicU32 = AtomicU32::new(0);
static GIVEN_UP: AtomicU32 = AtomicU32::new(0);
static BOOKED: AtomicU32 = AtomicU32::new(0);
static CANCELLED: AtomicU32 = AtomicU32::new(0);

#[handler(name = "mailer", retry = Retry::fixed(Duration::from_millis(1)).max_attempts(2), fallback = by_letter)]
async fn send_receipt(wanted: ReceiptWanted, delivery: Delivery) -> Result<(), String> {
    assert_eq!((wanted.order.as_str(), delivery.handler_id()), ("o-1", Some("mailer")));
    MAILED.fetch_add(1, Ordering::SeqCst);
    Err("the mailbox is full".to_owned())
}

async fn by_letter(_: Delivery, failure: Failure) -> Outcome {
    assert_eq!((failure.failures(), failure.is_exhausted()), (2, true));
    GIVEN_UP.fetch_add(1, Ordering::SeqCst);
    Outcome::Done
}

#[handler(name = "ledger")]
async fn book(wanted: ReceiptWanted) {
    assert_eq!(wanted.order, "o-1");
    BOOKED.fetch_add(1, Ordering::SeqCst);
}

#[handler(event = "order.cancelled", aggregate = "order")]
async fn release_stock(delivery: Delivery) {
    assert_eq!(delivery.payload().as_json(), Some("{}"));
    CANCELLED.fetch_add(1, Ordering::SeqCst);
}

#[tokio::test]
async fn functions_with_the_attribute_are_delivered_to_with_what_it_says() -> Result<(), Box<dyn std::error::Error>> {
    let store = MemoryStore::new();
    let outbox = Outbox::single_node(store.clone()).handler(send_receipt).handler(book).handler(release_stock);
    let outbox = outbox.start().await?;
    let mut tx = outbox.begin(&store).await?;
    outbox.write(&mut tx, &ReceiptWanted { order: "o-1".to_owned() }).await?;
    let cancelled = pillarbox::Envelope::builder("order.cancelled").aggregate("order", "o-1").payload_json("{}");
    outbox.write(&mut tx, cancelled.build()?).await?;
    tx.commit().await?;
    let calls = || [&MAILED, &GIVEN_UP, &BOOKED, &CANCELLED].map(|calls| calls.load(Ordering::SeqCst));
    let delivered = async {
        while calls().contains(&0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, delivered).await?;
    outbox.shutdown().await;
    assert_eq!(calls(), [2, 1, 1, 1]);
    Ok(())
}
