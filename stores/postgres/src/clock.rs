//! The clock of the database, by which leases and due times are compared.

use pillarbox_core::clock::Timestamp;

use crate::error::{Failure, no_row};
use crate::row::Micros;
use crate::store::Inner;

/// The database's time.
pub(crate) async fn now(store: &Inner) -> Result<Timestamp, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.now, &[]).await?;
    session.finish();
    Ok(rows.first().ok_or_else(no_row)?.try_get::<_, Micros>(0)?.into())
}
