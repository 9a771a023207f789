//! The tests that every adapter runs, on a store of its database: an adapter brings a [`Driver`] and no test.

use std::fmt::Debug;
use std::future::Future;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, EventId};
use pillarbox_core::handle::Path;
use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::{Change, Expected, Row, Verdict};
use pillarbox_core::store::{Admin, Dialect, FetchedRow, Record, RowId, Store};
use pillarbox_core::write::{
    Action, Begin, Command, Connection, Finish, Question, Skipped, Statement, Transaction, WriteError,
};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;

#[doc(hidden)]
pub use super::inbox::{
    a_message_is_received_once, a_message_that_was_rolled_back_is_received_again,
    message_ids_are_told_apart_and_bad_ones_refused_before_any_sql,
};
use crate::events::all;
use crate::payloads::hard_payloads;
use crate::{Recorder, WrittenEvents, drop_after};

/// The outcome of a test.
pub type Outcome = Result<(), BoxError>;

/// The transactions of a driver.
pub type TransactionOf<'a, D> = <<D as Driver>::Source<'a> as Begin<<D as Driver>::Marker>>::Transaction;

/// The type that they dereference to.
pub type InnerOf<'a, D> = <TransactionOf<'a, D> as Finish<<D as Driver>::Marker>>::Inner;

/// A driver, a connection or pool of it, and a fresh outbox table that it writes into. A value is one test's own.
pub trait Driver: Sized {
    /// The adapter's marker.
    type Marker: 'static;
    /// The source of transactions: a pool of one connection, or a connection, so that whatever a test leaves behind is what it finds
    /// next.
    type Source<'a>: Begin<Self::Marker, Transaction: Finish<Self::Marker, Inner: Sized>, Error: Debug>
    where
        Self: 'a;
    /// The store of the table.
    type Store: Store + Admin + Clone;

    /// False if a call that is dropped while its statement is prepared may cost the connection, as of sqlx on MySQL. Its statements are
    /// prepared before anything is dropped then.
    const A_DROPPED_PREPARE_IS_HARMLESS: bool = true;

    /// True if its futures never wait, since it blocks its thread: nothing can be dropped half-way.
    const BLOCKS: bool = false;

    /// Makes the table.
    fn create() -> impl Future<Output = Result<Self, BoxError>>;

    /// Removes it.
    fn destroy(self) -> impl Future<Output = Outcome>;

    /// The store of the table.
    fn store(&self) -> Self::Store;

    /// The source of transactions.
    fn source(&mut self) -> Self::Source<'_>;

    /// Runs SQL in a transaction.
    fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> impl Future<Output = Result<(), BoxError>>;
}

/// Makes a test of each of the suite's, for a [`Driver`](crate::adapters::Driver). A driver that blocks its thread leaves another to the engine.
#[macro_export]
macro_rules! adapter_tests {
    ($driver:ty) => {
        $crate::adapter_tests!(
            $driver:
            a_committed_event_is_delivered_from_memory,
            a_receipt_of_a_transaction_of_the_drivers_own_is_committed,
            rolled_back_events_leave_no_row,
            events_rolled_back_to_a_savepoint_are_not_delivered,
            a_dropped_begin_leaves_nothing_open,
            a_transaction_dropped_half_way_leaves_nothing_open,
            payload_bytes_arrive_as_they_are,
            a_thousand_events_are_written_in_order,
            another_database_is_refused_before_any_sql,
            a_failed_transaction_does_not_seem_to_commit,
            a_transaction_ended_by_hand_does_not_seem_to_commit,
            nothing_is_written_once_the_database_has_ended_the_transaction,
            a_write_that_fails_half_way_leaves_nothing,
            run_counts_the_rows_of_its_last_statement,
            a_message_is_received_once,
            a_message_that_was_rolled_back_is_received_again,
            message_ids_are_told_apart_and_bad_ones_refused_before_any_sql,
            read_sees_what_the_transaction_has_written,
            written_events_are_those_of_the_transaction,
            a_unique_key_is_written_once_while_it_is_pending,
        );
    };
    ($driver:ty: $($test:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $test() -> $crate::adapters::Outcome {
            let mut driver = <$driver as $crate::adapters::Driver>::create().await?;
            let outcome = $crate::adapters::suite::$test(&mut driver).await;
            $crate::adapters::Driver::destroy(driver).await?;
            outcome
        })*
    };
}

