use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::refusal;
use pillarbox_core::store::schema::SchemaVersion;

use super::columns::columns;
use super::versions::MIGRATIONS;
use crate::answer::optional_int;
use crate::error::Failure;
use crate::session::Session;
use crate::sql::qualified;
use crate::store::Inner;

/// Verifies that every table is there and of the version this release needs.
pub(crate) async fn check(store: &Inner) -> Result<(), Failure> {
    let table = &store.table;
    let mut session = store.sessions.session().await?;
    let found = found(store, &mut session).await?;
    // Tables of an older version lack some, which is not what there is to say of them.
    if found.applied > 0 {
        MIGRATIONS.check(table, found).map_err(unusable)?;
    }
    let (mut missing, mut may_see) = (Vec::new(), true);
    for name in table.all() {
        if columns(store, &mut session, &name).await?.is_empty() {
            let name = qualified(table, &name);
            // The catalog has only tables on which the user has a privilege. For others the server says whether it would tell.
            let asked = session.run(format!("SELECT 1 FROM {name} LIMIT 0")).await;
            may_see &= !asked.is_err_and(|failure| failure.is_denied());
            missing.push(name.replace('`', ""));
        }
    }
    if !may_see {
        return Err(Failure::Refused(StoreErrorKind::Denied, refusal::unseen_tables(&missing)));
    }
    if !missing.is_empty() {
        let problem =
            if found.applied > 0 { refusal::lost(table, &missing) } else { refusal::missing_tables(&missing) };
        return Err(Failure::Refused(StoreErrorKind::Schema, problem));
    }
    session.finish();
    MIGRATIONS.check(table, found).map_err(unusable)
}

pub(super) fn unusable(problem: String) -> Failure {
    Failure::Refused(StoreErrorKind::Schema, problem)
}

/// The version of the tables that are there.
pub(super) async fn found(store: &Inner, session: &mut Session) -> Result<SchemaVersion, Failure> {
    let table = &store.table;
    let migration = table.beside("migration");
    let found = columns(store, session, &migration).await?;
    // A table of another purpose is refused later, by name.
    if !found.iter().any(|column| column.name == "version") {
        return Ok(SchemaVersion::NONE);
    }
    let name = qualified(table, &migration);
    let mut newest = async |column: &str| -> Result<Option<i64>, Failure> {
        let answers = session.run(format!("SELECT `{column}` FROM {name} ORDER BY `version` DESC LIMIT 1")).await?;
        answers.first(0).map_or(Ok(None), |row| optional_int(row, 0))
    };
    let applied = newest("version").await?.unwrap_or(0);
    // Older tables have no such column, and nobody asks.
    let compatible_from = if applied > MIGRATIONS.latest() { newest("compatible_from").await? } else { None };
    Ok(SchemaVersion { applied, compatible_from })
}
