use deadpool_postgres::GenericClient;
use pillarbox_core::write::{Command, Connection, ConnectionId, Dialect, Insert, Lookup, Statement};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use crate::TokioPostgres;
use crate::bind::Value;

#[diagnostic::do_not_recommend]
impl Connection<TokioPostgres> for tokio_postgres::Transaction<'_> {
    type Error = Error;

    fn dialect(&self) -> Dialect {
        Dialect::POSTGRES
    }

    /// The type says so.
    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    /// One round trip a statement: without a cache, preparing one would take a second.
    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, Error> {
        let mut seqs = Vec::with_capacity(insert.rows.len());
        for statement in &insert.statements {
            let values = values(statement);
            collect(&mut seqs, &self.query_typed(&statement.sql, &typed(&values)).await?)?;
        }
        Ok(seqs)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, Error> {
        let mut rows = 0;
        for statement in &command.statements {
            let values = values(statement);
            rows = self.execute_typed(&statement.sql, &typed(&values)).await?;
        }
        Ok(rows)
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, Error> {
        read(self.client(), lookup).await
    }

    /// Nested transactions are of the same client.
    fn id(&self) -> ConnectionId {
        ConnectionId::of(self.client())
    }
}

#[diagnostic::do_not_recommend]
impl Connection<TokioPostgres> for deadpool_postgres::Transaction<'_> {
    type Error = Error;

    fn dialect(&self) -> Dialect {
        Dialect::POSTGRES
    }

    /// The type says so.
    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, Error> {
        insert_prepared(self, self.client(), insert).await
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, Error> {
        run_prepared(self, self.client(), command).await
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, Error> {
        read(self.client(), lookup).await
    }

    fn id(&self) -> ConnectionId {
        ConnectionId::of(self.client())
    }
}

/// A statement that comes again is prepared once for each connection. Any other is sent as it is, since a pooler may not know prepared ones.
pub(crate) async fn insert_prepared<C: GenericClient>(
    pooled: &C,
    client: &Client,
    insert: &Insert<'_>,
) -> Result<Vec<i64>, Error> {
    let mut seqs = Vec::with_capacity(insert.rows.len());
    for statement in &insert.statements {
        let values = values(statement);
        let rows = if statement.reusable {
            let prepared = prepare(pooled, statement, &values).await?;
            pooled.query(&prepared, &by_reference(&values)).await?
        } else {
            client.query_typed(&statement.sql, &typed(&values)).await?
        };
        collect(&mut seqs, &rows)?;
    }
    Ok(seqs)
}

/// As [`insert_prepared`], for a change.
pub(crate) async fn run_prepared<C: GenericClient>(
    pooled: &C,
    client: &Client,
    command: &Command<'_>,
) -> Result<u64, Error> {
    let mut rows = 0;
    for statement in &command.statements {
        let values = values(statement);
        rows = if statement.reusable {
            let prepared = prepare(pooled, statement, &values).await?;
            pooled.execute(&prepared, &by_reference(&values)).await?
        } else {
            client.execute_typed(&statement.sql, &typed(&values)).await?
        };
    }
    Ok(rows)
}

/// Not prepared: nobody asks twice.
pub(crate) async fn read(client: &Client, lookup: &Lookup<'_>) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    for statement in &lookup.statements {
        let values = values(statement);
        for row in client.query_typed(&statement.sql, &typed(&values)).await? {
            texts.push(row.try_get(0)?);
        }
    }
    Ok(texts)
}

async fn prepare<C: GenericClient>(
    pooled: &C,
    statement: &Statement<'_>,
    values: &[Value<'_>],
) -> Result<tokio_postgres::Statement, Error> {
    let types: Vec<Type> = values.iter().map(Value::sql_type).collect();
    pooled.prepare_typed_cached(&statement.sql, &types).await
}

fn by_reference<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as _).collect()
}

fn typed<'a>(values: &'a [Value<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as _, value.sql_type())).collect()
}

fn values<'a>(statement: &'a Statement<'a>) -> Vec<Value<'a>> {
    statement.binds.iter().map(Value).collect()
}

/// Adds the `seq` of one statement's rows.
fn collect(seqs: &mut Vec<i64>, rows: &[Row]) -> Result<(), Error> {
    let first = seqs.len();
    for row in rows {
        seqs.push(row.try_get(0)?);
    }
    // `RETURNING` promises no order; the store promises that they ascend in the order of the rows.
    seqs[first..].sort_unstable();
    Ok(())
}
