//! A process waits for the end of events that others deliver.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::handle::{Delivery, HandlerError, Outcome as Answer};
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::retry::ExponentialBackoff;
use pillarbox_core::write::Finish as _;
use pillarbox_engine::follow::{DeliveredAs, EventEnd, WaitError};
use pillarbox_engine::handlers::{on_batch, on_type};
use pillarbox_engine::maintain::PendingChange;
use pillarbox_engine::run::{Config, Outbox, OutboxBuilder};

use super::control::held_back;
use super::setting::{until, write};
use crate::events::{event, events, record};
use crate::run::{Db, Outcome};
use crate::{Fault, FaultyStore, Harness, Operation};

const MOMENT: Duration = Duration::from_millis(50);

const DELIVERED: EventEnd = EventEnd::Delivered { positions: Vec::new() };

/// A process that writes and waits, and delivers nothing; the calls of its store are counted.
async fn web<H: Harness>(db: &Db<H>) -> Result<(Outbox, FaultyStore<Arc<dyn pillarbox_core::store::Store>>), BoxError> {
    let store = FaultyStore::new(db.store());
    Ok((Outbox::writer_only(store.clone()).start().await?, store))
}

/// A node of another process.
fn node<H: Harness>(db: &Db<H>, mode: NodeMode) -> OutboxBuilder {
    let mut config = Config::default();
    (config.claim.min_interval, config.claim.max_interval) = (Duration::from_millis(5), Duration::from_millis(20));
    config.retry.policy = Arc::new(ExponentialBackoff::constant(MOMENT, MOMENT));
    Outbox::builder(mode).store(db.store()).config(config)
}

fn ids(events: &[Envelope]) -> Vec<EventId> {
    events.iter().map(|event| event.id().clone()).collect()
}

/// By one future for each event, and by one for all; each event is waited for from before it is delivered.
pub(super) async fn is_waited_for<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let ((web, store), (recorder, gate)) = (web(db).await?, held_back());
    let written = events(3)?;
    let outbox = node(db, mode).handle_all(recorder.clone()).start().await?;
    write(db, &web, &written).await?;
    recorder.wait_for_calls(1).await;
    let one = async { web.delivered(written[0].id().clone()).await };
    let all = async { web.delivered_all(ids(&written)).await };
    let opening = async {
        until(async || Ok(store.calls(Operation::Follow) >= 3)).await?;
        gate.add_permits(written.len());
        Ok::<_, BoxError>(())
    };
    let (one, all, opened) = tokio::join!(one, all, opening);
    opened?;
    assert_eq!((one?, all?), (DELIVERED, vec![DELIVERED; 3]));
    assert_eq!(web.delivered_all([]).await?, []);
    assert_eq!(outbox.delivered(written[0].id().clone()).await?, DELIVERED, "the node itself tells as well");
    web.shutdown().await;
    outbox.shutdown().await;
    Ok(())
}

pub(super) async fn an_event_ends_dead_with_its_error<H: Harness>(db: &Db<H>) -> Outcome {
    let (web, _) = web(db).await?;
    let broken = async |_: Delivery| Err::<(), _>(HandlerError::unrecoverable("no such account"));
    let outbox = node(db, NodeMode::SingleNode).handle_all(broken).start().await?;
    let event = event()?;
    write(db, &web, std::slice::from_ref(&event)).await?;
    let end = web.delivered(event.id().clone()).await?;
    let is_so = matches!(&end, EventEnd::Dead { handler: None, error } if error.contains("no such account"));
    assert!(is_so, "{end:?}");
    web.shutdown().await;
    outbox.shutdown().await;
    Ok(())
}

pub(super) async fn an_event_ends_cancelled<H: Harness>(db: &Db<H>) -> Outcome {
    let ((web, store), event) = (web(db).await?, event()?);
    write(db, &web, std::slice::from_ref(&event)).await?;
    let cancelling = async {
        until(async || Ok(store.calls(Operation::Follow) >= 2)).await?;
        assert_eq!(web.pending_events().cancel(event.id().as_str()).await?, PendingChange::Rows(1));
        Ok::<_, BoxError>(())
    };
    let (end, cancelled) = tokio::join!(async { web.delivered(event.id().clone()).await }, cancelling);
    cancelled?;
    assert_eq!(end?, EventEnd::Cancelled);
    web.shutdown().await;
    Ok(())
}

