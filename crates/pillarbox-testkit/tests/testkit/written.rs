//! What tests of users can assert about the events that were written.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, Event, codecs::Json};
use pillarbox_core::handle::{Delivery, HandlerTransaction, in_transaction};
use pillarbox_core::row::Status;
use pillarbox_core::write::{Command, Connection, Dialect, Insert, Lookup};
use pillarbox_engine::handlers::on_type;
use pillarbox_engine::run::Outbox;
use pillarbox_memory::{Memory, MemoryError, MemoryStore, MemoryTransaction};
use pillarbox_testkit::{Recorder, TestOutbox, WrittenEvents, unique_name};
use serde::{Deserialize, Serialize};

type Outcome = Result<(), BoxError>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OrderPlaced {
    order_id: String,
}

impl Event for OrderPlaced {
    type Codec = Json;
    const TYPE: &'static str = "order.placed";
}

fn placed(order_id: &str) -> OrderPlaced {
    OrderPlaced { order_id: order_id.to_owned() }
}

/// The message of an assertion that fails.
fn failure<T: std::fmt::Debug>(assertion: impl FnOnce() -> T) -> String {
    match std::panic::catch_unwind(AssertUnwindSafe(assertion)) {
        Ok(passed) => format!("the assertion passes: {passed:?}"),
        Err(panic) => panic.downcast_ref().cloned().unwrap_or_default(),
    }
}

