//! What order per key needs beside fetching: partitions in all rows, due rows in their place, and who may still commit.

use pillarbox_core::store::Writers;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::store::Inner;

/// Writes partitions into rows that have none.
pub(crate) async fn stamp(store: &Inner, rows: &[(i64, u8)]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut rows = rows.to_vec();
    // In the same order everywhere: nodes that stamp the same rows wait for each other and not in a circle.
    rows.sort_unstable();
    let (seqs, partitions): (Vec<i64>, Vec<i16>) =
        rows.into_iter().map(|(seq, partition)| (seq, i16::from(partition))).unzip();
    let session = store.sessions.session().await?;
    session.query(&store.sql.stamp, &[(&seqs, Type::INT8_ARRAY), (&partitions, Type::INT2_ARRAY)]).await?;
    session.finish();
    Ok(())
}

/// Takes the due time from NEW rows whose time has come.
pub(crate) async fn ripen(store: &Inner, seqs: &[i64]) -> Result<(), Failure> {
    if seqs.is_empty() {
        return Ok(());
    }
    let mut seqs = seqs.to_vec();
    seqs.sort_unstable();
    let session = store.sessions.session().await?;
    session.query(&store.sql.ripen, &[(&seqs, Type::INT8_ARRAY)]).await?;
    session.finish();
    Ok(())
}

/// How far the table has been written, and which transactions may still commit rows below.
pub(crate) async fn writers(store: &Inner) -> Result<Writers, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.writers, &[]).await?;
    session.finish();
    let row = rows.first().ok_or_else(no_row)?;
    Ok(Writers { highest: row.try_get(0)?, open: Some(row.try_get(1)?) })
}