/// And it is dead if one of them has given it up.
pub(super) async fn an_event_of_several_handlers_ends_with_the_last<H: Harness>(db: &Db<H>) -> Outcome {
    let ((slow, gate), written) = (held_back(), events(1)?);
    let event_type = written[0].event_type();
    let broken = async |_: Delivery| Err::<(), _>(HandlerError::unrecoverable("no such account"));
    let web = Outbox::writer_only(db.store()).handled_by(event_type, ["broken", "slow"]).start().await?;
    let outbox = node(db, NodeMode::SingleNode);
    let outbox = outbox
        .handler(on_type(event_type, broken).named("broken"))
        .handler(on_type(event_type, slow.clone()).named("slow"))
        .start()
        .await?;
    write(db, &web, &written).await?;
    let id = written[0].id();
    until(async || Ok(db.store().counts().await?.dead == 1)).await?;
    slow.wait_for_calls(1).await;
    // As long as it takes to see it, on a busy machine as well.
    let early = web.delivered(id.clone()).within(10 * MOMENT).await;
    let is_pending = matches!(early, Err(WaitError::Timeout { seen: true, left: 1, .. }));
    assert!(is_pending, "it has not ended for the other handler: {early:?}");
    gate.add_permits(1);
    let end = web.delivered(id.clone()).await?;
    let is_so = matches!(&end, EventEnd::Dead { handler: Some(handler), error }
        if &**handler == "broken" && error.contains("no such account"));
    assert!(is_so, "{end:?}");
    web.shutdown().await;
    outbox.shutdown().await;
    Ok(())
}

/// Of several handlers those that have reported one; by calls of one event and of several. A text that is no position is
/// not kept, and the event is delivered all the same.
pub(super) async fn tells_positions<H: Harness>(db: &Db<H>, mode: NodeMode) -> Outcome {
    let written = events(1)?;
    let (event_type, id) = (written[0].event_type(), written[0].id().clone());
    let web = Outbox::writer_only(db.store()).handled_by(event_type, ["one", "batch", "quiet", "long"]);
    let web = web.start().await?;
    let one = async |delivery: Delivery| Answer::delivered_as(format!("Grüße/{}", delivery.attempt()));
    let batch = async |deliveries: Vec<Delivery>| vec![Answer::delivered_as("orders/3/1042"); deliveries.len()];
    let outbox = node(db, mode)
        .handler(on_type(event_type, one).named("one"))
        .handler(on_batch(event_type, 10, batch).named("batch"))
        .handler(on_type(event_type, async |_: Delivery| {}).named("quiet"))
        .handler(on_type(event_type, async |_: Delivery| Answer::delivered_as("x".repeat(301))).named("long"))
        .start()
        .await?;
    write(db, &web, &written).await?;
    let position = |(handler, position): (&str, &str)| DeliveredAs {
        handler: Some(handler.into()),
        position: position.to_owned(),
    };
    let positions = [("batch", "orders/3/1042"), ("one", "Grüße/1")].map(position).to_vec();
    assert_eq!(web.delivered(id.clone()).await?, EventEnd::Delivered { positions });
    let mut kept: Vec<_> = db.store().records(id.as_str()).await?;
    kept.sort_by(|one, other| one.handler.cmp(&other.handler));
    let kept: Vec<_> = kept.into_iter().map(|record| record.delivered_as).collect();
    assert_eq!(kept, [Some("orders/3/1042".to_owned()), None, Some("Grüße/1".to_owned()), None]);
    web.shutdown().await;
    outbox.shutdown().await;
    Ok(())
}

pub(super) async fn no_position_is_kept_where_none_is_wanted<H: Harness>(db: &Db<H>) -> Outcome {
    let (web, _) = web(db).await?;
    let outbox = node(db, NodeMode::SingleNode).keep_positions(false);
    let outbox = outbox.handle_all(async |_: Delivery| Answer::delivered_as("s/1")).start().await?;
    let event = event()?;
    write(db, &web, std::slice::from_ref(&event)).await?;
    assert_eq!(web.delivered(event.id().clone()).await?, DELIVERED);
    assert_eq!(record(db, &event).await?.delivered_as, None);
    web.shutdown().await;
    outbox.shutdown().await;
    Ok(())
}

/// The node stops before it has delivered the event, and another does it.
pub(super) async fn waiting_survives_a_restart_of_the_deliverer<H: Harness>(db: &Db<H>) -> Outcome {
    let ((web, store), event) = (web(db).await?, event()?);
    let stuck = super::setting::stuck_until_told();
    let first = node(db, NodeMode::SingleNode).handle_all(stuck.clone()).start().await?;
    write(db, &web, std::slice::from_ref(&event)).await?;
    stuck.wait_for_calls(1).await;
    let restarting = async {
        until(async || Ok(store.calls(Operation::Follow) >= 1)).await?;
        first.shutdown_within(Duration::ZERO).await;
        let next = node(db, NodeMode::SingleNode).handle_all(async |_: Delivery| {}).start().await?;
        Ok::<_, BoxError>(next)
    };
    let (end, next) = tokio::join!(async { web.delivered(event.id().clone()).await }, restarting);
    assert_eq!(end?, DELIVERED);
    next?.shutdown().await;
    web.shutdown().await;
    Ok(())
}

