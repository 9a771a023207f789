use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::{Clock as _, SystemClock, SystemRandom, Timestamp};
use pillarbox_core::event::{Envelope, Stamp};
use pillarbox_core::store::{FetchedRow, Row};
use pillarbox_core::write::{Command, Connection, Dialect, Finish, Insert, Lookup, insert};
use pillarbox_engine::run::Outbox;

use crate::events::{all, event, events, ids, record, seqs_of};
use crate::payloads::{every_column, hard_payloads};
use crate::run::{Db, Outcome};
use crate::{FakeClock, Harness};

/// One batch of a thousand, two batches of one transaction, and the next transaction: `seq` ascends through them all.
pub(super) async fn insert_gives_ascending_seqs_in_row_order<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let batches = [events(1000)?, events(7)?, events(1)?];
    let mut seqs = Vec::new();
    let mut transaction = db.begin().await?;
    for batch in &batches[..2] {
        seqs.extend(insert(&*store, &mut transaction, batch.clone()).await?);
    }
    transaction.commit().await?;
    seqs.extend(db.write(batches[2].clone()).await?);

    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let written: Vec<_> = batches.iter().flatten().map(|event| event.id().as_str()).collect();
    let fetched = store.fetch(&all()).await?;
    assert_eq!(ids(&fetched.rows)?, written, "the row of each seq is the event at its place");
    assert_eq!(seqs_of(&fetched), seqs);
    Ok(())
}

/// A column that the writer did not set is NULL or the table's default; one that it did set is there as it was set.
pub(super) async fn insert_leaves_unset_columns_to_their_defaults<H: Harness>(db: &Db<H>) -> Outcome {
    let (plain, full) = (event()?, every_column()?);
    let seqs = db.write(vec![plain.clone(), full.clone()]).await?;

    let row = db.columns(plain.id().as_str()).await?.ok_or("the plain row is missing")?;
    assert_eq!((row.status, row.attempts, row.timed, row.ended), (0, 0, false, false));
    assert_eq!((row.last_error, row.headers, row.content_type, row.payload_bytes), (None, None, None, None));
    assert_eq!((row.aggregate_id, row.tenant_id, row.ordering_key), (None, None, None));
    assert_eq!((Some(row.seq), row.event_type.as_str()), (seqs.first().copied(), "test.event"));

    let fetched = db.store().fetch(&all()).await?;
    let [FetchedRow::Row(plain_row), FetchedRow::Row(full_row)] = &fetched.rows[..] else {
        return Err(format!("expected two rows, not {:?}", fetched.rows).into());
    };
    for (row, event) in [(plain_row, &plain), (full_row, &full)] {
        assert_eq!((row.event.id(), row.event.event_type()), (event.id(), event.event_type()));
        assert_eq!(
            (row.event.aggregate_type(), row.event.aggregate_id()),
            (event.aggregate_type(), event.aggregate_id())
        );
        assert_eq!((row.event.tenant_id(), row.event.key()), (event.tenant_id(), event.key()));
        assert_eq!((row.event.headers(), row.event.payload()), (event.headers(), event.payload()));
        assert_eq!((row.attempts, row.timed, row.event.occurred_at()), (0, false, event.occurred_at()));
    }
    Ok(())
}

/// Every payload comes back byte for byte, both from the column and from a fetch.
pub(super) async fn insert_keeps_payload_bytes_as_written<H: Harness>(db: &Db<H>) -> Outcome {
    let events = hard_payloads()?;
    // All at once, and once more one by one: batches may take another statement.
    let singles = hard_payloads()?;
    db.write(events.clone()).await?;
    for event in &singles {
        db.write(vec![event.clone()]).await?;
    }
    let fetched = db.store().fetch(&all()).await?;
    assert_eq!(fetched.rows.len(), events.len() + singles.len());
    for (row, event) in fetched.rows.iter().zip(events.iter().chain(&singles)) {
        let FetchedRow::Row(Row { event: read, .. }) = row else { return Err(format!("{row:?}").into()) };
        // Compared by hand: a failure must not print megabytes.
        assert!(
            read.payload() == event.payload() && read.id() == event.id(),
            "{:?} is not {:?}",
            read.payload(),
            event.payload()
        );
        let columns = db.columns(event.id().as_str()).await?.ok_or("the row is missing")?;
        let stored = match event.payload().as_json() {
            Some(_) => columns.payload_bytes.is_none().then_some(columns.payload.unwrap_or_default().into_bytes()),
            None => columns.payload.is_none().then_some(columns.payload_bytes.unwrap_or_default()),
        };
        assert!(
            stored.as_deref() == Some(event.payload().as_bytes()),
            "the columns hold another {:?}",
            event.payload()
        );
    }
    Ok(())
}

