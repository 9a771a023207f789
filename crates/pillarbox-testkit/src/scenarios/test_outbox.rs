use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Delivery;
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::retry::FixedBackoff;
use pillarbox_core::row::Status;
use pillarbox_core::write::Finish;
use pillarbox_engine::run::Outbox;

use crate::run::{Db, Outcome};
use crate::{Harness, Recorder, TestOutbox};

/// A transaction shows its events before the commit, and `deliver_all` ends each of them, though one has failed twice.
pub(super) async fn delivers_all<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let recorder = Recorder::around(async |delivery: Delivery| match (delivery.event_type(), delivery.attempt()) {
        ("test.a", 1 | 2) => Err("the mail server is down"),
        _ => Ok(()),
    });
    let pause = FixedBackoff::new(Duration::from_millis(30))?;
    let often = (Duration::from_millis(1), Duration::from_millis(20));
    let build = |store| {
        let builder = Outbox::builder(mode).store(store).poll_interval(often.0, often.1);
        builder.retry_policy(pause).handle_all(recorder.clone())
    };
    let test = TestOutbox::on(db.store(), build).await?;
    let mut transaction = db.begin().await?;
    for event_type in ["test.a", "test.b", "test.c"] {
        let event = Envelope::builder(event_type).key(if event_type == "test.c" { "another" } else { "key" });
        test.write(&mut transaction, event.payload_json("{}")).await?;
    }
    let mut written = test.written_in(&mut transaction).await?;
    for event_type in ["test.b", "test.a", "test.c"] {
        written.take_type(event_type);
    }
    written.assert_empty();
    test.committed().await?.assert_empty();
    transaction.commit().await?;

    test.deliver_all().await?;
    let mut committed = test.committed().await?;
    let ids = ["test.a", "test.b", "test.c"].map(|event_type| {
        let record = committed.take_type(event_type).record;
        assert_eq!(record.status, Status::Done.code(), "{event_type}");
        record.event_id
    });
    let calls = recorder.calls();
    let of_the_key = calls.iter().map(|call| call.id.as_str()).filter(|id| *id != ids[2]);
    assert_eq!(calls.len(), 5, "{calls:?}");
    if matches!(mode, NodeMode::Partitioned | NodeMode::Ordered) {
        assert!(of_the_key.eq([&ids[0], &ids[0], &ids[0], &ids[1]]), "{calls:?}");
    }
    test.shutdown().await;
    Ok(())
}
