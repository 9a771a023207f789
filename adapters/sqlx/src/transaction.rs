use pillarbox_core::write::{Command, Connection, ConnectionId, Dialect, Insert, Lookup};
use sqlx::{Database, Transaction};

use crate::Sqlx;

/// A transaction of sqlx, of whatever database, is its connection.
#[diagnostic::do_not_recommend]
impl<DB: Database> Connection<Sqlx> for Transaction<'_, DB>
where
    DB::Connection: Connection<Sqlx, Error = sqlx::Error>,
{
    type Error = sqlx::Error;

    fn dialect(&self) -> Dialect {
        Connection::dialect(&**self)
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Connection::in_transaction(&mut **self)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, sqlx::Error> {
        Connection::insert(&mut **self, insert).await
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, sqlx::Error> {
        Connection::run(&mut **self, command).await
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, sqlx::Error> {
        Connection::read(&mut **self, lookup).await
    }

    fn id(&self) -> ConnectionId {
        Connection::id(&**self)
    }
}