#[tokio::test]
async fn events_of_a_transaction_are_taken_one_by_one_before_the_commit() -> Outcome {
    let test = TestOutbox::start(|outbox| outbox.handle_all(Recorder::new())).await?;
    let mut earlier = test.begin(test.store()).await?;
    test.write(&mut earlier, &placed("earlier")).await?;
    earlier.commit().await?;
    test.wait_until_idle().await?;

    let mut tx = test.begin(test.store()).await?;
    test.write(&mut tx, &placed("o-1")).await?;
    test.write_all(&mut tx, [&placed("o-2"), &placed("o-3"), &placed("o-4")]).await?;
    let reminder = Envelope::builder("order.reminder").payload_json("{}").deliver_after(Duration::from_secs(60));
    test.write(&mut tx, reminder).await?;
    tx.savepoint("undone");
    test.write(&mut tx, &placed("undone")).await?;
    tx.rollback_to("undone")?;

    let mut written = test.written_in(&mut tx).await?;
    assert_eq!(written.take_where(|order: &OrderPlaced| order.order_id == "o-3"), placed("o-3"));
    assert_eq!(written.take_type("order.reminder").delay(), Some(Duration::from_secs(60)));
    assert_eq!(written.take_all::<OrderPlaced>(), [placed("o-1"), placed("o-2"), placed("o-4")]);
    written.assert_empty();

    tx.commit().await?;
    let mut committed = test.committed().await?;
    assert_eq!(committed.events().len(), 6, "the earlier one too");
    assert_eq!(committed.take_where(|order: &OrderPlaced| order.order_id == "earlier"), placed("earlier"));
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn an_assertion_that_fails_says_what_was_written_instead() -> Outcome {
    let test = TestOutbox::start(|outbox| outbox.handle_all(Recorder::new())).await?;
    let mut tx = test.begin(test.store()).await?;
    let mut nothing = test.written_in(&mut tx).await?;
    nothing.assert_empty();
    let message = failure(|| nothing.take::<OrderPlaced>());
    assert_eq!(message, "no `order.placed` is left in this transaction:\n  no event");

    test.write_all(&mut tx, [&placed("o-1"), &placed("o-2")]).await?;
    let long = format!(r#"{{"order_id": {}}}"#, "7".repeat(400));
    test.write(&mut tx, Envelope::builder("order.paid").key("o-1").payload_json(long.clone())).await?;
    let mut written = test.written_in(&mut tx).await?;
    let all = format!(
        "  #1 order.placed: {{\"order_id\":\"o-1\"}}\n  #2 order.placed: {{\"order_id\":\"o-2\"}}\n  #3 order.paid, key o-1: {}…",
        &long[..300]
    );
    let message = failure(|| written.take::<OrderPlaced>());
    assert_eq!(message, format!("2 `order.placed` in this transaction are as expected, instead of one:\n{all}"));
    let message = failure(|| written.take_where(|order: &OrderPlaced| order.order_id == "o-3"));
    assert_eq!(message, format!("no `order.placed` in this transaction is as expected:\n{all}"));
    let message = failure(|| written.take_type("order.placed"));
    assert!(message.starts_with("2 `order.placed` in this transaction are as expected"), "{message}");
    let message = failure(|| written.assert_empty());
    assert_eq!(message, format!("no further event was expected in this transaction:\n{all}"));
    assert_eq!(written.events().len(), 3, "an assertion that fails takes nothing");
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn an_event_of_another_shape_is_named() -> Outcome {
    let test = TestOutbox::start(|outbox| outbox.handle_all(Recorder::new())).await?;
    let mut tx = test.begin(test.store()).await?;
    test.write(&mut tx, Envelope::json("order.placed", r#"{"id": 7}"#)?).await?;
    let mut written = test.written_in(&mut tx).await?;
    let message = failure(|| written.take::<OrderPlaced>());
    assert!(message.starts_with("the payload is not a valid `order.placed`: missing field `order_id`"), "{message}");
    assert!(message.ends_with(":\n  #1 order.placed: {\"id\": 7}"), "{message}");
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn an_event_of_two_handlers_is_written_once() -> Outcome {
    let handler = || async |_: Delivery| ();
    let build = |store| {
        let mail = on_type("order.placed", handler()).named("mail");
        Outbox::partitioned(store).handler(mail).handler(on_type("order.placed", handler()).named("ledger"))
    };
    let test = TestOutbox::start_as(build).await?;
    let mut tx = test.begin(test.store()).await?;
    test.write(&mut tx, &placed("o-1")).await?;
    let mut written = test.written_in(&mut tx).await?;
    let mut handlers = written.take_type("order.placed").handlers;
    handlers.sort();
    assert_eq!(handlers, ["ledger", "mail"]);
    written.assert_empty();
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_handler_sees_what_it_has_written_in_its_transaction() -> Outcome {
    let store = MemoryStore::new();
    let outbox = Outbox::writer_only(store.clone()).start().await?;
    let looking = outbox.clone();
    let follow_up = move |delivery: Delivery, mut tx: HandlerTransaction<MemoryTransaction, Memory>| {
        let outbox = looking.clone();
        async move {
            delivery.outbox()?.write(&mut tx, Envelope::json("order.confirmed", "{}")?).await?;
            let mut written = WrittenEvents::in_transaction(&outbox, &mut tx).await?;
            written.take_type("order.confirmed");
            written.assert_empty();
            Ok::<_, BoxError>(())
        }
    };
    let handler = in_transaction(store.clone(), follow_up);
    let test = TestOutbox::on(store.clone(), |store| {
        Outbox::single_node(store).handle_type("order.placed", handler).handle_all(Recorder::new())
    })
    .await?;
    let mut tx = test.begin(&store).await?;
    test.write(&mut tx, &placed("o-1")).await?;
    tx.commit().await?;
    test.deliver_all().await?;
    let statuses = test.committed().await?.events().iter().map(|event| event.record.status).collect::<Vec<_>>();
    assert_eq!(statuses, [Status::Done.code(); 2], "the assertions in the handler have held");
    test.shutdown().await;
    outbox.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn too_many_events_are_refused() -> Outcome {
    let test = TestOutbox::start(|outbox| outbox.handle_all(Recorder::new())).await?;
    let mut tx = test.begin(test.store()).await?;
    let events: Vec<OrderPlaced> = (0..1_001).map(|number| placed(&number.to_string())).collect();
    test.write_all(&mut tx, &events[..1_000]).await?;
    assert_eq!(test.written_in(&mut tx).await?.take_all::<OrderPlaced>(), events[..1_000]);
    test.write(&mut tx, &events[1_000]).await?;
    let refused = test.written_in(&mut tx).await.expect_err("too many").to_string();
    assert!(refused.starts_with("there are 1001 rows to assert on, more than 1000; write fewer"), "{refused}");
    tx.commit().await?;
    let refused = test.committed().await.expect_err("too many").to_string();
    assert!(refused.starts_with("there are 1001 rows to assert on"), "{refused}");
    test.shutdown().await;
    Ok(())
}

/// A connection that says of itself what it is told to.
struct Disguised {
    inner: MemoryTransaction,
    dialect: Dialect,
    open: bool,
}

impl Connection<Disguised> for Disguised {
    type Error = MemoryError;

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(self.open)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, MemoryError> {
        Connection::<Memory>::insert(&mut self.inner, insert).await
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, MemoryError> {
        Connection::<Memory>::run(&mut self.inner, command).await
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, MemoryError> {
        self.inner.read(lookup).await
    }
}

#[tokio::test]
async fn a_connection_that_cannot_show_what_was_written_is_refused() -> Outcome {
    let test = TestOutbox::start(|outbox| outbox.handle_all(Recorder::new())).await?;
    for (dialect, open, refusal) in [
        (Dialect::MYSQL, true, "this outbox keeps its table in memory, and the transaction is of MySQL"),
        (Dialect::MEMORY, false, "no transaction is open on this connection; read what is committed by `committed`"),
    ] {
        let mut connection = Disguised { inner: test.store().begin(), dialect, open };
        let refused = test.written_in(&mut connection).await.map(|written| written.events().len());
        assert_eq!(refused.map_err(|error| error.to_string()), Err(refusal.to_owned()));
    }
    test.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn rows_that_others_insert_are_among_the_committed() -> Outcome {
    let store = MemoryStore::new();
    let outbox = Outbox::writer_only(store.clone()).start().await?;
    store.inspect().insert_three_columns("from-elsewhere", "order.placed", r#"{"order_id": "o-9"}"#)?;
    let mut committed = WrittenEvents::committed(&outbox).await?;
    assert_eq!(committed.take::<OrderPlaced>(), placed("o-9"));
    committed.assert_empty();
    outbox.shutdown().await;
    Ok(())
}

#[test]
fn names_are_unique_and_fit_a_table() {
    let (one, other) = (unique_name("orders"), unique_name("orders"));
    assert_ne!(one, other);
    assert_eq!((one.len(), one.to_lowercase()), (33, one.clone()));
}
