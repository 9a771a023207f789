use std::time::Duration;

use pillarbox_core::error::{BoxError, StoreErrorKind};
use pillarbox_core::event::Envelope;
use pillarbox_core::row::Change;
use pillarbox_core::store::{Purge, Purgeable, Purged};

use crate::Harness;
use crate::events::{HOUR, Owned, events, owned, settle_all};
use crate::nodes::{owner, peer};
use crate::run::{Db, Outcome};

/// Old rows are half an hour old; this is how old they have to be.
const OLD: Duration = Duration::from_secs(1200);
const AGE: i64 = 1800;

/// The age of a row counts from its end, not from when it was written; rows that ended since are kept.
pub(in crate::conformance) async fn purge_deletes_ended_rows_older_than_asked<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let dead = Change::Dead { attempts: 0, error: "no".to_owned() };
    let old = events(8)?;
    let seqs = db.write(old.clone()).await?;
    settle_all(&*store, &node, &seqs[..2], &Change::Done).await?;
    settle_all(&*store, &node, &seqs[4..6], &dead).await?;
    db.age(AGE).await?;
    // Written long ago, and ended just now.
    settle_all(&*store, &node, &seqs[2..4], &Change::Done).await?;
    settle_all(&*store, &node, &seqs[6..], &dead).await?;
    let young = events(2)?;
    let young_seqs = db.write(young.clone()).await?;
    settle_all(&*store, &node, &young_seqs[..1], &Change::Done).await?;
    settle_all(&*store, &node, &young_seqs[1..], &dead).await?;

    let longer_ago = Purge { older_than: HOUR, ..step(Purgeable::Done, 0, 100) };
    assert_eq!(store.purge(&longer_ago).await?.removed, 0, "nothing is that old");
    assert_eq!(store.purge(&step(Purgeable::Done, 0, 100)).await?, Purged { removed: 2, next: None });
    assert_eq!(present(db, &old).await?, [false, false, true, true, true, true, true, true]);
    assert_eq!(store.purge(&step(Purgeable::Dead, 0, 100)).await?, Purged { removed: 2, next: None });
    assert_eq!(present(db, &old).await?, [false, false, true, true, false, false, true, true]);
    assert_eq!(present(db, &young).await?, [true, true]);

    let at_once = Purge { older_than: Duration::ZERO, ..step(Purgeable::Done, 0, 100) };
    assert_eq!(store.purge(&at_once).await?.removed, 3, "all that are DONE");
    let counts = store.counts().await?;
    assert_eq!((counts.done, counts.dead), (0, 3));
    Ok(())
}

/// Rows that another program has made DONE or DEAD, as those of an adopted table are, need not say when.
pub(in crate::conformance) async fn purge_takes_the_creation_where_no_end_is_recorded<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    let written = events(4)?;
    db.write(written.clone()).await?;
    let table = db.table("event");
    db.age(AGE).await?;
    let ended = |event: &Envelope, status: i16| {
        format!("UPDATE {table} SET status = {status}, done_at = NULL WHERE event_id = '{}'", event.id())
    };
    db.execute(&ended(&written[0], 1)).await?;
    db.execute(&ended(&written[1], 3)).await?;
    let young = events(1)?;
    db.write(young.clone()).await?;
    db.execute(&ended(&young[0], 3)).await?;
    for what in [Purgeable::Done, Purgeable::Dead] {
        let longer_ago = Purge { older_than: HOUR, ..step(what, 0, 100) };
        assert_eq!(store.purge(&longer_ago).await?.removed, 0, "nothing was created that long ago");
        assert_eq!(store.purge(&step(what, 0, 100)).await?.removed, 1, "{what:?}");
    }
    assert_eq!(present(db, &written).await?, [false, false, true, true]);
    assert_eq!(present(db, &young).await?, [true]);
    Ok(())
}

/// A purge of one key takes the ordering key, or the aggregate id where there is none, and keeps what has neither.
pub(in crate::conformance) async fn purge_of_a_key_keeps_the_rows_of_others<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let event = || Envelope::builder("placed").payload_json("{}");
    let written = vec![
        event().key("o'1").build()?,
        event().aggregate("order", "o'1").build()?,
        event().aggregate("order", "o'1").key("another").build()?,
        event().build()?,
        event().key("O'1").build()?,
    ];
    let seqs = db.write(written.clone()).await?;
    settle_all(&*store, &node, &seqs, &Change::Done).await?;
    let of_key = Purge { key: Some("o'1".to_owned()), ..Purge::new(Purgeable::Done, Duration::ZERO, 2) };
    let first = store.purge(&of_key).await?;
    assert_eq!(first, Purged { removed: 2, next: Some(seqs[1]) }, "a step looks at two rows of any key");
    let rest = Purge { above: seqs[1], ..of_key };
    assert_eq!(store.purge(&rest).await?, Purged { removed: 0, next: Some(seqs[3]) });
    assert_eq!(present(db, &written).await?, [false, false, true, true, true]);
    Ok(())
}

