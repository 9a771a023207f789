use std::time::Duration;

use mysql_async::Row;
use pillarbox_core::store::{AuditEntry, AuditedAction};

use crate::answer::{EPOCH, int, optional_int, owned, time};
use crate::error::Failure;
use crate::literal::{Literal, fill};
use crate::settle::micros;
use crate::sql::script;
use crate::store::Inner;

/// Writes an entry for an action that is about to begin.
pub(crate) async fn record(store: &Inner, action: &AuditedAction) -> Result<i64, Failure> {
    let [who, name, subject] = [action.who(), action.action(), action.subject()].map(Literal::text);
    let record = fill(&store.sql.action_record, &[("who", &who), ("action", &name), ("subject", &subject)]);
    let answers = store.sessions.run(script([&*record, "SELECT LAST_INSERT_ID()"])).await?;
    answers.first(1).map_or(Ok(0), |row| int(row, 0))
}

/// Adds what became of an action.
pub(crate) async fn end(store: &Inner, id: i64, changed: Option<u64>, outcome: &str) -> Result<(), Failure> {
    let changed = changed.map_or_else(
        || Literal::clause("NULL".to_owned()),
        |changed| Literal::int(i64::try_from(changed).unwrap_or(i64::MAX)),
    );
    let outcome = Literal::text(&AuditedAction::outcome(outcome));
    let values = [("entry", &Literal::int(id)), ("changed", &changed), ("outcome", &outcome)];
    store.sessions.run(fill(&store.sql.action_end, &values)).await?;
    Ok(())
}

/// A page of entries, newest first.
pub(crate) async fn list(store: &Inner, below: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, Failure> {
    let values = [("below", &Literal::int(below.unwrap_or(i64::MAX))), ("limit", &Literal::count(limit))];
    let answers = store.sessions.run(fill(&store.sql.actions, &values)).await?;
    answers.rows(0).iter().map(read).collect()
}

fn read(row: &Row) -> Result<AuditEntry, Failure> {
    Ok(AuditEntry {
        id: int(row, 0)?,
        began_at: time(row, 1)?.unwrap_or(EPOCH),
        who: owned(row, 2)?.unwrap_or_default(),
        action: owned(row, 3)?.unwrap_or_default(),
        subject: owned(row, 4)?.unwrap_or_default(),
        changed: optional_int(row, 5)?.map(|changed| u64::try_from(changed).unwrap_or(0)),
        outcome: owned(row, 6)?,
    })
}

/// Deletes the oldest entries.
pub(crate) async fn purge(store: &Inner, older_than: Duration, limit: usize) -> Result<u64, Failure> {
    let values = [("age", &Literal::int(micros(older_than))), ("limit", &Literal::count(limit))];
    let mut session = store.sessions.session().await?;
    let old = session.run(fill(&store.sql.actions_old, &values)).await?.ints(0)?;
    let answers = session.run(fill(&store.sql.actions_delete, &[("ids", &Literal::ints(&old))])).await?;
    session.finish();
    Ok(answers.matched(0))
}
