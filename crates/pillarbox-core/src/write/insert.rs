use super::savepoint::Savepoint;
use super::unique::{Inserted, insert_some_unique};
use super::{Connection, Insert, NewRow};
use crate::event::Envelope;
use crate::store::Store;
use crate::write::WriteError;

/// Inserts events in the caller's transaction without an outbox: no hook, no hot path, only one row of each, for no handler
/// in particular. Returns the `seq` of those that were written: of all but those whose unique key a pending event has.
///
/// It is what `Outbox::write_all` does at its heart; tests of stores and processes that
/// only ever write use it directly.
///
/// # Errors
/// See [`WriteError`].
pub async fn insert<M, C: Connection<M>>(
    store: &dyn Store,
    connection: &mut C,
    events: Vec<Envelope>,
) -> Result<Vec<i64>, WriteError<C::Error>> {
    let rows: Vec<NewRow> = events.into_iter().map(NewRow::new).collect();
    Ok(insert_rows(store, connection, rows).await?.seqs)
}

/// Inserts rows in the caller's transaction.
///
/// # Errors
/// See [`WriteError`].
pub async fn insert_rows<M, C: Connection<M>>(
    store: &dyn Store,
    connection: &mut C,
    rows: Vec<NewRow>,
) -> Result<Inserted, WriteError<C::Error>> {
    let (outbox, connection_to) = (store.info().dialect, connection.dialect());
    if outbox != connection_to {
        return Err(WriteError::WrongDatabase { outbox, connection: connection_to });
    }
    if connection.in_transaction() == Some(false) {
        return Err(WriteError::NoTransaction);
    }
    if rows.is_empty() {
        return Ok(Inserted::default());
    }
    if rows.iter().any(|row| row.unique_key().is_some()) {
        let savepoint = Savepoint::before(connection, rows.len() > 1).await?;
        let inserted = insert_some_unique(store, connection, rows).await;
        return savepoint.after(connection, inserted).await;
    }
    let insert = Insert { rows: &rows, statements: store.insert(&rows) };
    let savepoint = Savepoint::before(connection, insert.rows.len() > 1 && insert.statements.len() > 1).await?;
    let seqs = insert_all(connection, &insert).await;
    let seqs = savepoint.after(connection, seqs).await?;
    drop(insert);
    Ok(Inserted { rows, seqs, skipped: Vec::new() })
}

/// Inserts rows, and returns the `seq` of each.
pub(super) async fn insert_all<M, C: Connection<M>>(
    connection: &mut C,
    insert: &Insert<'_>,
) -> Result<Vec<i64>, WriteError<C::Error>> {
    let seqs = connection.insert(insert).await.map_err(WriteError::Database)?;
    if seqs.len() == insert.rows.len() {
        Ok(seqs)
    } else {
        Err(WriteError::WrongCount { rows: insert.rows.len(), inserted: seqs.len() })
    }
}
