use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::store::InboxConsumer;
use pillarbox_core::write::{Action, Bind, Command, Statement};

use crate::answer::{bytes, count as number, int, text};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::settle::micros;
use crate::sql::{Sql, script};
use crate::store::Inner;

/// The statement that records a message in the user's transaction.
pub(crate) fn receive<'a>(sql: &Sql, consumer: &'a str, message_id: &'a str) -> Command<'a> {
    // Bytes, which no character set of a connection changes.
    let binds = [consumer, message_id].map(|text| Bind::Bytes(Some(text.as_bytes()))).into();
    let statements = vec![Statement { sql: Arc::clone(&sql.receive), binds, reusable: true }];
    Command { action: Action::Receive { consumer, message_id }, statements }
}

/// A page of the consumers.
pub(crate) async fn consumers(store: &Inner, after: Option<&str>, limit: usize) -> Result<Vec<InboxConsumer>, Failure> {
    // No name is empty.
    let page = [("after", &Literal::bytes(after.unwrap_or_default())), ("limit", &Literal::count(limit))];
    let answers = store.sessions.run(fill(&store.sql.inbox_consumers, &page)).await?;
    let consumer = |row| {
        let age = Duration::from_micros(u64::try_from(int(row, 1)?).unwrap_or(0));
        Ok(InboxConsumer { name: text(row, 0)?.unwrap_or_default().to_owned(), oldest: age })
    };
    answers.rows(0).iter().map(consumer).collect()
}

/// Counts the messages of a consumer.
pub(crate) async fn count(store: &Inner, consumer: &str) -> Result<u64, Failure> {
    let most = Literal::int(i64::try_from(InboxConsumer::COUNTED_UP_TO).unwrap_or(i64::MAX));
    let values = [("consumer", &Literal::bytes(consumer)), ("most", &most)];
    let answers = store.sessions.run(fill(&store.sql.inbox_count, &values)).await?;
    answers.first(0).map_or(Ok(0), |row| number(row, 0))
}

/// Deletes the oldest messages of a consumer.
pub(crate) async fn purge(store: &Inner, consumer: &str, older_than: Duration, limit: usize) -> Result<u64, Failure> {
    let consumer = Literal::bytes(consumer);
    let values =
        [("consumer", &consumer), ("age", &Literal::int(micros(older_than))), ("limit", &Literal::count(limit))];
    let mut session = store.sessions.session().await?;
    let answers = session.run(script(["START TRANSACTION", &fill(&store.sql.inbox_old, &values)])).await?;
    let old = answers.rows(1).iter().map(|row| Ok(bytes(row, 0)?.unwrap_or_default()));
    let ids = Literal::byte_strings(old.collect::<Result<Vec<_>, Failure>>()?);
    let delete = fill(&store.sql.inbox_delete, &[("consumer", &consumer), ("ids", &ids)]);
    let answers = session.run(script([&*delete, "COMMIT"])).await?;
    session.finish();
    Ok(answers.matched(0))
}
