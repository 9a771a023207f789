//! diesel's own connections.

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection, RunQueryDsl as _, SqliteConnection};
use pillarbox_core::error::BoxError;
use pillarbox_diesel::Diesel;
use pillarbox_postgres::PostgresStore;
use pillarbox_sqlite::SqliteStore;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};

use crate::place::{self, Postgres, Sqlite};

/// A connection.
struct PostgresConnection {
    place: Postgres,
    held: PgConnection,
}

impl Driver for PostgresConnection {
    type Marker = Diesel;
    type Source<'a> = &'a mut PgConnection;
    type Store = PostgresStore;

    const BLOCKS: bool = true;

    async fn create() -> Result<Self, BoxError> {
        let place = Postgres::create().await?;
        let held = PgConnection::establish(&place::postgres_url())?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> PostgresStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &mut PgConnection {
        &mut self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.batch_execute(sql)?)
    }
}

/// A connection.
struct SqliteFile {
    place: Sqlite,
    held: SqliteConnection,
}

impl Driver for SqliteFile {
    type Marker = Diesel;
    type Source<'a> = &'a mut SqliteConnection;
    type Store = SqliteStore;

    const BLOCKS: bool = true;

    async fn create() -> Result<Self, BoxError> {
        let place = Sqlite::create().await?;
        let held = sqlite(&place)?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self);
        Ok(())
    }

    fn store(&self) -> SqliteStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &mut SqliteConnection {
        &mut self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        // Not `batch_execute`, after which diesel looks whether SQLite has ended the transaction.
        diesel::sql_query(sql).execute(inner)?;
        Ok(())
    }
}

fn sqlite(place: &Sqlite) -> Result<SqliteConnection, BoxError> {
    let mut connection = SqliteConnection::establish(&place.path())?;
    connection.batch_execute("PRAGMA busy_timeout = 5000")?;
    Ok(connection)
}

mod postgres {
    pillarbox_testkit::adapter_tests!(super::PostgresConnection);
}

mod sqlite {
    pillarbox_testkit::adapter_tests!(super::SqliteFile);
}

mod own {
    use diesel::result::Error::{AlreadyInTransaction, RollbackTransaction};
    use pillarbox_core::event::Envelope;
    use pillarbox_core::store::Admin as _;
    use pillarbox_core::write::WriteError;
    use pillarbox_engine::run::Outbox;
    use pillarbox_testkit::Recorder;

    use super::*;