/// A batch costs one round trip, not one for each of its events.
pub(super) async fn insert_is_one_statement_for_a_batch_of_a_hundred<H: Harness>(db: &Db<H>) -> Outcome {
    let mut spied = Spied { inner: db.begin().await?, statements: Vec::new() };
    for size in [1, 2, 100] {
        let seqs = insert(&*db.store(), &mut spied, events(size)?).await?;
        assert_eq!(seqs.len(), size);
    }
    assert_eq!(spied.statements, [1, 1, 1], "statements of a batch of 1, of 2 and of 100");
    spied.inner.commit().await?;
    assert_eq!(db.store().counts().await?.new, 103);
    Ok(())
}

/// A connection that counts the statements of each insert.
struct Spied<C> {
    inner: C,
    statements: Vec<usize>,
}

impl<M, C: Connection<M> + Send> Connection<(M,)> for Spied<C> {
    type Error = C::Error;

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, C::Error> {
        self.statements.push(insert.statements.len());
        self.inner.insert(insert).await
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, C::Error> {
        self.inner.run(command).await
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, C::Error> {
        self.inner.read(lookup).await
    }
}

/// Neither a rollback nor dropping the transaction leaves a row behind, or takes an id away from a later event.
pub(super) async fn rolled_back_inserts_leave_nothing<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let events = events(3)?;
    for round in 0..2 {
        let mut transaction = db.begin().await?;
        insert(&*store, &mut transaction, events.clone()).await?;
        if round == 0 {
            transaction.rollback().await?;
        } else {
            drop(transaction);
        }
        assert_eq!(store.counts().await?.pending(), 0);
        assert!(store.fetch(&all()).await?.rows.is_empty());
    }
    db.write(events).await?;
    assert_eq!(store.counts().await?.new, 3);
    Ok(())
}

/// The same event has a row for each handler, once; and none beside them for the same one, nor twice for no handler.
pub(super) async fn insert_takes_an_event_once_for_each_handler<H: Harness>(db: &Db<H>) -> Outcome {
    let event = event()?;
    let name = event.event_type();
    let writer = |ids: &'static [&'static str]| {
        let writer = Outbox::writer_only(db.store());
        if ids.is_empty() { writer } else { writer.handled_by(name, ids.iter().copied()) }
    };
    let cases: [(&[&str], bool); 5] =
        [(&["mailer", "ledger"], true), (&["mailer"], false), (&[], true), (&[], false), (&["index"], true)];
    for (ids, fits) in cases {
        let outbox = writer(ids).start().await?;
        let mut transaction = db.begin().await?;
        let written = outbox.write(&mut transaction, event.clone()).await;
        assert_eq!(written.is_ok(), fits, "{ids:?}");
        if written.is_ok() {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        outbox.shutdown().await;
    }
    // Enough rows for several statements, where a database limits them: an event may lie astride two of them.
    let outbox = writer(&["mailer", "ledger", "index"]).start().await?;
    let many = events(1000)?;
    let mut transaction = db.begin().await?;
    outbox.write_all(&mut transaction, many.iter().cloned()).await?;
    transaction.commit().await?;
    outbox.shutdown().await;

    let fetched = db.store().fetch(&all()).await?;
    let rows: Vec<(&str, Option<&str>)> = fetched
        .rows
        .iter()
        .filter_map(|row| match row {
            FetchedRow::Row(row) => Some((row.event.id().as_str(), row.handler.as_deref())),
            FetchedRow::Broken(_) => None,
        })
        .collect();
    let first = [Some("mailer"), Some("ledger"), None, Some("index")].map(|handler| (event.id().as_str(), handler));
    let handlers = ["mailer", "ledger", "index"];
    let rest = many.iter().flat_map(|event| handlers.map(|handler| (event.id().as_str(), Some(handler))));
    assert_eq!(rows, first.into_iter().chain(rest).collect::<Vec<_>>());
    Ok(())
}

/// A writer's clock that is minutes ahead or behind moves no delay. A time of delivery is what the writer says.
pub(super) async fn insert_computes_delays_by_the_databases_clock<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let minute = Duration::from_secs(60);
    for clock_error in [-600, 0, 600] {
        let now = Timestamp::from_micros(SystemClock.now().as_micros() + clock_error * 1_000_000);
        let writer = Stamp::new(Arc::new(FakeClock::at(now)), Arc::new(SystemRandom));
        let builder = || Envelope::builder("test.delayed").payload_json("{}");
        // Alone and in a batch: those may take different statements.
        for batch in [1, 2] {
            let build = || builder().deliver_after(minute).build_with(&writer);
            let events: Vec<Envelope> = std::iter::repeat_with(build).take(batch).collect::<Result<_, _>>()?;
            db.write(events.clone()).await?;
            for event in events {
                let record = record(db, &event).await?;
                let due = record.available_at.ok_or("it has no due time")?.since(record.created_at);
                let off = due.abs_diff(minute);
                assert!(off < Duration::from_secs(1), "{due:?} after the insert, by a writer {clock_error} s ahead");
            }
        }
        let hour = builder().available_at(now.plus(60 * minute)).build_with(&writer)?;
        db.write(vec![hour.clone()]).await?;
        assert_eq!(record(db, &hour).await?.available_at, hour.available_at());
    }
    assert!(store.fetch(&all()).await?.rows.is_empty(), "none is due");
    Ok(())
}