pub(super) type Guard<'a, D> = Transaction<TransactionOf<'a, D>, <D as Driver>::Marker>;

pub(super) async fn begin<'a, D: Driver>(driver: &'a mut D, outbox: &Outbox) -> Result<Guard<'a, D>, BoxError> {
    outbox.begin(driver.source()).await.map_err(|error| format!("{error:?}").into())
}

/// Written in a guard and committed, each event is delivered once, and the hot path is taken: the engine, which reads the table
/// meanwhile, may come first for some of them.
pub async fn a_committed_event_is_delivered_from_memory<D: Driver>(driver: &mut D) -> Outcome {
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
    let mut written = Vec::new();
    while written.len() < 20 && recorder.calls().iter().all(|call| call.path != Path::Hot) {
        let event = event()?;
        written.push(event.id().clone());
        let mut transaction = begin(driver, &outbox).await?;
        outbox.write(&mut transaction, event).await?;
        transaction.commit().await?;
        recorder.wait_for_ends(written.len()).await;
    }
    let calls = recorder.calls();
    assert!(calls.iter().map(|call| &call.id).eq(&written), "{calls:?}");
    assert!(calls.iter().any(|call| call.path == Path::Hot), "none of {} came from memory", calls.len());
    outbox.shutdown().await;
    Ok(())
}

/// Without the guard, by `Outbox::commit`.
pub async fn a_receipt_of_a_transaction_of_the_drivers_own_is_committed<D: Driver>(driver: &mut D) -> Outcome {
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
    let mut transaction = driver.source().begin().await?;
    let receipt = outbox.write(&mut transaction, event()?).await?;
    outbox.commit::<D::Marker, _>(transaction, receipt).await?;
    recorder.wait_for_ends(1).await;
    assert_eq!(recorder.calls().len(), 1);
    outbox.shutdown().await;
    Ok(())
}

/// By the guard's rollback, and by dropping it.
pub async fn rolled_back_events_leave_no_row<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    for drops in [false, true] {
        let mut transaction = begin(driver, &outbox).await?;
        outbox.write(&mut transaction, event()?).await?;
        if drops {
            drop(transaction);
        } else {
            transaction.rollback().await?;
        }
        assert_eq!(new(driver).await?, 0, "dropped: {drops}");
    }
    write_one(driver, &outbox).await?;
    assert_eq!(new(driver).await?, 1, "the connection is of use");
    outbox.shutdown().await;
    Ok(())
}

/// An event that was written in a savepoint which was released is delivered.
pub async fn events_rolled_back_to_a_savepoint_are_not_delivered<D: Driver>(driver: &mut D) -> Outcome {
    let recorder = Recorder::new();
    let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
    let events = [event()?, event()?, event()?];
    let mut transaction = begin(driver, &outbox).await?;
    let around = [
        ("SAVEPOINT a", None),
        ("SAVEPOINT b", Some("ROLLBACK TO SAVEPOINT b")),
        ("SAVEPOINT c", Some("RELEASE SAVEPOINT c")),
    ];
    for (event, (before, after)) in events.iter().zip(around) {
        D::execute(&mut transaction, before).await?;
        outbox.write(&mut transaction, event.clone()).await?;
        if let Some(after) = after {
            D::execute(&mut transaction, after).await?;
        }
    }
    transaction.commit().await?;
    recorder.wait_for_ends(2).await;
    outbox.shutdown().await;
    // Calls run beside each other, so their order says nothing.
    let mut calls = recorder.calls();
    calls.sort_by_key(|call| call.seq);
    assert!(calls.iter().map(|call| &call.id).eq([events[0].id(), events[2].id()]), "{calls:?}");
    assert_eq!(driver.store().counts().await?.pending(), 0);
    Ok(())
}

/// Tries of the same futures, each of which drops them after some waits. The first wait is tried until each of them was dropped: on a
/// busy machine the answer is mostly there before anybody waits for it.
pub(super) struct Tries<const N: usize> {
    pub(super) made: usize,
    dropped: [bool; N],
}

