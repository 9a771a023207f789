use std::time::Duration;

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::refusal;
use pillarbox_core::store::schema::LOCK_PAUSE;
use tokio::time::{Instant, sleep};

use super::blockers::open_transactions;
use super::columns::{columns, taken};
use crate::error::Failure;
use crate::session::Session;
use crate::sql::qualified;
use crate::store::Inner;

/// The statements of a script, each of which ends with its line.
pub(super) fn statements(script: &str) -> impl Iterator<Item = &str> {
    script.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

/// Runs a statement of a migration. Columns and indexes that are there already were made by a migration that was cut short, or else
/// are refused: no other may have these names in a table of ours.
pub(super) async fn make(
    store: &Inner,
    session: &mut Session,
    statement: &str,
    patience: Duration,
) -> Result<(), Failure> {
    // From the first lock that was refused: the time that the statement before took for its own work does not count.
    let mut deadline = None;
    loop {
        match session.run(statement).await {
            Err(failure) if failure.is_there_already() => return check_made(store, session, statement).await,
            Err(failure) if failure.is_contention() => {
                let (table, open) = (&store.table, open_transactions(session).await);
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + patience);
                if Instant::now() >= deadline {
                    return Err(Failure::Refused(StoreErrorKind::Contention, refusal::in_use(table, &open)));
                }
                tracing::warn!(%table, "a migration waits for its turn{open}; trying again");
                sleep(LOCK_PAUSE).await;
            }
            answer => return answer.map(|_| ()),
        }
    }
}

/// Verifies that the columns which a statement would have added are those of the same statement of an earlier migration.
async fn check_made(store: &Inner, session: &mut Session, statement: &str) -> Result<(), Failure> {
    let table = &store.table;
    let altered = |name: &String| statement.starts_with(&format!("ALTER TABLE {}", qualified(table, name)));
    let Some(name) = table.all().into_iter().find(altered) else { return Ok(()) };
    let found = columns(store, session, &name).await?;
    let taken = taken(statement, &found);
    if taken.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "the table `{name}` has a column `{}` that is not Pillarbox's, which adds one of this name; rename it, and migrate again",
        taken.join("` and a column `")
    );
    Err(Failure::Refused(StoreErrorKind::Schema, problem))
}
