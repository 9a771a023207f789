use pillarbox_core::event::{Envelope, GLOBAL_AGGREGATE, Payload};
use pillarbox_core::row::Change;
use pillarbox_core::write::Finish as _;
use pillarbox_engine::run::Outbox;

use crate::Harness;
use crate::events::{HOUR, all, claimed, delayed, event, record, settle_held};
use crate::nodes::peer;
use crate::payloads::every_column;
use crate::run::{Db, Outcome};

/// All that the table holds of an event in any state, also of one that cannot be read as an event.
pub(in crate::conformance) async fn records_show_every_column_as_stored<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = peer(&*store).await?;
    let full = every_column()?;
    let binary = Envelope::builder("test.binary").payload_bytes("application/x-thing", vec![0, 255, 39]).build()?;
    let late = delayed()?;
    let seqs = db.write(vec![full.clone(), binary.clone(), late.clone()]).await?;

    let new = record(db, &full).await?;
    assert_eq!(
        (new.seq, new.event_id.as_str(), new.event_type.as_str()),
        (seqs[0], full.id().as_str(), full.event_type())
    );
    assert_eq!(
        (new.aggregate_type.as_deref(), new.aggregate_id.as_deref()),
        (Some(full.aggregate_type()), full.aggregate_id())
    );
    assert_eq!((new.tenant_id.as_deref(), new.ordering_key.as_deref()), (full.tenant_id(), full.key()));
    assert_eq!((new.payload.as_ref(), new.headers.clone()), (Some(full.payload()), full.headers().to_json()));
    assert_eq!((new.status, new.attempts, new.occurred_at), (0, 0, Some(full.occurred_at())));
    assert_eq!((new.available_at, new.done_at, new.last_error, new.locked_by), (None, None, None, None));
    assert_eq!(record(db, &binary).await?.payload.as_ref(), Some(binary.payload()));
    for other in [format!("{} ", full.id()), full.id().as_str().to_uppercase()] {
        assert_eq!(store.records(&other).await?.len(), 0, "{other:?} is another event");
    }
    let waiting = record(db, &late).await?;
    let wait = waiting.available_at.map(|at| at.since(waiting.created_at));
    // An hour from the writer's clock, which need not be the database's.
    assert!(wait.is_some_and(|wait| wait > HOUR / 2 && wait < HOUR * 2), "{waiting:?}");

    assert_eq!(claimed(&*store, &node, &all()).await?, seqs[..2]);
    assert_eq!(record(db, &full).await?.locked_by.as_deref(), Some(node.as_str()));
    let retry = Change::Retry { attempts: 3, delay: HOUR * 2, error: Some("it's \"broken\": 🦀".to_owned()) };
    settle_held(&*store, &node, &seqs[..1], &retry).await?;
    settle_held(&*store, &node, &seqs[1..2], &Change::Done).await?;
    let failed = record(db, &full).await?;
    let wait = failed.available_at.map(|at| at.since(failed.created_at));
    assert!(wait.is_some_and(|wait| wait >= HOUR * 2 && wait < HOUR * 3), "{failed:?}");
    assert_eq!((failed.status, failed.attempts, failed.last_error.as_deref()), (2, 3, Some("it's \"broken\": 🦀")));
    assert_eq!((failed.locked_by, failed.created_at, failed.done_at), (None, new.created_at, None));
    let done = record(db, &binary).await?;
    let took = done.done_at.map(|at| at.since(done.created_at));
    assert!(done.status == 1 && took.is_some_and(|took| took < HOUR), "{done:?}");

    db.insert_three_columns("from-elsewhere", "order.placed", r#"{"b":1,  "a":2}"#).await?;
    let plain = store.records("from-elsewhere").await?.pop().ok_or("the row of three columns is missing")?;
    assert_eq!(plain.payload.as_ref().and_then(Payload::as_json), Some(r#"{"b":1,  "a":2}"#));
    // Some tables have a default for the aggregate, and some stores stamp what the writer left out.
    assert!(plain.aggregate_type.is_none_or(|aggregate| aggregate == GLOBAL_AGGREGATE));
    assert!(plain.occurred_at.is_none_or(|occurred_at| occurred_at == plain.created_at));
    assert_eq!((plain.aggregate_id, plain.tenant_id, plain.ordering_key, plain.headers), (None, None, None, None));

    db.insert_broken("broken").await?;
    let broken = store.records("broken").await?.pop().ok_or("the broken row is missing")?;
    assert_eq!((broken.event_type.as_str(), broken.status), ("broken", 0));
    if H::CAPABILITIES.sql {
        assert_eq!(broken.headers.as_deref(), Some(r#"{"a": 1}"#), "as it stands, right or wrong");
    }
    for nobody in ["no-such-event", "", "' OR '1'='1", &"x".repeat(500)] {
        assert_eq!(store.records(nobody).await?, [], "{nobody:?}");
    }
    Ok(())
}

/// In the order they were written, each with its handler and a state of its own.
pub(in crate::conformance) async fn records_come_one_for_each_handler<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, event) = (db.store(), event()?);
    let writer = Outbox::writer_only(db.store()).handled_by(event.event_type(), ["b", "a"]).start().await?;
    let mut transaction = db.begin().await?;
    writer.write(&mut transaction, event.clone()).await?;
    transaction.commit().await?;
    writer.shutdown().await;

    let records = store.records(event.id().as_str()).await?;
    assert!(records.is_sorted_by(|one, next| one.seq < next.seq), "{records:?}");
    let handlers: Vec<_> = records.iter().map(|record| record.handler.as_deref()).collect();
    assert_eq!(handlers, [Some("b"), Some("a")]);
    let node = peer(&*store).await?;
    assert_eq!(claimed(&*store, &node, &all()).await?.len(), 2);
    settle_held(&*store, &node, &[records[1].seq], &Change::Done).await?;
    let states: Vec<_> = store.records(event.id().as_str()).await?.iter().map(|record| record.status).collect();
    assert_eq!(states, [0, 1]);
    Ok(())
}

/// The same as by its id; of an event with several rows, the one that is meant.
pub(in crate::conformance) async fn record_finds_a_row_by_its_seq<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let written = event()?;
    let seq = db.write(vec![written.clone(), event()?]).await?[0];
    let found = store.record(seq).await?;
    let records = store.records(written.id().as_str()).await?;
    assert_eq!(found.as_ref(), records.first());
    assert_eq!(found.map(|record| record.seq), Some(seq));
    assert_eq!(store.record(seq + 1000).await?, None);
    Ok(())
}