impl<const N: usize> Default for Tries<N> {
    fn default() -> Self {
        Self { made: 0, dropped: [false; N] }
    }
}

impl<const N: usize> Tries<N> {
    /// The number of waits to drop the futures of the next try after.
    pub(super) fn next<D: Driver>(&self) -> Option<usize> {
        let is_enough = D::BLOCKS || self.dropped.iter().all(|dropped| *dropped);
        assert!(is_enough || self.made < 10_000, "nothing was dropped: {:?}", self.dropped);
        (self.made < 8 || !is_enough).then_some(if self.made < 8 { self.made } else { 0 })
    }

    /// Notes which of the futures of a try have ended.
    pub(super) fn count(&mut self, ended: [bool; N]) {
        self.made += 1;
        for (dropped, ended) in self.dropped.iter_mut().zip(ended) {
            *dropped |= !ended;
        }
    }
}

/// A `BEGIN` at any of its waits.
pub async fn a_dropped_begin_leaves_nothing_open<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let mut tries = Tries::<1>::default();
    while let Some(waits) = tries.next::<D>() {
        let begun = drop_after(waits, driver.source().begin()).await.is_some();
        tries.count([begun]);
        write_one(driver, &outbox).await?;
        assert_eq!(new(driver).await?, tries.made, "dropped after {waits} waits");
    }
    outbox.shutdown().await;
    Ok(())
}

/// A write or a commit at any of its waits.
pub async fn a_transaction_dropped_half_way_leaves_nothing_open<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    if !D::A_DROPPED_PREPARE_IS_HARMLESS {
        write_one(driver, &outbox).await?;
    }
    // Commits whose answer nobody waited for, and which the server may still be about to make.
    let mut late = 0;
    let mut tries = Tries::<2>::default();
    while let Some(waits) = tries.next::<D>() {
        let before = new(driver).await?;
        let mut transaction = begin(driver, &outbox).await?;
        let written = drop_after(waits, outbox.write(&mut transaction, event()?)).await.is_some();
        drop(transaction);
        write_one(driver, &outbox).await?;
        let now = new(driver).await?;
        let expected = before + 1..=before + 1 + late;
        assert!(expected.contains(&now), "a write dropped after {waits} waits; it had ended: {written}");
        late -= now - before - 1;

        let mut transaction = begin(driver, &outbox).await?;
        outbox.write(&mut transaction, event()?).await?;
        let committed = drop_after(waits, transaction.commit()).await.is_some();
        write_one(driver, &outbox).await?;
        let after = new(driver).await?;
        let least = now + 1 + usize::from(committed);
        late += usize::from(!committed);
        assert!((least..=least + late).contains(&after), "a commit dropped after {waits} waits: {now}, then {after}");
        late -= after - least;
        tries.count([written, committed]);
    }
    outbox.shutdown().await;
    Ok(())
}

/// Payloads that parsers, quoting or measuring on the way could change arrive unchanged: one by one, and all at once.
pub async fn payload_bytes_arrive_as_they_are<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let (together, singles) = (hard_payloads()?, hard_payloads()?);
    let mut transaction = begin(driver, &outbox).await?;
    outbox.write_all(&mut transaction, together.clone()).await?;
    for event in &singles {
        outbox.write(&mut transaction, event.clone()).await?;
    }
    transaction.commit().await?;
    let fetched = driver.store().fetch(&all()).await?;
    assert_eq!(fetched.rows.len(), together.len() + singles.len());
    for (row, event) in fetched.rows.iter().zip(together.iter().chain(&singles)) {
        let FetchedRow::Row(Row { event: read, .. }) = row else { return Err(format!("{row:?}").into()) };
        // Compared by hand: a failure must not print megabytes.
        assert!(
            read.payload() == event.payload() && read.id() == event.id(),
            "{:?} is not {:?}",
            read.payload(),
            event.payload()
        );
    }
    outbox.shutdown().await;
    Ok(())
}

