use std::time::Duration;

use pillarbox_core::examine::{Check, Checked};
use pillarbox_core::store::TableName;
use tokio_postgres::Row;

use super::Context;
use crate::error::{Failure, no_row};
use crate::schema;
use crate::sql::qualified;

type Result<T = Checked> = std::result::Result<T, Failure>;

/// The tables of an outbox and the privileges of a node on each, as rows of a `VALUES` list.
pub(super) fn needed_privileges(table: &TableName) -> String {
    let all = "{SELECT,INSERT,UPDATE,DELETE}";
    let [event, node, partition, migration, inbox, pause, audit] = table.all();
    let rows = [
        (event, all),
        (node, all),
        (partition, all),
        (migration, "{SELECT}"),
        (inbox, all),
        (pause, "{SELECT}"),
        (audit, "{SELECT,DELETE}"),
    ];
    rows.map(|(name, privileges)| format!("('{name}', '{privileges}')")).join(", ")
}

fn one(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(no_row)
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

pub(super) fn read_only(check: &'static Check, _: &Context<'_>, rows: &[Row]) -> Result {
    let source: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(check.judge(source.map(|source| format!("default_transaction_read_only is on, given by the {source}"))))
}

pub(super) fn standby(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let standby: bool = one(rows)?.try_get(0)?;
    Ok(check.judge(standby.then(|| format!("{} is in recovery", context.store.sessions.address()))))
}

pub(super) fn pooler(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let has_its_settings: bool = one(rows)?.try_get(0)?;
    let undeclared = !context.store.sessions.is_pooled() && !has_its_settings;
    Ok(check.judge(undeclared.then(|| "the session lacks the settings it was begun with".to_owned())))
}

pub(super) fn privileges(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let (mut lacks, mut grants) = (Vec::new(), Vec::new());
    for row in rows {
        let (name, privileges): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (user, schema): (String, String) = (row.try_get(2)?, row.try_get(4)?);
        let user = format!("\"{}\"", user.replace('"', "\"\""));
        if name.is_empty() {
            lacks.push(format!("{user} lacks USAGE on schema {schema}"));
            grants.push(format!("GRANT USAGE ON SCHEMA \"{schema}\" TO {user};"));
        } else {
            let table = qualified(&context.store.table, &name);
            lacks.push(format!("{user} lacks {privileges} on {name}"));
            grants.push(format!("GRANT {privileges} ON {table} TO {user};"));
        }
    }
    Ok(check.judge((!lacks.is_empty()).then(|| lacks.join("; "))).with_command(grants.join(" ")))
}

pub(super) fn indexes(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let (mut problems, mut mends) = (Vec::new(), Vec::new());
    let table = &context.store.table;
    for row in rows {
        let (name, exists): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
        problems.push(format!("{} {}", name.replace('"', ""), if exists { "is invalid" } else { "is missing" }));
        if exists {
            mends.push(format!("DROP INDEX CONCURRENTLY {};", qualified(table, &name.replace('"', ""))));
        }
        mends.extend(schema::create_index(table, &name));
    }
    let found = check.judge((!problems.is_empty()).then(|| problems.join("; ")));
    Ok(if mends.is_empty() { found } else { found.with_command(mends.join(" ")) })
}

pub(super) fn autovacuum(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let row = one(rows)?;
    let (server, counts, table): (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let is_off = |value: &str| ["off", "false", "no", "0"].contains(&value.to_ascii_lowercase().as_str());
    let name = qualified(&context.store.table, context.store.table.event());
    Ok(if is_off(&table) {
        check
            .found(format!("autovacuum_enabled is {table} for the event table"))
            .with_command(format!("ALTER TABLE {name} RESET (autovacuum_enabled);"))
    } else {
        check.judge(
            (is_off(&server) || is_off(&counts)).then(|| format!("autovacuum is {server}, track_counts is {counts}")),
        )
    })
}

pub(super) fn dead_rows(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let row = one(rows)?;
    let (dead, live): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let vacuumed = row.try_get::<_, Option<i64>>(2)?.map(seconds);
    let last = vacuumed.map_or_else(|| "never".to_owned(), |age| format!("{age:?} ago"));
    let too_many = u64::try_from(dead).unwrap_or(0) >= context.thresholds.dead_rows;
    let name = qualified(&context.store.table, context.store.table.event());
    let evidence = || format!("about {dead} dead rows beside {live} others; last vacuum: {last}");
    Ok(check.judge(too_many.then(evidence)).with_command(format!("VACUUM {name};")))
}

pub(super) fn connections(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let mut nearly_used = Vec::new();
    for row in rows {
        let (whose, used, limit): (String, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if used * 100 >= limit * i64::from(context.thresholds.connections_percent) {
            nearly_used.push(format!("{used} of {limit} connections {whose} are in use"));
        }
    }
    Ok(check.judge((!nearly_used.is_empty()).then(|| nearly_used.join("; "))))
}

pub(super) fn durability(check: &'static Check, _: &Context<'_>, rows: &[Row]) -> Result {
    let row = one(rows)?;
    let mut off = Vec::new();
    for (place, name) in ["fsync", "full_page_writes", "synchronous_commit"].into_iter().enumerate() {
        if row.try_get::<_, String>(place)? == "off" {
            off.push(format!("{name} is off"));
        }
    }
    let users: String = row.try_get(3)?;
    if !users.is_empty() {
        off.push(format!("synchronous_commit is off for {users}"));
    }
    Ok(check.judge((!off.is_empty()).then(|| off.join("; "))))
}

pub(super) fn replication(check: &'static Check, _: &Context<'_>, rows: &[Row]) -> Result {
    let row = one(rows)?;
    let (standbys, waited_for): (i64, i64) = (row.try_get(0)?, row.try_get(3)?);
    let (names, commit): (String, String) = (row.try_get(1)?, row.try_get(2)?);
    let sees_all: bool = row.try_get(4)?;
    let reason = if standbys == 0 {
        None
    } else if names.is_empty() {
        Some("synchronous_standby_names is empty".to_owned())
    } else if ["off", "local"].contains(&commit.as_str()) {
        Some(format!("synchronous_commit is {commit}"))
    } else if waited_for == 0 && sees_all {
        Some(format!("synchronous_standby_names is {names}, which names none of them"))
    } else {
        None
    };
    Ok(check.judge(reason.map(|reason| format!("{standbys} attached; {reason}"))))
}

pub(super) fn unlogged(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let unlogged: bool = one(rows)?.try_get(0)?;
    let name = qualified(&context.store.table, context.store.table.event());
    Ok(check
        .judge(unlogged.then(|| format!("{} is UNLOGGED", context.store.table)))
        .with_command(format!("ALTER TABLE {name} SET LOGGED;")))
}

pub(super) fn row_security(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let (hides_rows, user): (bool, String) = (one(rows)?.try_get(0)?, one(rows)?.try_get(1)?);
    let evidence = format!("policies of {} apply to the user {user}", context.store.table);
    let role = user.replace('"', "\"\"");
    Ok(check.judge(hides_rows.then_some(evidence)).with_command(format!("ALTER ROLE \"{role}\" BYPASSRLS;")))
}

pub(super) fn numbers(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let row = one(rows)?;
    let (cache, increment): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    let name = qualified(&context.store.table, context.store.table.event());
    Ok(match (cache, increment) {
        (Some(cache), Some(1..)) => check
            .judge((cache != 1).then(|| format!("each session takes {cache} numbers at once")))
            .with_command(format!("ALTER TABLE {name} ALTER COLUMN seq SET CACHE 1;")),
        (_, Some(_)) => check
            .found("each number is lower than the one before".to_owned())
            .with_command(format!("ALTER TABLE {name} ALTER COLUMN seq SET INCREMENT BY 1;")),
        _ => check.found("the column `seq` has no sequence of its own".to_owned()),
    })
}

pub(super) fn behind(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let row = one(rows)?;
    let Some(sequence) = row.try_get::<_, Option<String>>(0)? else {
        return Ok(check.not_checked("the column `seq` has no sequence of its own"));
    };
    let Some(last) = row.try_get::<_, Option<i64>>(1)? else {
        return Ok(check.not_checked(format!(
            "the user may not see the last number; `GRANT SELECT ON SEQUENCE {sequence} TO` it"
        )));
    };
    let (highest, name) = (row.try_get::<_, i64>(2)?, qualified(&context.store.table, context.store.table.event()));
    let given = if last == 0 {
        "no number was given since it was set".to_owned()
    } else {
        format!("the last number is {last}")
    };
    let evidence = format!("{given}, and the highest `seq` is {highest}");
    Ok(check
        .judge((highest > last).then_some(evidence))
        .with_command(format!("SELECT setval('{sequence}', max(seq)) FROM {name};")))
}

pub(super) fn subscriber(check: &'static Check, _: &Context<'_>, rows: &[Row]) -> Result {
    let subscriptions: i64 = one(rows)?.try_get(2)?;
    Ok(check.judge((subscriptions > 0).then(|| format!("{subscriptions} subscription(s) have the event table"))))
}

pub(super) fn encoding(check: &'static Check, _: &Context<'_>, rows: &[Row]) -> Result {
    let encoding: String = one(rows)?.try_get(0)?;
    Ok(check.judge((encoding != "UTF8").then(|| format!("server_encoding is {encoding}"))))
}

pub(super) fn kept(check: &'static Check, context: &Context<'_>, rows: &[Row]) -> Result {
    let oldest = one(rows)?.try_get::<_, Option<i64>>(0)?.map(seconds);
    let old = oldest.filter(|age| *age >= context.thresholds.kept_after);
    let evidence =
        |age: Duration| format!("an event that was delivered {} days ago is still there", age.as_secs() / 86_400);
    Ok(check.judge(old.map(evidence)))
}
