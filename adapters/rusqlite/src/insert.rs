use std::future::{Future, ready};

use pillarbox_core::write::{Bind, Command, Connection, ConnectionId, Dialect, Insert, Lookup, Statement, Synchronous};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Error, Row, Savepoint, Transaction, params_from_iter};

use crate::Rusqlite;

/// A transaction, or a savepoint in one: both are their connection.
macro_rules! connection {
    ($transaction:ident) => {
        impl Synchronous<Rusqlite> for $transaction<'_> {}

        #[diagnostic::do_not_recommend]
        impl Connection<Rusqlite> for $transaction<'_> {
            type Error = Error;

            fn dialect(&self) -> Dialect {
                Dialect::SQLITE
            }

            /// False once somebody, or SQLite itself after an error of that weight, has ended the transaction.
            fn in_transaction(&mut self) -> Option<bool> {
                Some(!self.is_autocommit())
            }

            fn insert(&mut self, rows: &Insert<'_>) -> impl Future<Output = Result<Vec<i64>, Error>> + Send {
                ready(insert(self, rows))
            }

            fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, Error>> + Send {
                ready(run(self, command))
            }

            fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, Error>> + Send {
                ready(read(self, lookup))
            }

            /// Savepoints are of the same connection.
            fn id(&self) -> ConnectionId {
                ConnectionId::of::<rusqlite::Connection>(self)
            }
        }
    };
}

connection!(Transaction);
connection!(Savepoint);

fn insert(connection: &rusqlite::Connection, insert: &Insert<'_>) -> Result<Vec<i64>, Error> {
    let mut seqs = Vec::with_capacity(insert.rows.len());
    for statement in &insert.statements {
        let first = seqs.len();
        each_row(connection, statement, |row| {
            seqs.push(row.get(0)?);
            Ok(())
        })?;
        // `RETURNING` promises no order; the store promises that they ascend in the order of the rows.
        seqs[first..].sort_unstable();
    }
    Ok(seqs)
}

fn run(connection: &rusqlite::Connection, command: &Command<'_>) -> Result<u64, Error> {
    for statement in &command.statements {
        // Not `execute`, which refuses a statement that returns rows, as those may that lock.
        each_row(connection, statement, |_| Ok(()))?;
    }
    Ok(if command.statements.is_empty() { 0 } else { connection.changes() })
}

fn read(connection: &rusqlite::Connection, lookup: &Lookup<'_>) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    for statement in &lookup.statements {
        each_row(connection, statement, |row| {
            texts.push(row.get(0)?);
            Ok(())
        })?;
    }
    Ok(texts)
}

/// Runs a statement to its end. One that comes again is prepared once for each connection.
fn each_row(
    connection: &rusqlite::Connection,
    statement: &Statement<'_>,
    mut visit: impl FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut cached, mut fresh);
    let prepared: &mut rusqlite::Statement<'_> = if statement.reusable {
        cached = connection.prepare_cached(&statement.sql)?;
        &mut cached
    } else {
        fresh = connection.prepare(&statement.sql)?;
        &mut fresh
    };
    let mut rows = prepared.query(params_from_iter(values(statement)?))?;
    while let Some(row) = rows.next()? {
        visit(row)?;
    }
    Ok(())
}

fn values<'a>(statement: &Statement<'a>) -> Result<Vec<ToSqlOutput<'a>>, Error> {
    let value = |bind: &Bind<'a>| {
        let value = match bind {
            Bind::Int(Some(value)) => ToSqlOutput::Owned(Value::Integer(*value)),
            Bind::Text(Some(value)) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            Bind::Bytes(Some(value)) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            Bind::Int(None) | Bind::Text(None) | Bind::Bytes(None) => ToSqlOutput::Owned(Value::Null),
            _ => return Err(Error::ToSqlConversionFailure(UNSUPPORTED.into())),
        };
        Ok(value)
    };
    statement.binds.iter().map(value).collect()
}

/// The error for a statement of another store's.
const UNSUPPORTED: &str = "the statement binds a kind of value that SQLite cannot take";