/// The receipt names them in the order in which they were written, and so does the table.
pub async fn a_thousand_events_are_written_in_order<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let events = (0..1_000).map(|_| event()).collect::<Result<Vec<_>, _>>()?;
    let mut transaction = begin(driver, &outbox).await?;
    let receipt = outbox.write_all(&mut transaction, events.clone()).await?;
    assert!(receipt.ids().eq(events.iter().map(Envelope::id)));
    assert!(receipt.rows().1.is_sorted());
    transaction.commit().await?;
    let fetched = driver.store().fetch(&all()).await?.rows;
    let ids = fetched.iter().map(|row| match row {
        FetchedRow::Row(row) => Some(row.event.id()),
        _ => None,
    });
    assert!(ids.eq(events.iter().map(|event| Some(event.id()))), "{} rows", fetched.len());
    outbox.shutdown().await;
    Ok(())
}

/// The transaction is not touched and stays usable.
pub async fn another_database_is_refused_before_any_sql<D: Driver>(driver: &mut D) -> Outcome {
    let (ours, other) = (driver.store(), MemoryStore::new());
    other.migrate().await?;
    let other = Outbox::writer_only(other).start().await?;
    let outbox = Outbox::writer_only(ours).start().await?;
    let mut transaction = begin(driver, &outbox).await?;
    let refused = other.write(&mut transaction, event()?).await;
    assert!(matches!(refused, Err(WriteError::WrongDatabase { outbox: Dialect::MEMORY, .. })), "{refused:?}");
    outbox.write(&mut transaction, event()?).await?;
    transaction.commit().await?;
    assert_eq!(new(driver).await?, 1);
    other.shutdown().await;
    outbox.shutdown().await;
    Ok(())
}

/// A statement has failed, and its error was ignored. PostgreSQL rolls all of it back; elsewhere the statement fails alone.
pub async fn a_failed_transaction_does_not_seem_to_commit<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let rolls_back = driver.store().info().dialect == Dialect::POSTGRES;
    let mut transaction = begin(driver, &outbox).await?;
    outbox.write(&mut transaction, event()?).await?;
    let failed = D::execute(&mut transaction, "DELETE FROM pillarbox_no_such_table").await;
    assert!(failed.is_err(), "there is no such table");
    assert_eq!(transaction.commit().await.is_err(), rolls_back);
    assert_eq!(new(driver).await?, usize::from(!rolls_back));
    write_one(driver, &outbox).await?;
    assert_eq!(new(driver).await?, 1 + usize::from(!rolls_back), "the connection is of use");
    outbox.shutdown().await;
    Ok(())
}

/// Somebody has ended it by a statement of their own.
pub async fn a_transaction_ended_by_hand_does_not_seem_to_commit<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let mut transaction = begin(driver, &outbox).await?;
    outbox.write(&mut transaction, event()?).await?;
    D::execute(&mut transaction, "ROLLBACK").await?;
    assert!(transaction.commit().await.is_err(), "there is nothing to commit");
    assert_eq!(new(driver).await?, 0);
    outbox.shutdown().await;
    Ok(())
}

/// A statement has failed, and its error was ignored: SQLite rolls the whole transaction back after some, as MySQL does after a deadlock, and
/// what follows would commit by itself. On PostgreSQL every statement fails then.
pub async fn nothing_is_written_once_the_database_has_ended_the_transaction<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let dialect = driver.store().info().dialect;
    let mut transaction = begin(driver, &outbox).await?;
    outbox.write(&mut transaction, event()?).await?;
    match dialect {
        Dialect::SQLITE => {
            D::execute(&mut transaction, "CREATE TABLE once (id INTEGER PRIMARY KEY)").await?;
            D::execute(&mut transaction, "INSERT INTO once VALUES (1)").await?;
            let failed = D::execute(&mut transaction, "INSERT OR ROLLBACK INTO once VALUES (1)").await;
            assert!(failed.is_err(), "it is there");
        }
        // Nobody else is here to have a deadlock with.
        Dialect::MYSQL => D::execute(&mut transaction, "ROLLBACK").await?,
        _ => {
            let failed = D::execute(&mut transaction, "DELETE FROM pillarbox_no_such_table").await;
            assert!(failed.is_err(), "there is no such table");
        }
    }
    let refused = outbox.write(&mut transaction, event()?).await;
    assert!(matches!(refused, Err(WriteError::Database(_) | WriteError::NoTransaction)), "{refused:?}");
    assert!(transaction.commit().await.is_err(), "there is nothing to commit");
    assert_eq!(new(driver).await?, 0);
    write_one(driver, &outbox).await?;
    assert_eq!(new(driver).await?, 1, "the connection is of use");
    outbox.shutdown().await;
    Ok(())
}

