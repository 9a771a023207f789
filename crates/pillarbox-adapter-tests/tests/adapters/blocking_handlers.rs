//! Handlers that block their thread, in the transaction in which their event becomes DONE.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use diesel::{Connection as _, PgConnection, SqliteConnection};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::handle::{Delivery, HandlerError, Path, blocking, in_transaction};
use pillarbox_core::retry::Retry;
use pillarbox_core::store::Record;
use pillarbox_engine::follow::EventEnd;
use pillarbox_engine::handlers::{Events, on_type};
use pillarbox_engine::run::Outbox;
use pillarbox_testkit::Recorder;
use pillarbox_testkit::adapters::Outcome;

use crate::place::{self, Postgres, Sqlite};

const PLACED: &str = "order.placed";

/// The number of calls of a handler, which fails, panics and succeeds in turn.
#[derive(Clone, Default)]
struct Turns(Arc<AtomicUsize>);

impl Turns {
    fn next(&self) -> Result<(), BoxError> {
        match self.0.fetch_add(1, SeqCst) {
            0 => Err("not yet".into()),
            #[expect(clippy::panic, reason = "as a handler of a user's might")]
            1 => panic!("a panic that a test asked for"),
            _ => Ok(()),
        }
    }
}

/// A source of connections that has none at first.
fn scarce<C, E: Display>(connect: impl Fn() -> Result<C, E>) -> impl Fn() -> Result<Box<C>, BoxError> {
    let asked = AtomicUsize::new(0);
    move || match asked.fetch_add(1, SeqCst) {
        0 => Err("no connection".into()),
        _ => connect().map(Box::new).map_err(|error| error.to_string().into()),
    }
}

fn follow_up(of: &Delivery) -> Result<Envelope, BoxError> {
    Ok(Envelope::json("order.confirmed", format!(r#"{{"of": "{}"}}"#, of.id()))?)
}

/// The row of an event, once that is delivered.
async fn delivered(outbox: &Outbox, event: &Envelope) -> Result<Record, BoxError> {
    assert_eq!(outbox.delivered(event.id().clone()).await?, EventEnd::Delivered { positions: Vec::new() });
    outbox.store().records(event.id().as_str()).await?.pop().ok_or_else(|| "no row".into())
}

/// Makes a test of a database and a driver: a store, a source of connections, and the type of the transactions.
macro_rules! handles_in_its_transaction {
    ($name:ident, $place:ty, $transaction:ty, $connect:expr) => {
        /// A source without a connection counts no attempt. What is written fails, panics and succeeds with the handler; the event that it
        /// writes commits with its own, and takes the hot path.
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() -> Outcome {
            let place = <$place>::create().await?;
            let (recorder, turns) = (Recorder::new(), Turns::default());
            let seen = turns.clone();
            let handler = move |delivery: Delivery, tx: &mut $transaction| {
                delivery.outbox()?.blocking().write(tx, follow_up(&delivery)?)?;
                seen.next()
            };
            let connect = $connect;
            let source = scarce({
                let connect = connect(&place);
                move || connect()
            });
            let outbox = Outbox::single_node(place.store.clone())
                .retry(Retry::fixed(Duration::from_millis(1)))
                .handler(on_type(PLACED, in_transaction(source, blocking(handler))))
                .handler(on_type(Events::Others, recorder.clone()))
                .start()
                .await?;
            let event = Envelope::json(PLACED, "{}")?;
            let mut connection = connect(&place)()?;
            let written = outbox.clone();
            let placed = event.clone();
            tokio::task::spawn_blocking(move || {
                let blocking = written.blocking();
                let mut tx = blocking.begin(&mut connection)?;
                blocking.write(&mut tx, placed)?;
                tx.commit()?;
                Ok::<_, BoxError>(())
            })
            .await??;
            recorder.wait_for_ends(1).await;
            let row = delivered(&outbox, &event).await?;
            assert_eq!((row.attempts, turns.0.load(SeqCst)), (2, 3));
            outbox.shutdown().await;
            let calls = recorder.calls();
            assert_eq!(calls.iter().map(|call| call.path).collect::<Vec<_>>(), [Path::Hot], "one follow-up");
            place.destroy().await
        }
    };
}

handles_in_its_transaction!(
    a_handler_on_rusqlite_commits_with_its_event,
    Sqlite,
    rusqlite::Transaction<'_>,
    |place: &Sqlite| {
        let path = place.path();
        move || rusqlite::Connection::open(&path)
    }
);

handles_in_its_transaction!(a_handler_on_diesel_commits_with_its_event, Postgres, PgConnection, |_: &Postgres| || {
    PgConnection::establish(&place::postgres_url())
});

handles_in_its_transaction!(
    a_handler_on_diesels_sqlite_commits_with_its_event,
    Sqlite,
    SqliteConnection,
    |place: &Sqlite| {
        let path = place.path();
        move || {
            let mut connection = SqliteConnection::establish(&path)?;
            diesel::connection::SimpleConnection::batch_execute(&mut connection, "PRAGMA busy_timeout = 5000")
                .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok::<_, diesel::ConnectionError>(connection)
        }
    }
);

/// Its thread goes on, and cannot commit any more: the attempt that follows counts alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_runs_out_of_time_does_not_commit() -> Outcome {
    let place = Postgres::create().await?;
    let recorder = Recorder::new();
    let (go, gate) = mpsc::channel::<()>();
    let (calls, gate) = (Arc::new(AtomicUsize::new(0)), std::sync::Mutex::new(gate));
    let (ended, has_ended) = mpsc::channel();
    let seen = Arc::clone(&calls);
    let handler = move |delivery: Delivery, tx: &mut PgConnection| -> Result<(), BoxError> {
        delivery.outbox()?.blocking().write(tx, follow_up(&delivery)?)?;
        if seen.fetch_add(1, SeqCst) == 0 {
            gate.lock().map_err(|_| HandlerError::unrecoverable("poisoned"))?.recv()?;
            ended.send(())?;
        }
        Ok(())
    };
    let source = || PgConnection::establish(&place::postgres_url()).map(Box::new);
    let outbox = Outbox::single_node(place.store.clone())
        .retry(Retry::fixed(Duration::from_millis(1)))
        .handler(on_type(PLACED, in_transaction(source, blocking(handler))).timeout(Duration::from_millis(500)))
        .handler(on_type(Events::Others, recorder.clone()))
        .start()
        .await?;
    let event = Envelope::json(PLACED, "{}")?;
    let (writer, placed) = (outbox.clone(), event.clone());
    tokio::task::spawn_blocking(move || {
        let mut connection = PgConnection::establish(&place::postgres_url())?;
        let mut tx = writer.blocking().begin(&mut connection)?;
        writer.blocking().write(&mut tx, placed)?;
        tx.commit()?;
        Ok::<_, BoxError>(())
    })
    .await??;
    let row = delivered(&outbox, &event).await?;
    assert_eq!((row.attempts, calls.load(SeqCst)), (1, 2));
    go.send(())?;
    tokio::task::spawn_blocking(move || has_ended.recv()).await??;
    recorder.wait_for_ends(1).await;
    outbox.shutdown().await;
    assert_eq!(recorder.calls().len(), 1, "the follow-up of the attempt in time");
    place.destroy().await
}
