use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::row::Change;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Finish, Probe, insert};

use crate::Harness;
use crate::events::{Owned, event, events, owned, settle_all};
use crate::run::{Db, Outcome};

/// Each row by its event and its handler, whatever its state; nothing for a place that is empty.
pub(super) async fn identify_names_the_rows_that_are_there<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, written, seqs } = owned(db, events(4)?).await?;
    db.set_handler(written[1].id().as_str(), "mail").await?;
    settle_all(&*store, &node, &seqs[..1], &Change::Done).await?;
    settle_all(&*store, &node, &seqs[2..3], &Change::Remove).await?;
    let asked = [seqs.clone(), vec![seqs[3] + 1, -1]].concat();
    let mut found = store.identify(&asked).await?;
    found.sort_unstable_by_key(|row| row.seq);
    let row = |index: usize, handler: Option<&str>| RowId {
        seq: seqs[index],
        event_id: EventId::from_stored(written[index].id().as_str()),
        handler: handler.map(Box::from),
    };
    assert_eq!(found, [row(0, None), row(1, Some("mail")), row(3, None)]);
    assert!(store.identify(&[]).await?.is_empty());
    Ok(())
}

fn ids(seqs: &[i64], events: &[Envelope]) -> Vec<RowId> {
    let id = |(seq, event): (&i64, &Envelope)| RowId { seq: *seq, event_id: event.id().clone(), handler: None };
    seqs.iter().zip(events).map(id).collect()
}

/// The rows of an open transaction are not there, nor are those that it has rolled back.
pub(super) async fn identify_leaves_out_what_is_not_committed<H: Harness>(db: &Db<H>) -> Outcome {
    let (store, committed) = (db.store(), events(1)?);
    let seqs = db.write(committed.clone()).await?;
    let mut open = db.begin().await?;
    let uncommitted = insert(&*store, &mut open, vec![event()?]).await?;
    let asked = [&seqs[..], &uncommitted[..]].concat();
    assert_eq!(store.identify(&asked).await?, ids(&seqs, &committed));
    open.rollback().await?;
    assert_eq!(store.identify(&asked).await?, ids(&seqs, &committed));
    Ok(())
}

/// Rows that the transaction has rolled back to a savepoint are not there, nor is a number that no row was given; the question is
/// asked in the transaction that commits.
pub(super) async fn identify_sql_finds_what_the_transaction_has_written<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let (before, undone, after) = (events(3)?, events(2)?, events(1)?);
    let mut transaction = db.begin().await?;
    let mut kept = insert(&*store, &mut transaction, before.clone()).await?;
    H::savepoint(transaction.inner_mut(), "undone").await?;
    let gone = insert(&*store, &mut transaction, undone).await?;
    H::rollback_to(transaction.inner_mut(), "undone").await?;
    kept.extend(insert(&*store, &mut transaction, after.clone()).await?);
    let mut rows = [&kept[..], &gone[..], &[i64::MAX]].concat();
    rows.sort_unstable();
    rows.dedup();
    let sql = store.identify_sql(&rows);
    assert_eq!(sql.is_some(), H::CAPABILITIES.sql);
    let mut found = transaction.commit_verified(&Probe { rows, sql }).await?;
    found.sort_unstable_by_key(|row| row.seq);
    assert_eq!(found, ids(&kept, &[before, after].concat()));
    assert_eq!(store.counts().await?.new, 4, "and it has committed");
    Ok(())
}