/// The last event of a call has the id of one that is there, and the error is ignored: the events before it are not written either, in statements
/// of their own or in as many as their number takes. What the transaction did before is there, where the database does not roll back all of it.
pub async fn a_write_that_fails_half_way_leaves_nothing<D: Driver>(driver: &mut D) -> Outcome {
    let unique = || Envelope::builder("order.placed").unique_key("o-1").payload_json("{}").build();
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let rolls_back = driver.store().info().dialect == Dialect::POSTGRES;
    let mut several = Vec::new();
    for _ in 0..2500 {
        several.push(event()?);
    }
    for mut events in [vec![unique()?, event()?], several] {
        let before = new(driver).await?;
        let mut transaction = begin(driver, &outbox).await?;
        let there = event()?;
        outbox.write(&mut transaction, there.clone()).await?;
        events.push(there);
        let refused = outbox.write_all(&mut transaction, events).await;
        assert!(matches!(refused, Err(WriteError::Database(_))), "{refused:?}");
        assert_eq!(transaction.commit().await.is_err(), rolls_back);
        assert_eq!(new(driver).await? - before, usize::from(!rolls_back));
    }
    outbox.shutdown().await;
    Ok(())
}

/// A statement before it, and one that finds no row.
pub async fn run_counts_the_rows_of_its_last_statement<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let mut transaction = begin(driver, &outbox).await?;
    outbox.write_all(&mut transaction, [event()?, event()?, event()?]).await?;
    let table = outbox.store().info().table.clone();
    let node = NodeId::from_stored("node");
    let verdict = Verdict {
        row: RowId { seq: 1, event_id: EventId::from_stored("none"), handler: None },
        expected: Expected::FIRST,
        change: Change::Done,
    };
    let statement = |sql: String| Statement { sql: sql.into(), binds: Vec::new(), reusable: false };
    for (count, last) in [(3, "1 = 1"), (0, "1 = 0")] {
        let statements =
            vec![statement(format!("SELECT 1 FROM {table}")), statement(format!("DELETE FROM {table} WHERE {last}"))];
        let action = Action::Complete { node: &node, fence: Fence::Table, verdict: &verdict };
        assert_eq!(transaction.run(&Command { action, statements }).await?, count);
    }
    transaction.commit().await?;
    assert_eq!(new(driver).await?, 0);
    outbox.shutdown().await;
    Ok(())
}

/// Nobody else sees it, and the transaction goes on.
pub async fn read_sees_what_the_transaction_has_written<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let hard = hard_payloads()?;
    let mut transaction = begin(driver, &outbox).await?;
    outbox.write_all(&mut transaction, hard.clone()).await?;
    let newest = transaction.read(&outbox.store().lookup(Question::Newest(1_000))).await?;
    let seqs = newest.iter().rev().map(|seq| seq.parse()).collect::<Result<Vec<i64>, _>>()?;
    assert!(seqs.is_sorted() && seqs.len() == hard.len(), "{seqs:?}");
    assert!(outbox.store().identify(&seqs).await?.is_empty(), "nothing is committed");
    let rows = transaction.read(&outbox.store().lookup(Question::Records(&seqs))).await?;
    assert_eq!(rows.len(), hard.len());
    for (row, event) in rows.iter().zip(&hard) {
        let record = Record::from_json(row)?;
        let is_the_event = record.event_id == event.id().as_str() && record.payload.as_ref() == Some(event.payload());
        assert!(is_the_event, "{record:?} is not {:?}", event.payload());
    }
    transaction.commit().await?;
    assert_eq!(new(driver).await?, hard.len());
    outbox.shutdown().await;
    Ok(())
}

