use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, Params, Row, Transaction, Value};
use pillarbox_core::write::{Action, Bind, Command, Connection, Dialect, Insert, Lookup, Statement};

use crate::MysqlAsync;
use crate::open::{ensure_open, is_open};

#[diagnostic::do_not_recommend]
impl Connection<MysqlAsync> for Transaction<'_> {
    type Error = Error;

    fn dialect(&self) -> Dialect {
        Dialect::MYSQL
    }

    fn in_transaction(&mut self) -> Option<bool> {
        is_open(self)
    }

    async fn insert(&mut self, insert: &Insert<'_>) -> Result<Vec<i64>, Error> {
        ensure_open(self).await?;
        let mut seqs = Vec::with_capacity(insert.rows.len());
        let mut generated = None;
        for statement in &insert.statements {
            let mut result = self.exec_iter(&*statement.sql, params(statement)?).await?;
            generated = result.last_insert_id();
            for row in result.collect::<Row>().await? {
                seqs.push(seq(row)?);
            }
        }
        // MySQL returns nothing from an insert. Of a single row its answer says what was generated.
        if let (true, 1, Some(generated)) = (seqs.is_empty(), insert.rows.len(), generated) {
            seqs.push(i64::try_from(generated).map_err(|_| unexpected("a `seq` that is no 64-bit integer"))?);
        }
        Ok(seqs)
    }

    async fn run(&mut self, command: &Command<'_>) -> Result<u64, Error> {
        ensure_open(self).await?;
        let mut rows = 0;
        for statement in &command.statements {
            if matches!(command.action, Action::Savepoint) {
                self.query_drop(&*statement.sql).await?;
                continue;
            }
            self.exec_drop(&*statement.sql, params(statement)?).await?;
            rows = self.affected_rows();
        }
        Ok(rows)
    }

    async fn read(&mut self, lookup: &Lookup<'_>) -> Result<Vec<String>, Error> {
        let mut texts = Vec::new();
        for statement in &lookup.statements {
            texts.extend(self.exec::<String, _, _>(&*statement.sql, params(statement)?).await?);
        }
        Ok(texts)
    }
}

fn seq(mut row: Row) -> Result<i64, Error> {
    row.take_opt(0).and_then(Result::ok).ok_or_else(|| unexpected("no `seq`"))
}

fn params(statement: &Statement<'_>) -> Result<Params, Error> {
    if statement.binds.is_empty() {
        return Ok(Params::Empty);
    }
    Ok(Params::Positional(statement.binds.iter().map(value).collect::<Result<_, _>>()?))
}

fn value(bind: &Bind<'_>) -> Result<Value, Error> {
    match bind {
        Bind::Int(value) => Ok(Value::from(*value)),
        Bind::Text(value) => Ok(Value::from(*value)),
        Bind::Bytes(value) => Ok(Value::from(*value)),
        _ => Err(Error::Other("the statement binds a kind of value that MySQL cannot take".into())),
    }
}

fn unexpected(answer: &str) -> Error {
    Error::Other(format!("the server answered an insert with {answer}").into())
}
