use pillarbox_core::write::{Command, Connection, ConnectionId, Dialect, Insert, Lookup};
use sqlx::{Database, Error, Transaction};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use sqlx_core::transaction::TransactionManager as _;

use crate::Sqlx;

/// A transaction of sqlx, of whatever database, is its connection.
#[diagnostic::do_not_recommend]
impl<DB: Database> Connection<Sqlx> for Transaction<'_, DB>
where
    DB::Connection: Connection<Sqlx, Error = Error>,
{
    type Error = Error;

    fn dialect(&self) -> Dialect {
        Connection::dialect(&**self)
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Connection::in_transaction(&mut **self)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, Error> {
        Connection::insert(&mut **self, insert).await
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, Error> {
        Connection::run(&mut **self, command).await
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, Error> {
        Connection::read(&mut **self, lookup).await
    }

    fn id(&self) -> ConnectionId {
        Connection::id(&**self)
    }
}

/// True if this transaction is not nested in another one, as far as sqlx knows.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) fn is_outermost<DB: Database>(connection: &DB::Connection) -> bool {
    DB::TransactionManager::get_transaction_depth(connection) <= 1
}

/// Fails in a transaction that is nested in another one: its commit would release a savepoint, and commit nothing.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn ensure_outermost<DB: Database>(connection: &DB::Connection) -> Result<(), Error> {
    if is_outermost::<DB>(connection) {
        return Ok(());
    }
    let nested = "this transaction is nested in another one, and was rolled back; commit a nested one by its own `commit`, and hand the receipt in with the outermost transaction";
    Err(Error::Protocol(nested.to_owned()))
}
