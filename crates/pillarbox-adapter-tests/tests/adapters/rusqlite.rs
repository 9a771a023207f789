//! rusqlite.

use pillarbox_core::error::BoxError;
use pillarbox_rusqlite::Rusqlite;
use pillarbox_sqlite::SqliteStore;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};

use crate::place::Sqlite;

/// A connection.
struct File {
    place: Sqlite,
    held: rusqlite::Connection,
}

impl Driver for File {
    type Marker = Rusqlite;
    type Source<'a> = &'a mut rusqlite::Connection;
    type Store = SqliteStore;

    const BLOCKS: bool = true;

    async fn create() -> Result<Self, BoxError> {
        let place = Sqlite::create().await?;
        let held = rusqlite::Connection::open(place.path())?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self);
        Ok(())
    }

    fn store(&self) -> SqliteStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &mut rusqlite::Connection {
        &mut self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.execute_batch(sql)?)
    }
}

mod sqlite {
    pillarbox_testkit::adapter_tests!(super::File);
}

mod own {
    use pillarbox_core::event::Envelope;
    use pillarbox_core::inbox::{Inbox, InboxError, Once};
    use pillarbox_core::store::Admin as _;
    use pillarbox_core::write::WriteError;
    use pillarbox_engine::run::Outbox;
    use pillarbox_testkit::Recorder;

    use super::*;

    fn event() -> Result<Envelope, BoxError> {
        Ok(Envelope::json("order.placed", "{}")?)
    }

    /// In a savepoint of the guard's transaction, and in a transaction that was ended by hand.
    #[tokio::test(flavor = "multi_thread")]
    async fn savepoints_belong_to_the_guard_and_an_ended_transaction_is_refused() -> Outcome {
        let mut driver = File::create().await?;
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        let (kept, blocking) = (event()?, outbox.blocking());
        let mut tx = blocking.begin(&mut driver.held)?;
        let mut savepoint = tx.savepoint()?;
        blocking.write(&mut savepoint, kept.clone())?;
        savepoint.commit()?;
        let mut savepoint = tx.savepoint()?;
        blocking.write(&mut savepoint, event()?)?;
        drop(savepoint);
        tx.commit()?;
        recorder.wait_for_ends(1).await;
        let calls = recorder.calls();
        assert_eq!(calls.iter().map(|call| &call.id).collect::<Vec<_>>(), [kept.id()]);

        let inbox = Inbox::new(driver.store(), "billing")?;
        let mut tx = driver.held.transaction()?;
        tx.execute_batch("ROLLBACK")?;
        let refused = blocking.write(&mut tx, event()?);
        assert!(matches!(refused, Err(WriteError::NoTransaction)), "{refused:?}");
        let refused = inbox.blocking().once(&mut tx, "m-1");
        assert!(matches!(refused, Err(InboxError::NoTransaction)), "{refused:?}");
        drop(tx);
        let mut tx = driver.held.transaction()?;
        assert_eq!(inbox.blocking().once(&mut tx, "m-1")?, Once::First);
        tx.commit()?;
        let mut tx = driver.held.transaction()?;
        assert_eq!(inbox.blocking().once(&mut tx, "m-1")?, Once::Again);
        drop(tx);
        outbox.shutdown().await;
        driver.destroy().await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_refused_begin_leaves_the_transaction_as_it_was() -> Outcome {
        let mut driver = File::create().await?;
        let outbox = Outbox::writer_only(driver.store()).start().await?;
        let table = outbox.store().info().table.clone();
        let insert =
            |id| format!("INSERT INTO {table} (event_id, event_type, payload) VALUES ('{id}', 'order.placed', '{{}}')");
        driver.held.execute_batch(&format!("BEGIN; {}", insert("e-1")))?;
        outbox.blocking().begin(&mut driver.held).expect_err("a transaction is open");
        driver.held.execute_batch(&format!("{}; COMMIT", insert("e-2")))?;
        assert_eq!(driver.store().counts().await?.new, 2);
        outbox.shutdown().await;
        driver.destroy().await
    }
}
