use pillarbox_core::store::RowId;
use pillarbox_core::write::{
    Begin, Bind, Command, Connection, Dialect, Finish, Insert, Lookup, Probe, Statement, Uninterrupted,
};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool, PgTransaction, Postgres, Row as _};

use crate::Sqlx;
use crate::binds::{row_ids, unsupported};
use crate::transaction::ensure_outermost;

#[diagnostic::do_not_recommend]
impl Connection<Sqlx> for PgConnection {
    type Error = sqlx::Error;

    fn dialect(&self) -> Dialect {
        Dialect::POSTGRES
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(self.is_in_transaction())
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, sqlx::Error> {
        let mut seqs = Vec::with_capacity(insert.rows.len());
        for statement in &insert.statements {
            let first = seqs.len();
            for row in query(statement)?.fetch_all(&mut *self).await? {
                seqs.push(row.try_get(0)?);
            }
            // `RETURNING` promises no order; the store promises that they ascend in the order of the rows.
            seqs[first..].sort_unstable();
        }
        Ok(seqs)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, sqlx::Error> {
        let mut rows = 0;
        for statement in &command.statements {
            rows = query(statement)?.execute(&mut *self).await?.rows_affected();
        }
        Ok(rows)
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, sqlx::Error> {
        let mut texts = Vec::new();
        for statement in &lookup.statements {
            for row in query(statement)?.fetch_all(&mut *self).await? {
                texts.push(row.try_get(0)?);
            }
        }
        Ok(texts)
    }
}

impl Begin<Sqlx> for &PgPool {
    type Transaction = PgTransaction<'static>;
    type Error = sqlx::Error;

    async fn begin(self) -> Result<PgTransaction<'static>, sqlx::Error> {
        let connection = self.acquire().await?;
        // sqlx 0.9.0 counts a transaction only once `BEGIN` has been answered. Dropped before that, it returns the
        // connection to the pool inside a transaction that nobody knows of; so `BEGIN` is always seen through.
        Uninterrupted::new(PgTransaction::begin(connection, None)).await
    }
}

impl Finish<Sqlx> for PgTransaction<'_> {
    type Error = sqlx::Error;
    type Inner = PgConnection;
    const IS_ONLY_BORROWED: bool = true;

    fn commit_is_final(&self) -> bool {
        true
    }

    fn inner(&self) -> &PgConnection {
        self
    }

    fn inner_mut(&mut self) -> &mut PgConnection {
        self
    }

    /// PostgreSQL answers the `COMMIT` of a failed transaction with `ROLLBACK`, which sqlx takes for success. Any statement
    /// fails in such a transaction, so one is tried first; `SAVEPOINT` fails as well where somebody has ended the transaction
    /// by a statement of their own. The probe shares its round trip, and is planned for the table as it is now.
    async fn commit_verified(mut self, probe: &Probe) -> Result<Vec<RowId>, sqlx::Error> {
        ensure_outermost::<Postgres>(&self)?;
        let found = match &probe.sql {
            None => self.execute("SAVEPOINT pillarbox").await.map(|_| Vec::new())?,
            Some(sql) => {
                let sql = AssertSqlSafe(format!("SAVEPOINT pillarbox; {sql}"));
                row_ids(&self.fetch_all(sqlx::raw_sql(sql)).await?)?
            }
        };
        PgTransaction::commit(self).await?;
        Ok(found)
    }

    async fn rollback(self) -> Result<(), sqlx::Error> {
        PgTransaction::rollback(self).await
    }
}

/// A statement of the store with its values bound. The text is the store's own, none of it comes from a user.
fn query<'q>(statement: &'q Statement<'_>) -> Result<Query<'q, Postgres, PgArguments>, sqlx::Error> {
    let mut query = sqlx::query(AssertSqlSafe(statement.sql.clone())).persistent(statement.reusable);
    for bind in &statement.binds {
        query = match bind {
            Bind::Int(value) => query.bind(*value),
            Bind::Text(value) => query.bind(*value),
            Bind::Bytes(value) => query.bind(*value),
            Bind::Ints(values) => query.bind(values),
            Bind::Texts(values) => query.bind(values),
            Bind::ByteArrays(values) => query.bind(values),
            _ => return Err(unsupported("PostgreSQL")),
        };
    }
    Ok(query)
}
