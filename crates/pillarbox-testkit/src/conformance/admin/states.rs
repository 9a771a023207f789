use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::row::{Change, Status};
use pillarbox_core::store::{RowState, Store};
use pillarbox_core::write::Finish as _;
use pillarbox_engine::run::Outbox;

use crate::Harness;
use crate::events::{HOUR, all, claimed, event, events, settle_held};
use crate::nodes::peer;
use crate::run::{Db, Outcome};

/// The state and the error of the one row of each event, in the order of `ids`; `None` for an event that is not there.
async fn states(store: &dyn Store, ids: &[EventId]) -> Result<Vec<Option<(Status, Option<String>)>>, BoxError> {
    let mut found = store.states(ids).await?;
    let states = ids.iter().map(|id| {
        let at = found.iter().position(|state| state.event_id == *id)?;
        let RowState { status, error, .. } = found.swap_remove(at);
        Some((status, error))
    });
    let states = states.collect();
    assert_eq!(found, [], "more than one row of an event");
    Ok(states)
}

/// In each state; of several handlers each for itself; and what was deleted is not there.
pub(in crate::conformance) async fn states_tell_how_each_row_of_an_event_stands<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, written) = (db.store(), events(6)?);
    let node = peer(&*store).await?;
    let seqs = db.write(written.clone()).await?;
    let ids: Vec<EventId> = written.iter().map(|event| event.id().clone()).collect();
    assert_eq!(states(&*store, &ids).await?, vec![Some((Status::New, None)); 6]);
    assert_eq!(claimed(&*store, &node, &all()).await?, seqs);
    let error = || "it's \"broken\": \u{1f980}".to_owned();
    let changes = [
        Change::Done,
        Change::Retry { attempts: 1, delay: HOUR, error: Some("later".to_owned()) },
        Change::Dead { attempts: 1, error: error() },
        Change::Rescued { attempts: 1, error: error() },
        Change::Remove,
    ];
    for (seq, change) in seqs.iter().zip(&changes) {
        settle_held(&*store, &node, &[*seq], change).await?;
    }
    let expected = vec![
        Some((Status::Done, None)),
        Some((Status::Retry, None)),
        Some((Status::Dead, Some(error()))),
        Some((Status::Done, Some(error()))),
        None,
        Some((Status::New, None)),
    ];
    assert_eq!(states(&*store, &ids).await?, expected);
    assert_eq!(store.states(&[]).await?, []);

    let both = event()?;
    let writer = Outbox::writer_only(db.store()).handled_by(both.event_type(), ["b", "a"]).start().await?;
    let mut transaction = db.begin().await?;
    writer.write(&mut transaction, both.clone()).await?;
    transaction.commit().await?;
    writer.shutdown().await;
    let dead = store.records(both.id().as_str()).await?[1].seq;
    assert_eq!(claimed(&*store, &node, &all()).await?.len(), 2 + 1, "and the one that is left");
    settle_held(&*store, &node, &[dead], &Change::Dead { attempts: 1, error: error() }).await?;
    let mut of_both = store.states(&[both.id().clone()]).await?;
    of_both.sort_by(|one, other| one.handler.cmp(&other.handler));
    let state = |handler: &str, status, error| RowState {
        event_id: both.id().clone(),
        handler: Some(handler.into()),
        status,
        error,
        delivered_as: None,
    };
    assert_eq!(of_both, [state("a", Status::Dead, Some(error())), state("b", Status::New, None)]);
    Ok(())
}

/// Ids are compared byte by byte, whatever is in them, and a thousand of them at once.
pub(in crate::conformance) async fn states_take_no_event_for_another<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let named = |id: &str| Envelope::builder("test.event").id(id).payload_json("{}").build();
    db.write(vec![named("An event")?, named("it's \"quoted\"")?]).await?;
    let of = |id: &str| EventId::from_stored(id);
    let others = ["an event", "An event ", "An", "", "' OR '1'='1", "\0", "it's \"quoted\" "].map(of);
    assert_eq!(store.states(&others).await?, []);
    let mut many: Vec<EventId> = (0..998).map(|number| of(&format!("no such event {number}"))).collect();
    many.extend(["An event", "it's \"quoted\""].map(of));
    let mut found: Vec<_> = store.states(&many).await?.into_iter().map(|state| state.event_id).collect();
    found.sort();
    assert_eq!(found, ["An event", "it's \"quoted\""].map(of));
    Ok(())
}

/// Not before its transaction has committed, and never if it is rolled back.
pub(in crate::conformance) async fn states_leave_out_what_is_not_committed<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, writer) = (db.store(), Outbox::writer_only(db.store()).start().await?);
    let (kept, dropped) = (event()?, event()?);
    let ids = [kept.id().clone(), dropped.id().clone()];
    let mut transaction = db.begin().await?;
    writer.write(&mut transaction, dropped).await?;
    assert_eq!(store.states(&ids).await?, []);
    transaction.rollback().await?;
    let mut transaction = db.begin().await?;
    writer.write(&mut transaction, kept).await?;
    assert_eq!(store.states(&ids).await?, []);
    transaction.commit().await?;
    assert_eq!(states(&*store, &ids).await?, [Some((Status::New, None)), None]);
    writer.shutdown().await;
    Ok(())
}