/// Neither before, nor after, nor when the future was dropped.
pub(super) async fn waiting_asks_nothing_when_nobody_waits<H: Harness>(db: &Db<H>) -> Outcome {
    let ((web, store), event) = (web(db).await?, event()?);
    write(db, &web, std::slice::from_ref(&event)).await?;
    let unpolled = web.delivered(event.id().clone());
    tokio::time::sleep(MOMENT).await;
    assert_eq!(store.calls(Operation::Follow), 0);
    drop(unpolled);
    {
        let mut waiting = pin!(async { web.delivered(event.id().clone()).await });
        let asked = until(async || Ok(store.calls(Operation::Follow) >= 2));
        tokio::select! {
            end = &mut waiting => panic!("nobody delivers it: {end:?}"),
            asked = asked => asked?,
        }
    }
    // A statement that was under way may be counted still.
    tokio::time::sleep(MOMENT).await;
    let asked = store.calls(Operation::Follow);
    tokio::time::sleep(MOMENT * 4).await;
    assert_eq!(store.calls(Operation::Follow), asked);
    web.shutdown().await;
    Ok(())
}

pub(super) async fn waiting_goes_on_when_the_database_is_back<H: Harness>(db: &Db<H>) -> Outcome {
    let ((web, store), event) = (web(db).await?, event()?);
    write(db, &web, std::slice::from_ref(&event)).await?;
    store.set(Operation::Follow, Fault::Refused);
    let recovering = async {
        store.wait_for_faults(Operation::Follow, 2).await;
        let outbox = node(db, NodeMode::SingleNode).handle_all(async |_: Delivery| {}).start().await?;
        store.set(Operation::Follow, Fault::None);
        Ok::<_, BoxError>(outbox)
    };
    let (end, outbox) = tokio::join!(async { web.delivered(event.id().clone()).await }, recovering);
    assert_eq!(end?, DELIVERED);
    outbox?.shutdown().await;
    web.shutdown().await;
    Ok(())
}

pub(super) async fn waiting_ends_with_its_time_and_says_if_the_event_was_seen<H: Harness>(db: &Db<H>) -> Outcome {
    let ((web, store), event) = (web(db).await?, event()?);
    let mut transaction = db.begin().await?;
    web.write(&mut transaction, event.clone()).await?;
    let unseen = web.delivered(event.id().clone()).within(MOMENT).await;
    assert!(matches!(&unseen, Err(WaitError::Timeout { seen: false, left: 1, .. })), "{unseen:?}");
    transaction.commit().await?;
    let asked = store.calls(Operation::Follow);
    let pending = web.delivered_all([event.id().clone(), EventId::new("no such event")?]).within(MOMENT * 10).await;
    assert!(store.calls(Operation::Follow) > asked);
    let is_so = matches!(&pending, Err(WaitError::Timeout { id, seen: true, left: 2, .. }) if id == event.id());
    assert!(is_so, "{pending:?}");
    web.shutdown().await;
    let stopped = web.delivered(event.id().clone()).await;
    assert!(matches!(stopped, Err(WaitError::Stopped)), "{stopped:?}");
    Ok(())
}

pub(super) async fn a_row_that_is_deleted_while_it_is_waited_for_is_gone<H: Harness>(db: &Db<H>) -> Outcome {
    let ((web, store), event) = (web(db).await?, event()?);
    write(db, &web, std::slice::from_ref(&event)).await?;
    let deleting = async {
        until(async || Ok(store.calls(Operation::Follow) >= 2)).await?;
        let mut config = Config::default();
        config.settle.delete_done = true;
        let outbox = Outbox::builder(NodeMode::SingleNode).store(db.store()).config(config);
        Ok::<_, BoxError>(outbox.handle_all(async |_: Delivery| {}).start().await?)
    };
    let (end, outbox) = tokio::join!(async { web.delivered(event.id().clone()).await }, deleting);
    assert_eq!(end?, EventEnd::Gone);
    outbox?.shutdown().await;
    web.shutdown().await;
    Ok(())
}

/// Before anything is asked.
pub(super) async fn waiting_is_refused_where_delivered_rows_are_deleted<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, mut config) = (FaultyStore::new(db.store()), Config::default());
    config.settle.delete_done = true;
    let outbox = Outbox::builder(NodeMode::SingleNode).store(store.clone()).config(config);
    let outbox = outbox.handle_all(async |_: Delivery| {}).start().await?;
    let refused = outbox.delivered(event()?.id().clone()).await;
    assert!(matches!(&refused, Err(WaitError::Config(error)) if error.field() == "settle.delete_done"), "{refused:?}");
    assert_eq!(store.calls(Operation::Follow), 0);
    outbox.shutdown().await;
    Ok(())
}
