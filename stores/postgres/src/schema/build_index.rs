use std::pin::pin;
use std::time::Duration;

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::refusal;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::blockers::waited_for;
use super::run_script::{time_limit, too_long};
use crate::error::Failure;
use crate::sql::qualified;
use crate::store::Inner;

const INDEX: &str = include_str!("../../sql/index.sql");

/// Creates indexes while the writers go on. One that an interrupted migration has left behind unfinished is built anew.
pub(super) async fn build(store: &Inner, client: &Client, indexes: &str, until: Instant) -> Result<(), Failure> {
    let event = qualified(&store.table, store.table.event());
    for create in indexes.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()) {
        let (head, rest) = create.split_once(" INDEX ").unwrap_or_default();
        let name = rest.split(" ON ").next().unwrap_or_default();
        let mut index = Index::find(client, &event, name).await?;
        if index.as_ref().is_some_and(|index| !index.is_valid) {
            // The session that began it may be at work on it still, and has this lock until then.
            let wait = format!("BEGIN; LOCK TABLE {event} IN SHARE UPDATE EXCLUSIVE MODE; COMMIT");
            wait_for(store, client, &wait, until).await?;
            index = Index::find_built(client, &event, name).await?;
        }
        match index {
            Some(Index { is_valid: true, .. }) => continue,
            Some(Index { name, .. }) => {
                wait_for(store, client, &format!("DROP INDEX CONCURRENTLY {name}"), until).await?;
            }
            None => {}
        }
        wait_for(store, client, &format!("{head} INDEX CONCURRENTLY {rest}"), until).await?;
    }
    Ok(())
}

/// An index of the event table.
struct Index {
    is_valid: bool,
    /// Its name with the schema, quoted.
    name: String,
}

impl Index {
    /// The index with this name, quoted. Tables in other schemas of the search path may have one of the same name.
    async fn find(client: &Client, event: &str, name: &str) -> Result<Option<Self>, Failure> {
        let rows = client.query_typed(INDEX, &[(&event, Type::TEXT), (&name.trim_matches('"'), Type::TEXT)]).await?;
        let index = |row: &Row| Ok(Self { is_valid: row.try_get(0)?, name: row.try_get(1)? });
        rows.first().map(index).transpose()
    }

    /// The same after a build may have ended: the server gives up the lock a moment before it commits that the index is valid.
    async fn find_built(client: &Client, event: &str, name: &str) -> Result<Option<Self>, Failure> {
        for _ in 0..10 {
            let index = Self::find(client, event, name).await?;
            if index.as_ref().is_none_or(|index| index.is_valid) {
                return Ok(index);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Self::find(client, event, name).await
    }
}

/// The interval at which the log says what a migration waits for.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// The time by which the server ends a statement later than this side gives it up, so that it can be asked which session that waits for.
const LAST_QUESTION: Duration = Duration::from_secs(2);

/// Runs a statement that waits for other transactions while nobody waits for it, and logs for which.
async fn wait_for(store: &Inner, client: &Client, statement: &str, until: Instant) -> Result<(), Failure> {
    // A pooler's sessions keep no settings.
    if !store.sessions.is_pooled() {
        client.batch_execute(&format!("SET lock_timeout = 0; SET {}", time_limit(until + LAST_QUESTION))).await?;
    }
    let mut work = pin!(client.batch_execute(statement));
    loop {
        if let Ok(done) = timeout_at(until.min(Instant::now() + TELL_EVERY), work.as_mut()).await {
            return Ok(done?);
        }
        // No answer, as where no further connection can be had, is no reason to end the work.
        let blockers =
            timeout(LAST_QUESTION, waited_for(store, statement)).await.ok().and_then(Result::ok).unwrap_or_default();
        let (table, is_over) = (&store.table, Instant::now() >= until);
        if blockers.is_empty() {
            if is_over {
                return Err(too_long(statement));
            }
            tracing::info!(%table, statement, "a migration is at work");
        } else {
            if is_over {
                let problem = refusal::in_use(table, &format!(": {blockers}"));
                return Err(Failure::Refused(StoreErrorKind::Contention, problem));
            }
            tracing::warn!(%table, %blockers, statement, "a migration waits for other transactions to end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::{Setting, with_table};
    use crate::schema::migrate::tests::{soon, tables_before};
    use crate::schema::migrate::{driving, migrate};

    #[tokio::test]
    async fn an_index_that_cannot_be_built_says_for_whom_it_waits() {
        with_table(Setting::WithoutStatistics, async |store| {
            let inner = store.inner();
            tables_before(store, 12).await;
            let (reader, wire) = inner.sessions.connect().await.expect("connects");
            let test = async {
                reader.batch_execute("SET idle_in_transaction_session_timeout = 0").await?;
                reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await?;
                let pid: i32 = reader.query_typed_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
                let end = soon();
                loop {
                    let until = Instant::now() + Duration::from_secs(3);
                    let refused = Box::pin(migrate(inner, Duration::ZERO, until)).await.expect_err("it has a snapshot");
                    let Failure::Refused(_, text) = refused else { panic!("{refused:?}") };
                    if text.contains(&format!("pid {pid} ")) && text.contains("migrate again") {
                        break;
                    }
                    // Other tests have snapshots as well, and it waits for one after the other.
                    assert!(Instant::now() < end, "{text}");
                }
                reader.batch_execute("COMMIT").await?;
                Box::pin(migrate(inner, Duration::ZERO, soon())).await
            };
            driving(wire, test).await.expect("migrates");
        })
        .await;
    }
}
