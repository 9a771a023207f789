use std::time::Duration;

use pillarbox_core::event::Envelope;
use pillarbox_core::handle::Path;
use pillarbox_core::write::Finish;
use pillarbox_engine::run::Role;
use tokio::time::Instant;

use super::setting::{
    assert_soon, delivered_once, drained, eager, first_delivered, settled, unpolled, write, write_guarded,
};
use crate::events::{event, events};
use crate::run::{Db, Outcome};
use crate::{Harness, Recorder};

/// Nobody reports the commit; having written is enough of a hint to poll the table soon.
pub(super) async fn a_commit_of_the_users_own_is_delivered_from_the_table<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db, &recorder).start().await?;
    let mut events = Vec::new();
    // Several times, so that it is the hint and not the first look after the start.
    for round in 1..=3 {
        events.push(event()?);
        write(db, &outbox, &events[round - 1..]).await?;
        let committed = Instant::now();
        recorder.wait_for_calls(round).await;
        assert_soon(committed);
        settled(&*db.store()).await?;
    }
    assert!(recorder.calls().iter().all(|call| call.path == Path::Cold));
    delivered_once(db, &outbox, &recorder, &events).await
}

/// An event that is reported is looked up and handed over with the payload that memory holds; a second report of it says nothing
/// new.
pub(super) async fn a_reported_commit_is_delivered_from_memory<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db, &recorder).start().await?;
    let mut all = vec![first_delivered(db, &outbox, &recorder).await?];
    // The cold path, which looks after 5 ms, may come first where the machine is slow; that it always does would be no
    // accident.
    for _ in 0..50 {
        let events = events(10)?;
        let mut transaction = db.begin().await?;
        let written = outbox.write_all(&mut transaction, events.clone()).await?;
        assert!(written.ids().eq(events.iter().map(Envelope::id)));
        transaction.commit().await?;
        let committed = Instant::now();
        outbox.notify_committed(written.clone());
        outbox.notify_committed(written);
        all.extend(events);
        recorder.wait_for_calls(all.len()).await;
        assert_soon(committed);
        if recorder.calls().iter().any(|call| call.path == Path::Hot) {
            return delivered_once(db, &outbox, &recorder, &all).await;
        }
    }
    Err(format!("none of {} events was delivered from memory: {:?}", all.len(), outbox.stats()).into())
}

/// The guard reports its own commit.
pub(super) async fn a_guarded_commit_is_delivered_from_memory<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db, &recorder).start().await?;
    let mut events = vec![first_delivered(db, &outbox, &recorder).await?];
    for round in 0..10 {
        let mut transaction = outbox.begin(db.source()).await?;
        for _ in 0..2 {
            events.push(event()?);
            outbox.write(&mut transaction, events[events.len() - 1].clone()).await?;
        }
        transaction.commit().await?;
        let committed = Instant::now();
        recorder.wait_for_calls(3 + 2 * round).await;
        assert_soon(committed);
    }
    assert!(recorder.calls().iter().any(|call| call.path == Path::Hot), "{:?}", outbox.stats());
    delivered_once(db, &outbox, &recorder, &events).await
}

/// From the moment `start` has returned, a commit that is reported is a reason to deliver, by either path.
pub(super) async fn a_commit_right_after_the_start_is_delivered_soon<H: Harness>(db: &Db<H>) -> Outcome {
    // Several times: it is a matter of how far the outbox's tasks have come.
    for _ in 0..10 {
        let recorder = Recorder::new();
        let event = event()?;
        let outbox = unpolled(db, &recorder).start().await?;
        write_guarded(db, &outbox, std::slice::from_ref(&event)).await?;
        let committed = Instant::now();
        recorder.wait_for_calls(1).await;
        assert_soon(committed);
        delivered_once(db, &outbox, &recorder, &[event]).await?;
    }
    Ok(())
}

/// Written while this node was a standby, committed when it delivers and has polled the table already: what the write
/// announced is forgotten by then, so the report of the commit is what makes it look again.
pub(super) async fn a_guarded_commit_begun_before_the_term_is_delivered_soon<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let owner = unpolled(db, &recorder).start().await?;
    let standby = unpolled(db, &recorder).start().await?;
    let event = event()?;
    let mut guarded = standby.begin(db.source()).await?;
    standby.write(&mut guarded, event.clone()).await?;
    owner.shutdown().await;
    assert!(standby.wait_for_role(|role| matches!(role, Role::Active { .. })).await);
    let first = first_delivered(db, &standby, &recorder).await?;
    guarded.commit().await?;
    let committed = Instant::now();
    recorder.wait_for_calls(2).await;
    assert_soon(committed);
    delivered_once(db, &standby, &recorder, &[first, event]).await
}

