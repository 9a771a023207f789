use pillarbox_core::error::BoxError;
use pillarbox_core::row::{Change, Position};
use pillarbox_core::store::{Record, Store};
use pillarbox_core::write::{Connection, Finish, Question, insert};

use crate::Harness;
use crate::events::{HOUR, Owned, delayed, event, events, owned, settle_all};
use crate::payloads::{every_column, hard_payloads};
use crate::run::{Db, Outcome};

/// The `seq` of the newest rows that a transaction sees.
async fn newest<M, C: Connection<M>>(
    store: &dyn Store,
    transaction: &mut C,
    limit: usize,
) -> Result<Vec<i64>, BoxError> {
    let answer = transaction.read(&store.lookup(Question::Newest(limit))).await?;
    Ok(answer.iter().map(|seq| seq.parse()).collect::<Result<_, _>>()?)
}

/// The rows at these places that a transaction sees.
async fn records<M, C: Connection<M>>(
    store: &dyn Store,
    transaction: &mut C,
    seqs: &[i64],
) -> Result<Vec<Record>, BoxError> {
    let answer = transaction.read(&store.lookup(Question::Records(seqs))).await?;
    Ok(answer.iter().map(|row| Record::from_json(row)).collect::<Result<_, _>>()?)
}

/// Its own rows among them, but for those that it has rolled back to a savepoint; never more than asked for.
pub(super) async fn lookup_names_the_newest_rows_that_the_transaction_sees<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let committed = db.write(events(2)?).await?;
    let mut transaction = db.begin().await?;
    let mut seen = [committed.clone(), insert(&*store, &mut transaction, events(2)?).await?].concat();
    H::savepoint(transaction.inner_mut(), "undone").await?;
    insert(&*store, &mut transaction, vec![event()?]).await?;
    H::rollback_to(transaction.inner_mut(), "undone").await?;
    seen.reverse();
    assert_eq!(newest(&*store, &mut transaction, 10).await?, seen);
    assert_eq!(newest(&*store, &mut transaction, 3).await?, seen[..3]);
    transaction.rollback().await?;
    let mut transaction = db.begin().await?;
    assert_eq!(newest(&*store, &mut transaction, 10).await?, seen[2..]);
    transaction.rollback().await?;
    Ok(())
}

/// Every column, whatever is in it, before the commit as after it, whatever the row's state; nothing for a place that is empty.
pub(super) async fn lookup_reads_rows_as_they_are_recorded<H: Harness>(db: &Db<H>) -> Outcome {
    let Owned { store, node, seqs, .. } = owned(db, events(2)?).await?;
    settle_all(&*store, &node, &seqs[..1], &Change::DeliveredAs(Position::new("\"Grüße\"/1")?)).await?;
    let retry = Change::Retry { attempts: 3, delay: HOUR, error: Some("it's \"broken\": \\ 🦀".to_owned()) };
    settle_all(&*store, &node, &seqs[1..], &retry).await?;
    let written = [hard_payloads()?, vec![every_column()?, delayed()?]].concat();
    let mut transaction = db.begin().await?;
    let seqs = [seqs, insert(&*store, &mut transaction, written).await?].concat();
    let asked = [&[i64::MAX], &seqs[..], &[-1]].concat();
    let read = records(&*store, &mut transaction, &asked).await?;
    assert!(records(&*store, &mut transaction, &[]).await?.is_empty());
    transaction.commit().await?;
    assert!(read.iter().map(|record| record.seq).eq(seqs.iter().copied()), "{} rows", read.len());
    for record in read {
        let recorded = store.record(record.seq).await?;
        assert!(recorded.as_ref() == Some(&record), "{record:?} is recorded as {recorded:?}");
    }
    Ok(())
}
