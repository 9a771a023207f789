use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::examine::beginning;
use pillarbox_core::store::schema::LOCK_WAIT;
use tokio::time::Instant;

use crate::error::Failure;
use crate::sql::without_comments;

/// Runs the statements of a migration in its transaction. They may take their time, but not wait for others. The server ends one that
/// is not done by `until`: it would not notice that its client has gone.
pub(super) async fn run(transaction: &Transaction<'_>, script: &str, until: Instant) -> Result<(), Failure> {
    transaction.batch_execute(&format!("SET LOCAL lock_timeout = {}", LOCK_WAIT.as_millis())).await?;
    for statement in statements(script) {
        transaction.batch_execute(&format!("SET LOCAL {}", time_limit(until))).await?;
        if let Err(error) = transaction.batch_execute(&statement).await {
            let failure = Failure::from(error);
            return Err(if failure.is_cancelled() && Instant::now() >= until { too_long(&statement) } else { failure });
        }
    }
    Ok(())
}

/// The setting by which the server ends a statement at this time.
pub(super) fn time_limit(until: Instant) -> String {
    let left = until.saturating_duration_since(Instant::now()).as_millis();
    // Zero would be no limit.
    format!("statement_timeout = {}", i32::try_from(left).unwrap_or(i32::MAX).max(1))
}

/// The error for a statement that the server has ended at its time limit.
pub(super) fn too_long(statement: &str) -> Failure {
    let statement = beginning(&without_comments(statement));
    let problem = format!("this has taken longer than a migration may, and was ended: {statement}");
    Failure::Refused(StoreErrorKind::Unavailable, problem)
}

/// The statements of a script. A semicolon between two `$$` divides nothing.
fn statements(script: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for part in script.split_inclusive(";\n") {
        match statements.last_mut() {
            Some(open) if open.matches("$$").count() % 2 == 1 => open.push_str(part),
            _ => statements.push(part.to_owned()),
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pillarbox_core::store::TableName;
    use tokio::time::{sleep, timeout_at};

    use super::*;
    use crate::plans::{Setting, with_table};
    use crate::schema::versions::{adoption, script};
    use crate::sql::qualified;

    /// The server does not look at a connection while it is at work.
    #[tokio::test]
    async fn scripts_that_take_too_long_are_ended_by_the_server() {
        with_table(Setting::WithoutStatistics, async |store| {
            let inner = store.inner();
            let event = qualified(&inner.table, inner.table.event());
            let slow = format!("LOCK TABLE {event} IN ACCESS EXCLUSIVE MODE;\nSELECT pg_sleep(60);\n");
            let until = Instant::now() + Duration::from_secs(5);
            let mut session = inner.sessions.session().await.expect("a session");
            let transaction = session.transaction().await.expect("begins");
            let given_up = timeout_at(until - Duration::from_secs(4), run(&transaction, &slow, until)).await;
            assert!(given_up.is_err(), "it sleeps");
            drop(transaction);
            drop(session);
            let locks = format!("SELECT count(*) FROM pg_locks WHERE relation = '{event}'::regclass");
            let is_locked = async || {
                let session = inner.sessions.session().await.expect("a session");
                let rows = session.query(&locks, &[]).await.expect("asks");
                session.finish();
                rows[0].get::<_, i64>(0) > 0
            };
            assert!(is_locked().await, "the server has not heard of it");
            while is_locked().await {
                assert!(Instant::now() < until + Duration::from_secs(10), "the table is locked still");
                sleep(Duration::from_millis(50)).await;
            }

            let mut session = inner.sessions.session().await.expect("a session");
            let transaction = session.transaction().await.expect("begins");
            let until = Instant::now() + Duration::from_secs(1);
            let failure = run(&transaction, &slow, until).await.expect_err("the server ends it");
            let Failure::Refused(StoreErrorKind::Unavailable, text) = failure else { panic!("{failure:?}") };
            assert!(text.contains("SELECT pg_sleep("), "{text}");
        })
        .await;
    }

    #[test]
    fn a_script_is_divided_between_its_statements() {
        let table = TableName::default();
        let adopted = adoption(&table, include_str!("../../migrations/adopt_outbox_java.sql"));
        for whole in [script(&table, 0), adopted] {
            let statements = statements(&whole);
            assert_eq!(statements.concat(), whole);
            for statement in statements {
                let sql = without_comments(&statement);
                let first = sql.split_whitespace().next().unwrap_or_default();
                let known = ["CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "SELECT", "SET", "DO", ""];
                assert!(known.contains(&first) && sql.matches("$$").count().is_multiple_of(2), "{statement}");
            }
        }
    }
}
