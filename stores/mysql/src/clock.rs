//! The clock of the database, by which leases and due times are compared.

use pillarbox_core::clock::Timestamp;

use crate::answer::int;
use crate::error::Failure;
use crate::store::Inner;

/// The database's time.
pub(crate) async fn now(store: &Inner) -> Result<Timestamp, Failure> {
    let answers = store.sessions.run(&store.sql.now).await?;
    Ok(Timestamp::from_micros(answers.first(0).map_or(Ok(0), |row| int(row, 0))?))
}
