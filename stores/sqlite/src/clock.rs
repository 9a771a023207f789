//! The clock of the database, by which leases and due times are compared.

use pillarbox_core::clock::Timestamp;
use sqlx::query_scalar;

use crate::store::Session;

/// The database's time.
pub(crate) async fn now(session: &mut Session<'_>) -> sqlx::Result<Timestamp> {
    let now = query_scalar(session.sql.now.clone()).fetch_one(&mut *session.connection).await?;
    Ok(Timestamp::from_micros(now))
}
