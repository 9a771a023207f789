use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, InvalidEvent};
use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::Change;
use pillarbox_core::write::{Finish, Skipped, WriteError, insert};
use pillarbox_engine::run::Outbox;
use tokio::time::timeout;

use crate::Harness;
use crate::events::{HOUR, all, event, record, retry_in, seqs_of, settle, settle_all, verdict};
use crate::nodes::owner;
use crate::run::{Db, Outcome, unrefused};

/// An event with this unique key.
fn unique(key: &str) -> Result<Envelope, InvalidEvent> {
    Envelope::builder("test.unique").unique_key(key).payload_json("{}").build()
}

fn dead() -> Change {
    Change::Dead { attempts: 1, error: "never".to_owned() }
}

/// The rows that a write in a transaction of its own has written, and those that it has skipped.
async fn write<H: Harness>(
    db: &Db<H>,
    outbox: &Outbox,
    events: Vec<Envelope>,
) -> Result<(Vec<i64>, Vec<Skipped>), BoxError> {
    let mut transaction = db.begin().await?;
    let written = outbox.write_all(&mut transaction, events).await?;
    transaction.commit().await?;
    Ok((written.rows().1.to_vec(), written.skipped().to_vec()))
}

/// Settles one row, whatever has become of it before.
async fn end<H: Harness>(db: &Db<H>, node: &NodeId, seq: i64, change: Change) -> Outcome {
    let store = db.store();
    let attempts = store.record(seq).await?.map_or(Ok(0), |record| record.attempts.try_into())?;
    let refused = settle(&*store, node, Fence::Table, &[verdict(seq, attempts, change)]).await?;
    assert!(refused.is_empty(), "{refused:?}");
    Ok(())
}

/// The second write says which row is pending, in the same transaction, after it, and while that one waits for another attempt.
pub(super) async fn insert_unique_writes_nothing_while_one_is_pending<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, outbox) = (db.store(), Outbox::writer_only(db.store()).start().await?);
    let node = owner(&*store).await?;
    let (first, second) = (unique("report-7")?, unique("report-7")?);
    let mut transaction = db.begin().await?;
    let written = outbox.write(&mut transaction, first.clone()).await?;
    assert_eq!((written.id(), written.len(), written.skipped()), (Some(first.id()), 1, &[][..]));
    let seq = written.rows().1[0];
    let skipped = Skipped { event_id: second.id().clone(), handler: None, pending: Some(seq) };
    let written = outbox.write(&mut transaction, second.clone()).await?;
    assert_eq!((written.id(), written.is_empty(), written.skipped()), (None, true, std::slice::from_ref(&skipped)));
    transaction.commit().await?;

    assert_eq!(write(db, &outbox, vec![second.clone()]).await?, (vec![], vec![skipped.clone()]));
    for change in [retry_in(HOUR), Change::Retry { attempts: 1, delay: HOUR, error: Some("late".to_owned()) }] {
        end(db, &node, seq, change).await?;
        assert_eq!(write(db, &outbox, vec![second.clone()]).await?, (vec![], vec![skipped.clone()]));
    }
    assert_eq!(record(db, &first).await?.unique_key.as_deref(), Some("report-7"));
    assert_eq!(store.records(second.id().as_str()).await?, []);
    assert_eq!(store.counts().await?.pending(), 1);
    outbox.shutdown().await;
    Ok(())
}

/// However it has ended, and whoever has ended it; also if nobody knew of the key.
pub(super) async fn insert_unique_writes_again_once_the_one_before_has_ended<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, outbox) = (db.store(), Outbox::writer_only(db.store()).start().await?);
    let node = owner(&*store).await?;
    let rescued = Change::Rescued { attempts: 1, error: "another way".to_owned() };
    let mut ended = 0;
    for change in [Change::Done, dead(), rescued, Change::Remove] {
        let event = unique("again")?;
        let (seqs, skipped) = write(db, &outbox, vec![event.clone()]).await?;
        assert_eq!((seqs.len(), skipped), (1, vec![]), "before {change:?}");
        end(db, &node, seqs[0], change.clone()).await?;
        ended += usize::from(change != Change::Remove);
    }
    let (last, _) = write(db, &outbox, vec![unique("again")?]).await?;
    let counts = store.counts().await?;
    assert_eq!((counts.new, counts.done + counts.dead), (1, ended as u64));
    settle_all(&*store, &node, &last, &dead()).await?;
    assert_eq!(store.discard(&last).await?, last);
    assert_eq!(write(db, &outbox, vec![unique("again")?]).await?.0.len(), 1, "after a discard");
    outbox.shutdown().await;
    Ok(())
}