/// Rows that SQL has inserted are among them, and none that is committed.
pub async fn written_events_are_those_of_the_transaction<D: Driver>(driver: &mut D) -> Outcome {
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    write_one(driver, &outbox).await?;
    let table = outbox.store().info().table.clone();
    let mut transaction = begin(driver, &outbox).await?;
    outbox.write(&mut transaction, event()?).await?;
    let insert = format!("INSERT INTO {table} (event_id, event_type, payload) VALUES ('e-1', 'order.paid', '{{}}')");
    D::execute(&mut transaction, &insert).await?;
    let mut written = WrittenEvents::in_transaction(&outbox, &mut transaction).await?;
    assert_eq!(written.take_type("order.paid").record.event_id, "e-1");
    written.take_type("order.placed");
    written.assert_empty();
    assert_eq!(WrittenEvents::committed(&outbox).await?.events().len(), 1);
    transaction.commit().await?;
    assert_eq!(WrittenEvents::committed(&outbox).await?.events().len(), 3);
    let mut transaction = begin(driver, &outbox).await?;
    WrittenEvents::in_transaction(&outbox, &mut transaction).await?.assert_empty();
    transaction.rollback().await?;
    outbox.shutdown().await;
    Ok(())
}

/// Written once, in one transaction and in two, and delivered once; again after it was rolled back, and once it was delivered. What is written
/// beside it in one call is written.
pub async fn a_unique_key_is_written_once_while_it_is_pending<D: Driver>(driver: &mut D) -> Outcome {
    let unique = || Envelope::builder("order.placed").unique_key("o-1").payload_json("{}").build();
    let writer = Outbox::writer_only(driver.store()).start().await?;
    let mut transaction = begin(driver, &writer).await?;
    assert_eq!(writer.write(&mut transaction, unique()?).await?.len(), 1);
    D::execute(&mut transaction, "SAVEPOINT a").await?;
    assert_eq!(writer.write(&mut transaction, unique()?).await?.skipped().len(), 1);
    D::execute(&mut transaction, "ROLLBACK TO SAVEPOINT a").await?;
    transaction.rollback().await?;

    let mut transaction = begin(driver, &writer).await?;
    let beside = [event()?, unique()?, unique()?, event()?];
    let written = writer.write_all(&mut transaction, beside.clone()).await?;
    let (ids, seqs) = ([0, 1, 3].map(|place: usize| beside[place].id()), written.rows().1.to_vec());
    assert!(written.ids().eq(ids), "{written:?}");
    let pending = Skipped { event_id: beside[2].id().clone(), handler: None, pending: Some(seqs[1]) };
    assert_eq!(written.skipped(), std::slice::from_ref(&pending));
    transaction.commit().await?;
    let mut transaction = begin(driver, &writer).await?;
    let written = writer.write(&mut transaction, beside[2].clone()).await?;
    assert_eq!((written.id(), written.skipped()), (None, std::slice::from_ref(&pending)));
    transaction.commit().await?;
    writer.shutdown().await;

    let recorder = Recorder::new();
    let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
    recorder.wait_for_ends(3).await;
    // Its verdict is recorded a moment after the call.
    while new(driver).await? > 0 {
        tokio::task::yield_now().await;
    }
    let mut transaction = begin(driver, &outbox).await?;
    assert_eq!(outbox.write(&mut transaction, beside[2].clone()).await?.len(), 1, "it was delivered");
    transaction.commit().await?;
    recorder.wait_for_ends(4).await;
    outbox.shutdown().await;
    let mut calls: Vec<_> = recorder.calls().into_iter().map(|call| (call.seq, call.id)).collect();
    calls.sort_unstable_by_key(|(seq, _)| *seq);
    assert!(calls.iter().map(|(_, id)| id).eq([0, 1, 3, 2].map(|place: usize| beside[place].id())), "{calls:?}");
    Ok(())
}

async fn write_one<D: Driver>(driver: &mut D, outbox: &Outbox) -> Outcome {
    let mut transaction = begin(driver, outbox).await?;
    outbox.write(&mut transaction, event()?).await?;
    transaction.commit().await?;
    Ok(())
}

async fn new<D: Driver>(driver: &D) -> Result<usize, BoxError> {
    Ok(usize::try_from(driver.store().counts().await?.new)?)
}

fn event() -> Result<Envelope, BoxError> {
    Ok(Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?)
}
