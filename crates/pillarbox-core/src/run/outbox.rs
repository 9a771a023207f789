use std::sync::Arc;

use crate::error::WriteError;
use crate::event::{IntoEnvelope, Stamp};
use crate::queue::Intake;
use crate::store::Store;
use crate::write::{Begin, Connection, Insert, NewRow, Transaction, WriterHooks, Written};

/// An outbox: writes events in your transactions and delivers them. Cheap to clone; all clones are the same outbox.
#[derive(Debug, Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    stamp: Stamp,
    hooks: WriterHooks,
    intake: Arc<Intake>,
}

impl Outbox {
    /// Writes one event in the caller's transaction.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write<M, C: Connection<M>>(
        &self,
        connection: &mut C,
        event: impl IntoEnvelope,
    ) -> Result<Written, WriteError<C::Error>> {
        self.write_all(connection, [event]).await
    }

    /// Writes many events in the caller's transaction, with one statement, in the given order.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_all<M, C: Connection<M>, E: IntoEnvelope>(
        &self,
        connection: &mut C,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Written, WriteError<C::Error>> {
        let info = self.shared.store.info();
        if info.dialect != C::DIALECT {
            return Err(WriteError::WrongDatabase { outbox: info.dialect, connection: C::DIALECT });
        }
        if connection.in_transaction() == Some(false) {
            return Err(WriteError::NoTransaction);
        }
        let events = events.into_iter().map(|event| event.into_envelope(&self.shared.stamp)).collect::<Result<Vec<_>, _>>()?;
        let events = self.shared.hooks.before_write(events).map_err(WriteError::Hook)?;
        let rows: Vec<NewRow> = events.into_iter().map(NewRow::new).collect();
        if rows.is_empty() {
            return Ok(Written::new(rows, Vec::new(), Arc::clone(&self.shared.intake)));
        }
        let insert = Insert { rows: &rows, statements: self.shared.store.insert(&rows) };
        let seqs = connection.insert(&insert).await.map_err(WriteError::Database)?;
        let written = Written::new(rows, seqs, Arc::clone(&self.shared.intake));
        if !connection.wrote(&written) {
            written.look_for();
        }
        self.shared.hooks.after("after_write", |hook| hook.after_write(&written.events()));
        Ok(written)
    }

    /// Begins a transaction that tells the outbox of its commit.
    ///
    /// # Errors
    /// The driver's.
    pub async fn begin<M, B: Begin<M>>(&self, source: B) -> Result<Transaction<B::Transaction, M>, B::Error> {
        Ok(Transaction::new(source.begin().await?, self.clone()))
    }

    /// Says that the transaction of a write has committed: its events take the hot path.
    pub fn committed(&self, written: Written) {
        written.deliver();
        self.shared.hooks.after("after_commit", |hook| hook.after_commit(&written.events()));
    }

    pub(crate) fn rolled_back(&self, written: &Written) {
        self.shared.hooks.after("after_rollback", |hook| hook.after_rollback(&written.events()));
    }
}