/// A DEAD event has its key until another one takes it: replayed, it is pending with it. One whose key was taken is replayed all the same.
pub(super) async fn insert_unique_leaves_a_replayed_event_its_key<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, outbox) = (db.store(), Outbox::writer_only(db.store()).start().await?);
    let node = owner(&*store).await?;
    let first = unique("k")?;
    let (seqs, _) = write(db, &outbox, vec![first.clone()]).await?;
    settle_all(&*store, &node, &seqs, &dead()).await?;
    assert_eq!(store.replay(&seqs).await?, seqs);
    let (none, skipped) = write(db, &outbox, vec![unique("k")?]).await?;
    assert_eq!((none, skipped[0].pending), (vec![], Some(seqs[0])));

    settle_all(&*store, &node, &seqs, &dead()).await?;
    let (others, _) = write(db, &outbox, vec![unique("k")?]).await?;
    assert_eq!(others.len(), 1, "it was DEAD");
    assert_eq!(record(db, &first).await?.unique_key, None);
    assert_eq!(store.replay(&seqs).await?, seqs);
    assert_eq!(seqs_of(&store.fetch(&all()).await?), [seqs[0], others[0]]);
    let (_, skipped) = write(db, &outbox, vec![unique("k")?]).await?;
    assert_eq!(skipped[0].pending, Some(others[0]));
    outbox.shutdown().await;
    Ok(())
}

/// Keys that a collation would take for the same are different, and those of different handlers are.
pub(super) async fn insert_unique_knows_keys_to_the_byte_and_by_handler<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let outbox = Outbox::writer_only(db.store()).handled_by("test.named", ["mailer", "ledger"]).start().await?;
    let node = owner(&*store).await?;
    let longest = "🦀".repeat(255);
    let keys = ["a", "a ", " a", "A", "á", "a\u{301}", "%", "_", "''\\", &longest];
    for key in keys {
        let event = unique(key)?;
        assert_eq!(write(db, &outbox, vec![event.clone()]).await?.0.len(), 1, "{key:?}");
        assert_eq!(record(db, &event).await?.unique_key.as_deref(), Some(key));
        assert_eq!(write(db, &outbox, vec![unique(key)?]).await?.1.len(), 1, "{key:?} again");
    }

    let named = || Envelope::builder("test.named").unique_key("a").payload_json("{}").build();
    let (seqs, skipped) = write(db, &outbox, vec![named()?]).await?;
    assert_eq!((seqs.len(), skipped.len()), (2, 0), "of no handler is another row");
    settle_all(&*store, &node, &seqs[..1], &Change::Done).await?;
    let second = named()?;
    let (written, skipped) = write(db, &outbox, vec![second.clone()]).await?;
    let pending = Skipped { event_id: second.id().clone(), handler: Some("ledger".into()), pending: Some(seqs[1]) };
    assert_eq!((written.len(), skipped), (1, vec![pending]), "for the handler that is done with the first");
    let record = store.record(written[0]).await?.ok_or("it was not written")?;
    assert_eq!((record.handler.as_deref(), record.event_id.as_str()), (Some("mailer"), second.id().as_str()));
    outbox.shutdown().await;
    Ok(())
}

/// Events with keys and without stand in the table as they were written; of those with the same key, the first.
pub(super) async fn insert_unique_writes_a_batch_in_order<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let batch =
        vec![event()?, event()?, unique("a")?, unique("b")?, unique("a")?, event()?, event()?, unique("b")?, event()?];
    let seqs = db.write(batch.clone()).await?;
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let fetched = store.fetch(&all()).await?;
    assert_eq!(seqs_of(&fetched), seqs);
    let ids: Vec<_> = fetched.rows.iter().map(|row| row.id().event_id).collect();
    let written: Vec<_> = [0, 1, 2, 3, 5, 6, 8].map(|place: usize| batch[place].id().clone()).into();
    assert_eq!(ids, written);
    Ok(())
}

/// A row that was rolled back has no key.
pub(super) async fn insert_unique_writes_after_a_rollback<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, outbox) = (db.store(), Outbox::writer_only(db.store()).start().await?);
    let node = owner(&*store).await?;
    for before in 0..3_usize {
        let mut transaction = db.begin().await?;
        assert_eq!(outbox.write(&mut transaction, unique("k")?).await?.len(), 1, "{before} have ended before");
        transaction.rollback().await?;
        let (seqs, _) = write(db, &outbox, vec![unique("k")?]).await?;
        assert_eq!(seqs.len(), 1, "{before} have ended before");
        settle_all(&*store, &node, &seqs, &Change::Done).await?;
    }
    outbox.shutdown().await;
    Ok(())
}

