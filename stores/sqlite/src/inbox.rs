use std::time::Duration;

use pillarbox_core::store::InboxConsumer;
use sqlx::{query, query_as, query_scalar};

use crate::fetch::micros;
use crate::ownership::span;
use crate::store::Session;

/// A page of the consumers.
pub(crate) async fn consumers(
    session: &mut Session<'_>,
    after: Option<&str>,
    limit: usize,
) -> sqlx::Result<Vec<InboxConsumer>> {
    // No name is empty.
    let page = query_as(session.sql.inbox_consumers.clone()).bind(after.unwrap_or_default()).bind(size(limit));
    let rows: Vec<(String, i64)> = page.fetch_all(&mut *session.connection).await?;
    Ok(rows.into_iter().map(|(name, age)| InboxConsumer { name, oldest: micros(age) }).collect())
}

/// Counts the messages of a consumer.
pub(crate) async fn count(session: &mut Session<'_>, consumer: &str) -> sqlx::Result<u64> {
    let most = i64::try_from(InboxConsumer::COUNTED_UP_TO).unwrap_or(i64::MAX);
    let count = query_scalar(session.sql.inbox_count.clone()).bind(consumer).bind(most);
    count.fetch_one(&mut *session.connection).await
}

/// Deletes the oldest messages of a consumer.
pub(crate) async fn purge(
    session: &mut Session<'_>,
    consumer: &str,
    older_than: Duration,
    limit: usize,
) -> sqlx::Result<u64> {
    let delete = query(session.sql.inbox_purge.clone()).bind(consumer).bind(span(older_than)).bind(size(limit));
    Ok(delete.execute(&mut *session.connection).await?.rows_affected())
}

fn size(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
