use std::time::Duration;

use pillarbox_core::examine::{Check, Checked, beginning};
use tokio_postgres::Row;

use super::Context;
use crate::error::Failure;

/// Evaluates sessions, slots and prepared transactions that hold something for too long. A user that sees its own sessions alone can find
/// some, but never none.
pub(super) fn evaluate(check: &'static Check, _: &Context<'_>, rows: &[Row]) -> Result<Checked, Failure> {
    let (mut sees_all, mut holders, mut pid) = (false, Vec::new(), None);
    for row in rows {
        sees_all = row.try_get(0)?;
        let Some(who) = row.try_get::<_, Option<String>>(1)? else { continue };
        pid = pid.or(row.try_get::<_, Option<i32>>(8)?);
        holders.push(describe(&who, row)?);
    }
    if holders.is_empty() && !sees_all {
        return Ok(check.not_checked(
            "the user sees no other user's sessions; `GRANT pg_read_all_stats TO` it, or use one that has `pg_monitor`",
        ));
    }
    let found = check.judge((!holders.is_empty()).then(|| holders.join("; ")));
    Ok(match pid {
        Some(pid) => found.with_command(format!("SELECT pg_terminate_backend({pid});")),
        None => found,
    })
}

fn describe(who: &str, row: &Row) -> Result<String, Failure> {
    let (user, application): (String, String) = (row.try_get(2)?, row.try_get(3)?);
    let (state, query): (String, String) = (row.try_get(4)?, row.try_get(7)?);
    let seconds: Option<f64> = row.try_get(5)?;
    let transactions: Option<i64> = row.try_get(6)?;
    let since = match (seconds, transactions) {
        (Some(seconds), _) => {
            let age = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            format!("for {:?}", Duration::from_secs(age.as_secs()))
        }
        (None, Some(transactions)) => format!("for {transactions} transactions"),
        (None, None) => "for a time unknown".to_owned(),
    };
    let named = |label: &str, text: &str| if text.is_empty() { String::new() } else { format!(", {label}{text}") };
    let query = beginning(&query);
    Ok(format!(
        "{who} {since} ({state}{}{}{})",
        named("user ", &user),
        named("application ", &application),
        named("last statement: ", &query)
    ))
}
