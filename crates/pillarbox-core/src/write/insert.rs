use super::{Connection, Insert, NewRow};
use crate::event::Envelope;
use crate::store::Store;
use crate::write::WriteError;

/// Inserts events in the caller's transaction without an outbox: no hook, no hot path, only one row of each, for no handler
/// in particular. Returns their `seq`.
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
    insert_rows(store, connection, &rows).await
}

/// Inserts rows in the caller's transaction. Returns their `seq`.
///
/// # Errors
/// See [`WriteError`].
pub async fn insert_rows<M, C: Connection<M>>(
    store: &dyn Store,
    connection: &mut C,
    rows: &[NewRow],
) -> Result<Vec<i64>, WriteError<C::Error>> {
    let (outbox, connection_to) = (store.info().dialect, connection.dialect());
    if outbox != connection_to {
        return Err(WriteError::WrongDatabase { outbox, connection: connection_to });
    }
    if connection.in_transaction() == Some(false) {
        return Err(WriteError::NoTransaction);
    }
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let seqs =
        connection.insert(&Insert { rows, statements: store.insert(rows) }).await.map_err(WriteError::Database)?;
    debug_assert_eq!(seqs.len(), rows.len(), "a store returns one seq per row");
    Ok(seqs)
}
