use pillarbox_core::examine::beginning;
use pillarbox_core::store::TableName;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::versions::tables;
use crate::error::Failure;
use crate::store::Inner;

const BLOCKERS: &str = include_str!("../../sql/blockers.sql");
const WAITS_FOR: &str = include_str!("../../sql/waits_for.sql");

/// The sessions for which a statement waits that another session runs, in words. They are asked for in a transaction that ends with the answer:
/// the build would wait for one that stays open.
pub(super) async fn waited_for(store: &Inner, statement: &str) -> Result<String, Failure> {
    let session = store.sessions.session().await?;
    let blockers = in_words(&session.query(WAITS_FOR, &[(&statement, Type::TEXT)]).await?)?;
    session.finish();
    Ok(blockers)
}

/// The sessions that keep the tables from being changed, the oldest transaction first, in words.
pub(super) async fn blockers(client: &Client, table: &TableName) -> Result<String, Failure> {
    let names = tables(table);
    let blockers = in_words(&client.query_typed(BLOCKERS, &[(&names, Type::TEXT_ARRAY)]).await?)?;
    Ok(if blockers.is_empty() { "what held them has ended since".to_owned() } else { blockers })
}

/// Sessions with their transactions, in words.
fn in_words(rows: &[Row]) -> Result<String, Failure> {
    let mut blockers = Vec::new();
    for row in rows {
        let (pid, application, state): (i32, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let (age, query): (i64, String) = (row.try_get(3)?, row.try_get(4)?);
        blockers.push(format!("pid {pid} ({application}{state}, in a transaction for {age} s): {}", beginning(&query)));
    }
    Ok(blockers.join("; "))
}