/// However old, what has not ended stays, and so does what ended in the other way; unless everything is to go.
pub(in crate::conformance) async fn purge_keeps_pending_rows_and_other_states<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(4)?).await?;
    settle_all(&*store, &node, &seqs[1..2], &Change::Retry { attempts: 1, delay: HOUR, error: None }).await?;
    settle_all(&*store, &node, &seqs[2..3], &Change::Done).await?;
    settle_all(&*store, &node, &seqs[3..], &Change::Dead { attempts: 1, error: "no".to_owned() }).await?;
    db.age(AGE).await?;
    assert_eq!(store.purge(&step(Purgeable::Dead, 0, 100)).await?.removed, 1);
    assert_eq!(present(db, &written).await?, [true, true, true, false]);
    assert_eq!(store.purge(&step(Purgeable::Done, 0, 100)).await?.removed, 1);
    assert_eq!(present(db, &written).await?, [true, true, false, false]);
    for what in [Purgeable::Done, Purgeable::Dead] {
        assert_eq!(store.purge(&step(what, 0, 100)).await?, Purged { removed: 0, next: None });
    }

    store.leave(&node).await?;
    let young = events(1)?;
    db.write(young.clone()).await?;
    assert_eq!(store.purge(&step(Purgeable::All, 0, 100)).await?, Purged { removed: 2, next: None });
    assert_eq!(present(db, &written).await?, [false; 4]);
    assert_eq!(present(db, &young).await?, [true]);
    Ok(())
}

/// A step looks at so many rows and no more, and says where the next one begins: behind the rows it kept as well as those
/// it deleted. It is over where all that it looks at is young, and at the end of the table.
pub(in crate::conformance) async fn purge_goes_on_where_it_stopped_and_says_when_it_is_over<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    assert_eq!(store.purge(&step(Purgeable::Done, 0, 4)).await?, Purged { removed: 0, next: None }, "an empty table");
    let node = owner(&*store).await?;
    let seqs = db.write(events(10)?).await?;
    let done: Vec<i64> = [0, 2, 4, 5, 6, 7, 9].iter().map(|index| seqs[*index]).collect();
    settle_all(&*store, &node, &done, &Change::Done).await?;
    db.age(AGE).await?;
    let steps = [
        (0, Purged { removed: 2, next: Some(seqs[3]) }),
        (seqs[3], Purged { removed: 4, next: Some(seqs[7]) }),
        (seqs[7], Purged { removed: 1, next: None }),
    ];
    for (above, purged) in steps {
        assert_eq!(store.purge(&step(Purgeable::Done, above, 4)).await?, purged, "above {above}");
    }
    let from_the_start = store.purge(&step(Purgeable::Done, 0, 4)).await?;
    assert_eq!(from_the_start, Purged { removed: 0, next: None }, "three rows are left, none of them DONE");

    // Behind a step of young rows there are hardly any older ones.
    let young = db.write(events(6)?).await?;
    settle_all(&*store, &node, &young, &Change::Done).await?;
    for (above, next) in [(0, Some(young[0])), (young[0], None)] {
        assert_eq!(store.purge(&step(Purgeable::Done, above, 4)).await?, Purged { removed: 0, next });
    }
    assert_eq!(store.counts().await?.done, 6);
    Ok(())
}

/// A clock was a day ahead for a while, that of one writer or of the database: what was written behind these rows goes all the same, even where
/// they fill a step.
pub(in crate::conformance) async fn purge_goes_on_behind_rows_that_were_stamped_ahead<H: Harness>(
    db: &Db<H>,
) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let ahead = db.write(events(5)?).await?;
    settle_all(&*store, &node, &ahead, &Change::Done).await?;
    db.age(-24 * 3600 - AGE).await?;
    let seqs = db.write(events(11)?).await?;
    settle_all(&*store, &node, &seqs, &Change::Done).await?;
    db.age_from(seqs[0], AGE).await?;
    let mut purge = Purge::new(Purgeable::Done, OLD, 4);
    let mut removed = Vec::new();
    loop {
        let step = store.purge(&purge).await?;
        removed.push(step.removed);
        let Some(next) = step.next else { break };
        purge.above = next;
    }
    assert_eq!(removed, [0, 3, 4, 4, 0]);
    assert_eq!(store.counts().await?.done, 5);
    Ok(())
}

/// Rows that nobody has delivered are not to be thrown away under a node that will, in any mode; a node whose lease has
/// ended, or that has left, is in nobody's way. What has ended may go at any time.
pub(in crate::conformance) async fn purge_of_everything_stops_while_a_node_lives<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    db.write(events(3)?).await?;
    db.age(AGE).await?;
    let everything = step(Purgeable::All, 0, 100);
    let [first, second] = [peer(&*store).await?, peer(&*store).await?];
    for remaining in [&first, &second] {
        let error = store.purge(&everything).await.err().ok_or("rows were purged under a node that delivers")?;
        assert_eq!(error.kind(), StoreErrorKind::IncompatibleMode, "{error}");
        assert!(!error.is_temporary(), "{error}");
        let text = error.to_string();
        assert!([&first, &second].iter().any(|node| text.contains(node.as_str())), "it names a node: {text}");
        assert_eq!(store.purge(&step(Purgeable::Done, 0, 100)).await?.removed, 0, "what has ended may go");
        assert_eq!(store.counts().await?.new, 3);
        if remaining == &first { store.leave(&first).await? } else { db.expire(&second).await? }
    }
    assert_eq!(store.purge(&everything).await?, Purged { removed: 3, next: None });
    Ok(())
}

fn step(what: Purgeable, above: i64, limit: usize) -> Purge {
    Purge { above, ..Purge::new(what, OLD, limit) }
}

async fn present<H: Harness>(db: &Db<H>, events: &[Envelope]) -> Result<Vec<bool>, BoxError> {
    let mut present = Vec::new();
    for event in events {
        present.push(db.columns(event.id().as_str()).await?.is_some());
    }
    Ok(present)
}
