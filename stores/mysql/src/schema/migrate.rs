use std::time::Duration;

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::schema::LOCK_WAIT;
use tokio::time::Instant;

use super::adopt::{ADOPT, is_to_be_adopted};
use super::check::{check, found};
use super::run_script::{make, statements};
use super::versions::{MIGRATIONS, create_database, upgrade};
use crate::answer::is_true;
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::sql::{render, without_comments};
use crate::store::Inner;

/// The time for which the migration of another process is waited for: less than a call may take in all.
const LONGEST_MIGRATION: Duration = Duration::from_secs(3000);

/// Runs the missing versions, one process at a time. If none is missing nothing is locked or written, and no privilege
/// to create tables is needed.
///
/// No statement waits for a table for longer than [`LOCK_WAIT`], since all that need the table queue behind one that waits. A
/// statement that did not get its lock is tried again for as long as `patience`. An object that a migration made and that is gone is an error.
pub(crate) async fn migrate(store: &Inner, patience: Duration) -> Result<(), Failure> {
    bring_up(store, patience).await?;
    check(store).await
}

async fn bring_up(store: &Inner, patience: Duration) -> Result<(), Failure> {
    let mut session = store.sessions.session().await?;
    let version = found(store, &mut session).await?;
    if upgrade(&MIGRATIONS, &store.table, version)?.is_empty() {
        session.finish();
        return Ok(());
    }
    lock(store, &mut session).await?;
    // Another process may have done it while this one waited.
    let version = found(store, &mut session).await?;
    let script = upgrade(&MIGRATIONS, &store.table, version)?;
    if !script.is_empty() && version.applied == 0 {
        prepare(store, &mut session, patience).await?;
    }
    for statement in statements(&without_comments(&script)) {
        make(store, &mut session, statement, patience).await?;
    }
    // The session is closed, not given back: with it go the lock, and the settings of the migration.
    Ok(())
}

/// Takes the lock of migrations of this table, and lets statements take their time, but not wait for others.
async fn lock(store: &Inner, session: &mut Session) -> Result<(), Failure> {
    let limits = format!(
        "SET SESSION wait_timeout = 28800, lock_wait_timeout = {0}, innodb_lock_wait_timeout = {0} \
         /*!80001 , max_execution_time = 0 */ /*M!100600 , max_statement_time = 0 */",
        LOCK_WAIT.as_secs()
    );
    session.run(limits).await?;
    let values = [
        ("schema", &Literal::optional_text(store.table.schema())),
        ("table", &Literal::text(store.table.event())),
        ("seconds", &Literal::int(LOCK_WAIT.as_secs().try_into().unwrap_or(1))),
    ];
    let take = fill(&store.sql.migration_lock, &values);
    let (deadline, mut is_told) = (Instant::now() + LONGEST_MIGRATION, false);
    loop {
        let answers = session.run(&take).await?;
        if answers.first(0).map(|row| is_true(row, 0)).transpose()? == Some(true) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let problem =
                "another migration of these tables has not ended; wait for it, or end its connection".to_owned();
            return Err(Failure::Refused(StoreErrorKind::Contention, problem));
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::warn!(table = %store.table, "another migration is under way; waiting for its end");
        }
    }
}

/// Before the first version: adopts a table of outbox-java, and makes the database. The checks that refuse come first.
async fn prepare(store: &Inner, session: &mut Session, patience: Duration) -> Result<(), Failure> {
    let table = &store.table;
    let is_to_be_adopted = is_to_be_adopted(store, session).await?;
    if let Some(schema) = table.schema() {
        let exists = fill(&store.sql.schema_exists, &[("schema", &Literal::text(schema))]);
        // It wants the privilege to create databases even where there is nothing to do.
        if session.run(exists).await?.first(0).is_none() {
            session.run(create_database(schema)).await?;
        }
    }
    if is_to_be_adopted {
        make(store, session, &render(&without_comments(ADOPT), table), patience).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::int;
    use crate::plans::with_tables;

    #[tokio::test]
    async fn a_migration_that_gets_no_lock_says_which_transactions_are_open() {
        with_tables(async |store, session, database| {
            let event = format!("{database}.outbox_event");
            let back = format!(
                "DELETE FROM {database}.outbox_migration WHERE version >= 4; ALTER TABLE {event} DROP KEY pillarbox_heads"
            );
            session.run(back).await.expect("goes back");
            let insert = format!("INSERT INTO {event} (event_id, event_type, payload) VALUES ('secret', 't', '1')");
            let open = session.run(format!("START TRANSACTION; {insert}; SELECT CONNECTION_ID()")).await.expect("inserts");
            let connection = int(open.first(2).expect("a row"), 0).expect("a number");
            let refused = migrate(store.inner(), Duration::ZERO).await.expect_err("it gets no lock");
            let Failure::Refused(StoreErrorKind::Contention, text) = refused else { panic!("{refused:?}") };
            for part in [&*format!("connection {connection} for "), "in use", "migrate again"] {
                assert!(text.contains(part), "{part} is missing in: {text}");
            }
            assert!(!text.contains("secret"), "{text}");
            session.run("COMMIT").await.expect("commits");
            migrate(store.inner(), Duration::ZERO).await.expect("migrates");
        })
        .await;
    }
}
