use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::store::InboxConsumer;
use pillarbox_core::write::{Action, Bind, Command, Statement};
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::{size, wait};
use crate::row::Micros;
use crate::session::BY_INDEX;
use crate::settle::micros;
use crate::sql::Sql;
use crate::store::Inner;

/// The statement that records a message in the user's transaction.
pub(crate) fn receive<'a>(sql: &Sql, reusable: bool, consumer: &'a str, message_id: &'a str) -> Command<'a> {
    let binds = vec![Bind::Text(Some(consumer)), Bind::Text(Some(message_id))];
    let statements = vec![Statement { sql: Arc::clone(&sql.receive), binds, reusable }];
    Command { action: Action::Receive { consumer, message_id }, statements }
}

/// A page of the consumers.
pub(crate) async fn consumers(store: &Inner, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, Failure> {
    // No name is empty.
    let (after, limit) = (after.unwrap_or_default(), size(limit));
    let mut session = store.sessions.session().await?;
    let rows =
        session.query_by_index(&store.sql.inbox_consumers, &[(&after, Type::TEXT), (&limit, Type::INT8)]).await?;
    session.finish();
    let consumer = |row: &tokio_postgres::Row| {
        let (oldest, now): (Micros, Micros) = (row.try_get(1)?, row.try_get(2)?);
        Ok(InboxConsumer { name: row.try_get(0)?, oldest: wait(now, oldest) })
    };
    rows.iter().map(consumer).collect()
}

/// Counts the messages of a consumer.
pub(crate) async fn count(store: &Inner, consumer: &str) -> Result<u64, Failure> {
    let most = i64::try_from(InboxConsumer::COUNTED_UP_TO).unwrap_or(i64::MAX);
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.inbox_count, &[(&consumer, Type::TEXT), (&most, Type::INT8)]).await?;
    session.finish();
    let count: i64 = rows.first().ok_or_else(no_row)?.try_get(0)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Deletes the oldest messages of a consumer.
pub(crate) async fn purge(store: &Inner, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, Failure> {
    let (age, limit) = (micros(older_than), size(limit));
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    transaction.batch_execute(BY_INDEX).await?;
    let params: [crate::session::Param<'_>; 3] = [(&consumer, Type::TEXT), (&age, Type::INT8), (&limit, Type::INT8)];
    let removed = transaction.execute_typed(&store.sql.inbox_purge, &params).await?;
    transaction.commit().await?;
    session.finish();
    Ok(removed)
}
