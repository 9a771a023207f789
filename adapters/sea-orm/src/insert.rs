use pillarbox_core::write::{Action, Bind, Command, Connection, ConnectionId, Dialect, Insert, Lookup};
use sea_orm::{ConnectionTrait as _, DatabaseTransaction, DbBackend, DbErr, RuntimeErr, Statement, Value};

use crate::SeaOrm;
use crate::array;

#[diagnostic::do_not_recommend]
impl Connection<SeaOrm> for DatabaseTransaction {
    type Error = DbErr;

    fn dialect(&self) -> Dialect {
        dialect(self)
    }

    /// The type says so.
    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    async fn insert(&mut self, rows: &Insert<'_>) -> Result<Vec<i64>, DbErr> {
        insert(self, rows).await
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, DbErr> {
        run(self, command).await
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, DbErr> {
        read(self, lookup).await
    }
}

/// The closure of SeaORM's own `transaction`, and functions, have a shared reference.
#[diagnostic::do_not_recommend]
impl Connection<SeaOrm> for &DatabaseTransaction {
    type Error = DbErr;

    fn dialect(&self) -> Dialect {
        dialect(self)
    }

    /// The type says so.
    fn in_transaction(&mut self) -> Option<bool> {
        Some(true)
    }

    async fn insert(&mut self, rows: &Insert<'_>) -> Result<Vec<i64>, DbErr> {
        insert(self, rows).await
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, DbErr> {
        run(self, command).await
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, DbErr> {
        read(self, lookup).await
    }

    /// That of the transaction.
    fn id(&self) -> ConnectionId {
        ConnectionId::of::<DatabaseTransaction>(self)
    }
}

fn dialect(transaction: &DatabaseTransaction) -> Dialect {
    match transaction.get_database_backend() {
        DbBackend::MySql => Dialect::MYSQL,
        DbBackend::Postgres => Dialect::POSTGRES,
        DbBackend::Sqlite => Dialect::SQLITE,
        // No store speaks it, so that it is refused.
        _ => Dialect::new("a database that Pillarbox does not know"),
    }
}

/// Fails if MySQL has rolled the transaction back by itself, as it does when it loses a deadlock: a savepoint is gone then as
/// soon as it is set. What is sent next would commit by itself.
const STILL_OPEN_MYSQL: &str = "SAVEPOINT pillarbox; RELEASE SAVEPOINT pillarbox";

/// Fails where no transaction is open: what is sent next would commit by itself, without the business rows. PostgreSQL ends none by itself.
pub(crate) async fn ensure_open(transaction: &DatabaseTransaction) -> Result<(), DbErr> {
    match transaction.get_database_backend() {
        DbBackend::MySql => transaction.execute_unprepared(STILL_OPEN_MYSQL).await.map(drop),
        DbBackend::Sqlite if !is_open_sqlite(transaction).await? => {
            transaction.execute_unprepared("ROLLBACK").await?;
            Err(ended())
        }
        _ => Ok(()),
    }
}

/// True if a transaction is open; if none was, one is now. SQLite ends a whole transaction by itself after some errors, such as a full disk, and SeaORM
/// does not notice. Within a transaction `BEGIN` fails, and that is all it does.
pub(crate) async fn is_open_sqlite(transaction: &DatabaseTransaction) -> Result<bool, DbErr> {
    match transaction.execute_unprepared("BEGIN").await {
        Err(error) if error.to_string().contains("within a transaction") => Ok(true),
        Err(error) => Err(error),
        Ok(_) => Ok(false),
    }
}

/// The error where SQLite has ended the transaction.
pub(crate) fn ended() -> DbErr {
    refused(
        "the transaction is not open any more: a statement, or SQLite itself after an error, has ended it; begin a new one and repeat all of it",
    )
}

async fn insert(transaction: &DatabaseTransaction, insert: &Insert<'_>) -> Result<Vec<i64>, DbErr> {
    ensure_open(transaction).await?;
    let mut seqs = Vec::with_capacity(insert.rows.len());
    for statement in &insert.statements {
        let first = seqs.len();
        for row in transaction.query_all_raw(bound(transaction, statement)?).await? {
            seqs.push(row.try_get_by_index(0)?);
        }
        // `RETURNING` promises no order; the store promises that they ascend in the order of the rows.
        seqs[first..].sort_unstable();
    }
    if seqs.is_empty() && insert.rows.len() == 1 && transaction.get_database_backend() == DbBackend::MySql {
        seqs.push(generated(transaction).await?);
    }
    Ok(seqs)
}

/// The number that MySQL, which returns nothing from an insert, gave the one row of it.
async fn generated(transaction: &DatabaseTransaction) -> Result<i64, DbErr> {
    let select = Statement::from_string(DbBackend::MySql, "SELECT CAST(LAST_INSERT_ID() AS SIGNED)");
    let row = transaction.query_one_raw(select).await?;
    row.ok_or_else(|| refused("the server does not say which `seq` it has generated"))?.try_get_by_index(0)
}

async fn run(transaction: &DatabaseTransaction, command: &Command<'_>) -> Result<u64, DbErr> {
    ensure_open(transaction).await?;
    let mut rows = 0;
    for statement in &command.statements {
        if matches!(command.action, Action::Savepoint) {
            transaction.execute_unprepared(&statement.sql).await?;
            continue;
        }
        rows = transaction.execute_raw(bound(transaction, statement)?).await?.rows_affected();
    }
    Ok(rows)
}

async fn read(transaction: &DatabaseTransaction, lookup: &Lookup<'_>) -> Result<Vec<String>, DbErr> {
    let mut texts = Vec::new();
    for statement in &lookup.statements {
        for row in transaction.query_all_raw(bound(transaction, statement)?).await? {
            texts.push(row.try_get_by_index(0)?);
        }
    }
    Ok(texts)
}

/// A statement of the store with its values. The text is the store's own, none of it comes from a user.
fn bound(
    transaction: &DatabaseTransaction,
    statement: &pillarbox_core::write::Statement<'_>,
) -> Result<Statement, DbErr> {
    let values = statement.binds.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    Ok(Statement::from_sql_and_values(transaction.get_database_backend(), &*statement.sql, values))
}

fn value(bind: &Bind<'_>) -> Result<Value, DbErr> {
    Ok(match bind {
        Bind::Int(value) => Value::BigInt(*value),
        Bind::Text(value) => Value::String(value.map(str::to_owned)),
        Bind::Bytes(value) => Value::Bytes(value.map(<[u8]>::to_vec)),
        Bind::Ints(values) => Value::String(Some(array::of_ints(values))),
        Bind::Texts(values) => Value::String(Some(array::of_texts(values))),
        Bind::ByteArrays(values) => Value::String(Some(array::of_bytes(values))),
        _ => return Err(refused("the statement binds a kind of value that this adapter does not know; upgrade it")),
    })
}

fn refused(why: &str) -> DbErr {
    DbErr::Query(RuntimeErr::Internal(why.to_owned()))
}
