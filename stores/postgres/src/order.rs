//! Order per key, beside fetching: partitions in all rows, due rows in their place, and the transactions that may still commit.

use deadpool_postgres::Transaction;
use pillarbox_core::store::{RowId, Writers};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use crate::error::{Failure, no_row};
use crate::rows::Rows;
use crate::session::Param;
use crate::store::Inner;

/// Writes partitions into rows that have none.
pub(crate) async fn assign_partitions(store: &Inner, partitions: &[(RowId, u8)]) -> Result<(), Failure> {
    if partitions.is_empty() {
        return Ok(());
    }
    let mut ascending: Vec<&(RowId, u8)> = partitions.iter().collect();
    ascending.sort_unstable_by_key(|(row, _)| row.seq);
    let partitions: Vec<i16> = ascending.iter().map(|(_, partition)| i16::from(*partition)).collect();
    let rows = Rows::ascending(ascending.into_iter().map(|(row, _)| row));
    let mut params: Vec<Param<'_>> = Vec::new();
    rows.bind(&mut params);
    params.push((&partitions, Type::INT2_ARRAY));
    let session = store.sessions.session().await?;
    session.query(&store.sql.assign_partitions, &params).await?;
    session.finish();
    Ok(())
}

/// Takes the due time from pending rows whose time has come.
pub(crate) async fn promote_due(store: &Inner, rows: &[RowId]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows = Rows::ascending(rows);
    let mut params: Vec<Param<'_>> = Vec::new();
    rows.bind(&mut params);
    let session = store.sessions.session().await?;
    session.query(&store.sql.promote_due, &params).await?;
    session.finish();
    Ok(())
}

/// The highest `seq` of the table, or the last number that was given if that is lower, and the transactions that may still commit rows below.
/// If numbers come in no order, no transactions are named, since they prove nothing.
pub(crate) async fn writers(store: &Inner) -> Result<Writers, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.writers, &[]).await?;
    session.finish();
    Ok(decode(rows.first().ok_or_else(no_row)?)?.0)
}

/// The same within a transaction, with the last number that was given; `None` if the user may not know it.
pub(crate) async fn writers_of(
    store: &Inner,
    transaction: &Transaction<'_>,
) -> Result<(Writers, Option<i64>), Failure> {
    Ok(decode(&transaction.query_typed_one(&store.sql.writers, &[]).await?)?)
}

fn decode(row: &Row) -> Result<(Writers, Option<i64>), Error> {
    let are_in_order: bool = row.try_get(3)?;
    let open = are_in_order.then(|| row.try_get(1)).transpose()?;
    Ok((Writers { highest: row.try_get(0)?, open, prepared: row.try_get(2)? }, row.try_get(4)?))
}
