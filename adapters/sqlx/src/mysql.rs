use futures_util::TryStreamExt as _;
use pillarbox_core::store::RowId;
use pillarbox_core::write::{
    Action, Begin, Bind, Command, Connection, Dialect, Finish, Insert, Lookup, Probe, Statement, Uninterrupted,
};
use sqlx::mysql::MySqlArguments;
use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, Connection as _, Either, Executor as _, MySql, MySqlConnection, MySqlPool, MySqlTransaction,
    Row as _,
};

use crate::Sqlx;
use crate::binds::{row_ids, unsupported};
use crate::transaction::ensure_outermost;

/// Fails where no transaction is open: a savepoint is gone then as soon as it is set.
///
/// The server rolls back a whole transaction by itself when it loses a deadlock. sqlx does not notice; what it sends next
/// commits by itself, and COMMIT succeeds. Events would exist without the business rows they were written with.
const STILL_OPEN: &str = "SAVEPOINT pillarbox; RELEASE SAVEPOINT pillarbox";

#[diagnostic::do_not_recommend]
impl Connection<Sqlx> for MySqlConnection {
    type Error = sqlx::Error;

    fn dialect(&self) -> Dialect {
        Dialect::MYSQL
    }

    fn in_transaction(&mut self) -> Option<bool> {
        Some(self.is_in_transaction())
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, sqlx::Error> {
        self.execute(sqlx::raw_sql(STILL_OPEN)).await?;
        let mut seqs = Vec::with_capacity(insert.rows.len());
        let mut generated = None;
        for statement in &insert.statements {
            let mut answers = self.fetch_many(query(statement)?);
            while let Some(answer) = answers.try_next().await? {
                match answer {
                    Either::Left(done) => generated = Some(done.last_insert_id()),
                    Either::Right(row) => seqs.push(row.try_get(0)?),
                }
            }
        }
        // MySQL returns nothing from an insert. Of a single row its answer says what was generated.
        if let (true, 1, Some(generated)) = (seqs.is_empty(), insert.rows.len(), generated) {
            seqs.push(i64::try_from(generated).map_err(|error| sqlx::Error::Decode(error.into()))?);
        }
        Ok(seqs)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, sqlx::Error> {
        self.execute(sqlx::raw_sql(STILL_OPEN)).await?;
        let mut rows = 0;
        for statement in &command.statements {
            if matches!(command.action, Action::Savepoint) {
                self.execute(sqlx::raw_sql(AssertSqlSafe(statement.sql.clone()))).await?;
                continue;
            }
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

impl Begin<Sqlx> for &MySqlPool {
    type Transaction = MySqlTransaction<'static>;
    type Error = sqlx::Error;

    async fn begin(self) -> Result<MySqlTransaction<'static>, sqlx::Error> {
        let connection = self.acquire().await?;
        // sqlx 0.9.0 counts a transaction only once `BEGIN` has been answered. Dropped before that, it returns the
        // connection to the pool inside a transaction that nobody knows of; so `BEGIN` is always seen through.
        Uninterrupted::new(MySqlTransaction::begin(connection, None)).await
    }
}

impl Finish<Sqlx> for MySqlTransaction<'_> {
    type Error = sqlx::Error;
    type Inner = MySqlConnection;
    const IS_ONLY_BORROWED: bool = true;

    fn commit_is_final(&self) -> bool {
        true
    }

    fn inner(&self) -> &MySqlConnection {
        self
    }

    fn inner_mut(&mut self) -> &mut MySqlConnection {
        self
    }

    /// The probe shares its round trip with the statement that fails if the server has already rolled the transaction back.
    async fn commit_verified(mut self, probe: &Probe) -> Result<Vec<RowId>, sqlx::Error> {
        ensure_outermost::<MySql>(&self)?;
        let found = match &probe.sql {
            None => self.execute(sqlx::raw_sql(STILL_OPEN)).await.map(|_| Vec::new())?,
            Some(sql) => {
                let sql = AssertSqlSafe(format!("{STILL_OPEN}; {sql}"));
                row_ids(&self.fetch_all(sqlx::raw_sql(sql)).await?)?
            }
        };
        MySqlTransaction::commit(self).await?;
        Ok(found)
    }

    async fn rollback(self) -> Result<(), sqlx::Error> {
        MySqlTransaction::rollback(self).await
    }
}

/// A statement of the store with its values bound. The text is the store's own, none of it comes from a user.
fn query<'q>(statement: &'q Statement<'_>) -> Result<Query<'q, MySql, MySqlArguments>, sqlx::Error> {
    let mut query = sqlx::query(AssertSqlSafe(statement.sql.clone())).persistent(statement.reusable);
    for bind in &statement.binds {
        query = match bind {
            Bind::Int(value) => query.bind(*value),
            Bind::Text(value) => query.bind(*value),
            Bind::Bytes(value) => query.bind(*value),
            _ => return Err(unsupported("MySQL")),
        };
    }
    Ok(query)
}