    fn event() -> Result<Envelope, BoxError> {
        Ok(Envelope::json("order.placed", "{}")?)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_connection_outside_of_a_transaction_is_refused() -> Outcome {
        let mut driver = PostgresConnection::create().await?;
        let outbox = Outbox::writer_only(driver.store()).start().await?;
        let refused = outbox.blocking().write(&mut driver.held, event()?);
        assert!(matches!(refused, Err(WriteError::NoTransaction)), "{refused:?}");
        driver.held.batch_execute("BEGIN")?;
        let refused = outbox.blocking().write(&mut driver.held, event()?);
        assert!(matches!(refused, Err(WriteError::NoTransaction)), "one that diesel did not begin is not seen");
        driver.held.batch_execute("ROLLBACK")?;
        outbox.shutdown().await;
        driver.destroy().await
    }

    /// On a thread that may wait, without a runtime; by a receipt, and without.
    #[tokio::test(flavor = "multi_thread")]
    async fn diesels_own_transaction_writes_on_any_thread() -> Outcome {
        let mut driver = PostgresConnection::create().await?;
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        let writer = outbox.clone();
        let thread = std::thread::spawn(move || {
            let outbox = writer.blocking();
            let receipt = driver.held.transaction(|conn| Ok::<_, BoxError>(outbox.write(conn, event()?)?))?;
            outbox.notify_committed(receipt);
            driver.held.transaction(|conn| Ok::<_, BoxError>(outbox.write_all(conn, [event()?, event()?])?))?;
            let undone = driver.held.transaction(|conn| {
                outbox.write(conn, event()?)?;
                Err::<(), BoxError>(RollbackTransaction.into())
            });
            assert!(undone.is_err());
            Ok::<_, BoxError>(driver)
        });
        let driver = tokio::task::spawn_blocking(move || thread.join()).await?.map_err(|_| "the thread panicked")??;
        recorder.wait_for_ends(3).await;
        assert_eq!(recorder.calls().len(), 3);
        outbox.shutdown().await;
        driver.destroy().await
    }

    /// diesel gives SQLite no time to wait, and the connection has no `busy_timeout`.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_guard_waits_for_sqlites_lock() -> Outcome {
        let driver = SqliteFile::create().await?;
        let outbox = Outbox::writer_only(driver.store()).start().await?;
        let held = pillarbox_sqlx::begin_immediate(driver.store().writer()).await?;
        let (path, writer) = (driver.place.path(), outbox.clone());
        let waiting = tokio::task::spawn_blocking(move || {
            let mut connection = SqliteConnection::establish(&path)?;
            let own = connection.immediate_transaction(|_| Ok::<_, diesel::result::Error>(()));
            assert!(own.is_err(), "diesel's own transaction fails at once");
            let blocking = writer.blocking();
            let mut tx = blocking.begin(&mut connection)?;
            blocking.write(&mut tx, event()?)?;
            Ok::<_, BoxError>(tx.commit()?)
        });
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        held.rollback().await?;
        waiting.await??;
        outbox.shutdown().await;
        driver.destroy().await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_nested_transaction_belongs_to_the_guard() -> Outcome {
        let mut driver = SqliteFile::create().await?;
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        let (kept, blocking) = (event()?, outbox.blocking());
        let mut tx = blocking.begin(&mut driver.held)?;
        tx.transaction(|conn| Ok::<_, BoxError>(blocking.write(conn, kept.clone())?))?;
        let undone = tx.transaction(|conn| {
            blocking.write(conn, event()?)?;
            Err::<(), BoxError>(RollbackTransaction.into())
        });
        assert!(undone.is_err());
        tx.commit()?;
        recorder.wait_for_ends(1).await;
        outbox.shutdown().await;
        let calls = recorder.calls();
        assert_eq!(calls.iter().map(|call| &call.id).collect::<Vec<_>>(), [kept.id()]);
        driver.destroy().await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_refused_begin_leaves_the_transaction_as_it_was() -> Outcome {
        let mut driver = PostgresConnection::create().await?;
        let outbox = Outbox::writer_only(driver.store()).start().await?;
        let blocking = outbox.blocking();
        driver.held.transaction(|conn| {
            blocking.write(conn, event()?)?;
            let refused = blocking.begin(&mut *conn);
            assert!(matches!(refused, Err(AlreadyInTransaction)), "{refused:?}");
            drop(refused);
            Ok::<_, BoxError>(blocking.write(conn, event()?)?)
        })?;
        assert_eq!(driver.store().counts().await?.new, 2);
        outbox.shutdown().await;
        driver.destroy().await
    }

    /// Also one that was begun by executing the text `BEGIN`.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_refused_begin_leaves_the_transaction_of_sqlite_as_it_was() -> Outcome {
        let mut driver = SqliteFile::create().await?;
        let outbox = Outbox::writer_only(driver.store()).start().await?;
        let blocking = outbox.blocking();
        driver.held.transaction(|conn| {
            blocking.write(conn, event()?)?;
            let refused = blocking.begin(&mut *conn);
            assert!(matches!(refused, Err(AlreadyInTransaction)), "{refused:?}");
            drop(refused);
            Ok::<_, BoxError>(blocking.write(conn, event()?)?)
        })?;
        let table = outbox.store().info().table.clone();
        let insert =
            |id| format!("INSERT INTO {table} (event_id, event_type, payload) VALUES ('{id}', 'order.placed', '{{}}')");
        driver.held.batch_execute(&format!("BEGIN; {}", insert("e-1")))?;
        blocking.begin(&mut driver.held).expect_err("a transaction is open");
        driver.held.batch_execute(&format!("{}; COMMIT", insert("e-2")))?;
        assert_eq!(driver.store().counts().await?.new, 4);
        outbox.shutdown().await;
        driver.destroy().await
    }
}
