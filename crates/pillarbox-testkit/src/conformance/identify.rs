use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::row::Change;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{Connection as _, Finish, Insert, NewRow, Probe, insert};

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
    let mut found = transaction.commit_verified(&Probe { rows, sql, is_of_tally: false }).await?;
    found.sort_unstable_by_key(|row| row.seq);
    assert_eq!(found, ids(&kept, &[before, after].concat()));
    assert_eq!(store.counts().await?.new, 4, "and it has committed");
    Ok(())
}

/// A write that is rolled back to a savepoint is taken from the tally, one in a savepoint that is released is not; nor does a tally
/// answer for a transaction that has deleted an event, for another one on its connection, or for no transaction.
pub(super) async fn a_tally_tells_that_all_writes_stand<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let tally = store.tally().ok_or("the store declares that it has one")?;
    let numbers = [i64::MIN, -7, i64::MAX, 1];
    let table = [
        // Of each write the number of rows, and the statements before it and after it; at the end the writes that stand.
        (vec![(1, None, None)], vec![0]),
        (vec![(1, None, None), (300, None, None), (1, None, None)], vec![0, 1, 2]),
        (vec![(1, None, None), (1, Some("SAVEPOINT a"), Some("RELEASE SAVEPOINT a")), (2, None, None)], vec![0, 1, 2]),
        (vec![(1, Some("SAVEPOINT a"), Some("ROLLBACK TO SAVEPOINT a")), (1, None, None)], vec![1]),
        (vec![(2, None, Some("SAVEPOINT a")), (3, None, Some("ROLLBACK TO SAVEPOINT a"))], vec![0]),
        (
            vec![
                (1, None, Some("SAVEPOINT a")),
                (1, None, Some("SAVEPOINT b")),
                (1, None, Some("RELEASE SAVEPOINT b")),
                (1, None, Some("ROLLBACK TO SAVEPOINT a")),
            ],
            vec![0],
        ),
    ];
    for (writes, standing) in table {
        // All that were written, which is what a guard knows; and those that stand.
        let sum = |writes: &[usize]| writes.iter().fold(0, |sum, write| sum ^ numbers[*write]);
        let all: Vec<usize> = (0..writes.len()).collect();
        for asked in [&all, &standing] {
            let mut transaction = db.begin().await?;
            for ((rows, before, after), number) in writes.iter().zip(numbers) {
                if let Some(statement) = before {
                    H::execute_in(transaction.inner_mut(), statement).await?;
                }
                let rows: Vec<NewRow> = events(*rows)?.into_iter().map(NewRow::new).collect();
                let insert = Insert { rows: &rows, statements: tally.insert(&rows, number) };
                let seqs = transaction.insert(&insert).await.map_err(|error| format!("{error:?}"))?;
                assert!(seqs.len() == rows.len() && seqs.is_sorted(), "{seqs:?}");
                if let Some(statement) = after {
                    H::execute_in(transaction.inner_mut(), statement).await?;
                }
            }
            let probe = Probe { rows: Vec::new(), sql: Some(tally.sql(sum(asked))), is_of_tally: true };
            let answer = transaction.commit_verified(&probe).await.map_err(|error| format!("{error:?}"))?;
            assert_eq!(answer.len(), usize::from(*asked == standing), "{writes:?} {asked:?}");
        }
    }
    // The statement after the write, which has the event's id in the place of `{id}`. A deletion counts in its own transaction alone.
    let delete = format!("DELETE FROM {} WHERE event_id = '{{id}}'", db.table("event"));
    for (after, stands) in [
        (&*delete, false),
        ("SELECT 1", true),
        ("ROLLBACK AND CHAIN", false),
        ("COMMIT AND CHAIN", false),
        ("SELECT 1", true),
    ] {
        let rows = [NewRow::new(event()?)];
        let mut transaction = db.begin().await?;
        let insert = Insert { rows: &rows, statements: tally.insert(&rows, 5) };
        transaction.insert(&insert).await.map_err(|error| format!("{error:?}"))?;
        H::execute_in(transaction.inner_mut(), &after.replace("{id}", rows[0].event_id())).await?;
        let probe = Probe { rows: Vec::new(), sql: Some(tally.sql(5)), is_of_tally: true };
        let answer = transaction.commit_verified(&probe).await.map_err(|error| format!("{error:?}"))?;
        assert_eq!(answer.len(), usize::from(stands), "{after}");
    }
    Ok(())
}