/// Events that were committed before are looked at as soon as the outbox starts, not when it next polls.
pub(super) async fn a_backlog_is_delivered_right_after_the_start<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let events = events(3)?;
    db.write(events.clone()).await?;
    let outbox = unpolled(db, &recorder).start().await?;
    let started = Instant::now();
    recorder.wait_for_calls(3).await;
    assert_soon(started);
    delivered_once(db, &outbox, &recorder, &events).await
}

/// Rolled back or dropped, guarded or not: the events never existed.
pub(super) async fn rolled_back_events_are_never_delivered<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.start().await?;
    let mut own = db.begin().await?;
    outbox.write(&mut own, event()?).await?;
    own.rollback().await?;
    let mut own = db.begin().await?;
    let receipt = outbox.write(&mut own, event()?).await?;
    drop((own, receipt));
    let mut guarded = outbox.begin(db.source()).await?;
    outbox.write(&mut guarded, event()?).await?;
    guarded.rollback().await?;
    let mut guarded = outbox.begin(db.source()).await?;
    outbox.write(&mut guarded, event()?).await?;
    drop(guarded);

    // Whatever could be delivered of them would be by the time this one is.
    let last = event()?;
    write(db, &outbox, std::slice::from_ref(&last)).await?;
    recorder.wait_for_calls(1).await;
    delivered_once(db, &outbox, &recorder, std::slice::from_ref(&last)).await?;
    assert_eq!(recorder.calls().len(), 1);
    assert_eq!(db.store().counts().await?.done, 1);
    Ok(())
}

/// A transaction that wrote first and commits last, after later rows were delivered and settled.
pub(super) async fn a_late_commit_is_delivered<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db, &recorder).start().await?;
    let events = events(4)?;
    let mut late = db.begin().await?;
    outbox.write(&mut late, events[0].clone()).await?;
    write(db, &outbox, &events[1..]).await?;
    recorder.wait_for_calls(3).await;
    settled(&*db.store()).await?;
    late.commit().await?;
    let committed = Instant::now();
    recorder.wait_for_calls(4).await;
    assert_soon(committed);
    delivered_once(db, &outbox, &recorder, &events).await
}

/// A delayed event skips the hot path, waits for its time and is woken for it.
pub(super) async fn a_delayed_event_is_not_early<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = unpolled(db, &recorder).start().await?;
    let delay = Duration::from_millis(400);
    let began = Instant::now();
    let events = [Envelope::builder("test.delayed").payload_json("{}").deliver_after(delay).build()?, event()?];
    let written = write(db, &outbox, &events).await?;
    outbox.notify_committed(written);
    recorder.wait_for_calls(2).await;
    let calls = recorder.calls();
    assert_eq!(
        (&calls[0].id, &calls[1].id),
        (events[1].id(), events[0].id()),
        "the one that need not wait comes first"
    );
    let waited = calls[1].began - began;
    // The delay is the database's; a little for the difference between its clock and this timer.
    assert!(waited > delay - Duration::from_millis(50), "it came after {waited:?}");
    assert!(waited < delay + super::setting::SOON, "it came after {waited:?}");
    assert_eq!(calls[1].path, Path::Cold);
    delivered_once(db, &outbox, &recorder, &events).await
}

/// A plain INSERT elsewhere gives no hint at all and is delivered by the next poll.
pub(super) async fn a_row_of_another_process_is_found_by_polling<H: Harness>(db: &Db<H>) -> Outcome {
    let recorder = Recorder::new();
    let outbox = eager(db.store(), &recorder)?.start().await?;
    db.insert_three_columns("from-elsewhere", "order.placed", r#"{"a":  1}"#).await?;
    let inserted = Instant::now();
    recorder.wait_for_calls(1).await;
    assert_soon(inserted);
    drained(db, &outbox).await?;
    let calls = recorder.calls();
    assert_eq!((calls.len(), calls[0].id.as_str()), (1, "from-elsewhere"));
    assert_eq!((calls[0].path, calls[0].payload.as_json()), (Path::Cold, Some(r#"{"a":  1}"#)));
    let event = Envelope::builder("order.placed").id("from-elsewhere").payload_json(r#"{"a":  1}"#).build()?;
    db.observed(&[event], calls).await?.check()?;
    Ok(())
}