/// The second writer waits for the first, and then knows: nothing is written after a commit, and all after a rollback.
pub(super) async fn insert_unique_waits_for_an_open_transaction<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    for commits in [true, false] {
        let key = if commits { "committed" } else { "rolled back" };
        let (mut first, mut second) = (db.begin().await?, db.begin().await?);
        assert_eq!(insert(&*store, &mut first, vec![unique(key)?]).await?.len(), 1);
        assert_eq!(insert(&*store, &mut second, vec![unique("of another key")?]).await?.len(), 1, "it does not wait");
        let written = {
            let mut write = pin!(insert(&*store, &mut second, vec![unique(key)?]));
            assert!(timeout(Duration::from_millis(100), &mut write).await.is_err(), "it has to wait");
            if commits {
                first.commit().await?;
            } else {
                first.rollback().await?;
            }
            write.await?
        };
        assert_eq!(written.is_empty(), commits);
        second.rollback().await?;
    }
    let fetched = store.fetch(&all()).await?;
    assert_eq!(fetched.rows.len(), 1, "the one that was committed");
    Ok(())
}

/// Of many that write at once one does, and again once that one has ended. A database may refuse a writer instead of letting it wait.
pub(super) async fn insert_unique_concurrently_writes_one<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    for round in 0..3 {
        let writes = (0..8).map(async |_| db.write(vec![unique("k")?, event()?]).await);
        let written = unrefused(db, join_all(writes).await)?;
        assert!(
            written.iter().all(|seqs| matches!(seqs.len(), 1 | 2)),
            "the other event is always written: {written:?}"
        );
        let written = written.concat();
        let mut pending = Vec::new();
        for seq in &written {
            let record = store.record(*seq).await?.ok_or("a row is gone")?;
            pending.extend((record.unique_key.as_deref() == Some("k")).then_some(*seq));
        }
        assert_eq!(pending.len(), 1, "in round {round}, of {written:?}");
        settle_all(&*store, &node, &written, &Change::Done).await?;
    }
    Ok(())
}

/// A transaction that has read before sees the table as it was then, where the isolation level is such; the row with the key has been written
/// and has ended since.
pub(super) async fn insert_unique_writes_again_though_the_transaction_has_seen_less<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    for (key, before) in [("new", false), ("taken over", true)] {
        if before {
            let seqs = db.write(vec![unique(key)?]).await?;
            settle_all(&*store, &node, &seqs, &Change::Done).await?;
        }
        let mut transaction = db.begin().await?;
        let look = format!("SELECT count(*) FROM {}", store.info().table);
        H::execute_in(transaction.inner_mut(), &look).await?;
        let seqs = db.write(vec![unique(key)?]).await?;
        settle_all(&*store, &node, &seqs, &Change::Done).await?;
        assert_eq!(insert(&*store, &mut transaction, vec![unique(key)?]).await?.len(), 1, "{key}");
        transaction.commit().await?;
        assert!(db.write(vec![unique(key)?]).await?.is_empty(), "{key}: it is pending");
    }
    Ok(())
}

/// The row that is pending is delivered and settled while a writer that found it is open, and that writer changes nothing of it.
pub(super) async fn insert_unique_keeps_nobody_from_settling_the_pending_row<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let seqs = db.write(vec![unique("k")?]).await?;
    let mut transaction = db.begin().await?;
    assert!(insert(&*store, &mut transaction, vec![unique("k")?]).await?.is_empty());
    let settled = timeout(Duration::from_secs(10), settle_all(&*store, &node, &seqs, &Change::Done)).await;
    settled.map_err(|_| "the verdict waits for the writer")??;
    transaction.commit().await?;
    assert_eq!(store.counts().await?.done, 1);
    Ok(())
}

/// An id that another event has is an error, as without a key, and changes nothing.
pub(super) async fn insert_unique_refuses_an_id_that_is_taken<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let taken = event()?;
    db.write(vec![taken.clone()]).await?;
    let again = Envelope::builder("test.unique").id(taken.id().as_str()).unique_key("k").payload_json("{}").build()?;
    let mut transaction = db.begin().await?;
    let refused = insert(&*store, &mut transaction, vec![again]).await;
    assert!(matches!(refused, Err(WriteError::Database(_) | WriteError::Duplicate { .. })), "{refused:?}");
    transaction.rollback().await?;
    assert_eq!(record(db, &taken).await?.unique_key, None);
    assert_eq!(store.counts().await?.new, 1);
    Ok(())
}

/// A write that fails takes the key of no event that has ended, though its transaction goes on and commits.
pub(super) async fn insert_unique_leaves_an_ended_event_its_key_if_it_fails<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let (taken, ended) = (event()?, unique("k")?);
    db.write(vec![taken.clone()]).await?;
    let seqs = db.write(vec![ended.clone()]).await?;
    settle_all(&*store, &node, &seqs, &dead()).await?;
    let again = Envelope::builder("test.unique").id(taken.id().as_str()).unique_key("k").payload_json("{}").build()?;
    let mut transaction = db.begin().await?;
    let refused = insert(&*store, &mut transaction, vec![again]).await;
    assert!(matches!(refused, Err(WriteError::Database(_) | WriteError::Duplicate { .. })), "{refused:?}");
    // Where the database rolls all of it back instead, that is as good.
    let _ = transaction.commit().await;
    assert_eq!(record(db, &ended).await?.unique_key.as_deref(), Some("k"));
    Ok(())
}
