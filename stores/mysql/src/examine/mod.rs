//! The conditions of a MySQL or MariaDB server that harm an outbox.
//!
//! The isolation level is not among them: the engine's sessions set their own. Privileges are asked for by `EXPLAIN`, for which the server wants
//! those of the statement that it explains.

mod checks;

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::Row;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::examine::{Check, Checked, Thresholds, beginning};
use pillarbox_core::store::{Examine, TableName, operation};

pub use checks::ALL;

use crate::MysqlStore;
use crate::answer::{int, optional_int, text};
use crate::schema;
use crate::sql::{qualified, render, without_comments};

/// The statement of a file in `sql/examine/`.
macro_rules! statement {
    ($file:literal) => {
        include_str!(concat!("../../sql/examine/", $file, ".sql"))
    };
}

type Facts = HashMap<String, String>;

#[async_trait]
impl Examine for MysqlStore {
    async fn examine(&self, thresholds: &Thresholds) -> Vec<Checked> {
        let settings = self.facts(statement!("settings")).await;
        let state = self.facts(statement!("state")).await;
        let of = |check: &'static Check, evaluate: fn(&Facts) -> Option<String>| match &settings {
            Ok(settings) => check.judge(evaluate(settings)),
            Err(error) => check.not_checked(error.to_string()),
        };
        vec![
            of(&checks::REPLICA, read_only),
            self.privileges().await,
            self.indexes().await,
            self.transactions(thresholds).await,
            self.history(thresholds).await,
            connections(&settings, &state, thresholds),
            of(&checks::DURABILITY, not_durable),
            self.replication(&state).await,
            of(&checks::BINLOG_FORMAT, binlog_format),
            self.kept(thresholds).await,
        ]
    }
}

impl MysqlStore {
    async fn ask(&self, sql: &str) -> Result<Vec<Row>, StoreError> {
        let inner = self.inner();
        let sql = render(&without_comments(sql), &inner.table);
        let mut answers = inner.sessions.call(operation::EXAMINE, || inner.sessions.run(&sql)).await?;
        Ok(if answers.0.is_empty() { Vec::new() } else { answers.0.swap_remove(0).rows })
    }

    /// Names and values.
    async fn facts(&self, sql: &str) -> Result<Facts, StoreError> {
        let rows = self.ask(sql).await?;
        let fact = |row: &Row| Some((text(row, 0).ok()??.to_ascii_lowercase(), text(row, 1).ok()??.to_owned()));
        Ok(rows.iter().filter_map(fact).collect())
    }

    /// The first number of the answer.
    async fn number(&self, sql: &str) -> Result<Option<i64>, String> {
        let rows = self.ask(sql).await.map_err(|error| error.to_string())?;
        rows.first().map_or(Ok(None), |row| optional_int(row, 0)).map_err(|_| "the answer is no number".to_owned())
    }

    async fn privileges(&self) -> Checked {
        let mut lacks = Vec::new();
        for (privilege, table, sql) in needed(&self.inner().table) {
            match self.ask(&sql).await {
                Ok(_) => {}
                Err(error) if error.kind() == StoreErrorKind::Denied => lacks.push(format!("{privilege} on {table}")),
                Err(error) => return checks::PRIVILEGES.not_checked(error.to_string()),
            }
        }
        checks::PRIVILEGES.judge((!lacks.is_empty()).then(|| format!("the user lacks {}", lacks.join(", "))))
    }

    async fn indexes(&self) -> Checked {
        let rows = match self.ask(statement!("indexes")).await {
            Ok(rows) => rows,
            Err(error) => return checks::INDEXES.not_checked(error.to_string()),
        };
        let table = &self.inner().table;
        let there = |wanted: &str, index: &str| {
            rows.iter().any(|row| {
                let is = |column, name: &str| text(row, column).is_ok_and(|text| text == Some(name));
                is(0, wanted) && is(1, index)
            })
        };
        let [event, node, _, _, inbox, _, _] = table.all();
        let wanted = [
            (&event, "pillarbox_event_id"),
            (&event, "pillarbox_queue"),
            (&event, "pillarbox_heads"),
            (&event, "pillarbox_unique_key"),
            (&node, "pillarbox_fence"),
            (&inbox, "pillarbox_inbox_age"),
        ];
        let missing: Vec<_> = wanted.into_iter().filter(|(table, index)| !there(table, index)).collect();
        let named: Vec<String> = missing.iter().map(|(table, index)| format!("{index} of {table}")).collect();
        let creates: Vec<String> = missing
            .iter()
            .filter_map(|(name, index)| {
                Some(format!("ALTER TABLE {} ADD {};", qualified(table, name), schema::key(index)?))
            })
            .collect();
        checks::INDEXES
            .judge((!named.is_empty()).then(|| format!("missing: {}", named.join(", "))))
            .with_command(creates.join(" "))
    }

    async fn transactions(&self, thresholds: &Thresholds) -> Checked {
        let seconds = thresholds.pinned_after.as_secs().to_string();
        match self.ask(&statement!("transactions").replace("{seconds}", &seconds)).await {
            Ok(rows) => {
                let open: Vec<String> = rows.iter().filter_map(describe).collect();
                let found = checks::TRANSACTIONS.judge((!open.is_empty()).then(|| open.join("; ")));
                match rows.first().and_then(|row| int(row, 0).ok()) {
                    Some(thread) => found.with_command(format!("KILL {thread};")),
                    None => found,
                }
            }
            Err(error) => checks::TRANSACTIONS.not_checked(without_process(&error)),
        }
    }

    async fn history(&self, thresholds: &Thresholds) -> Checked {
        match self.number(statement!("history")).await {
            Ok(length) => {
                let long = length.filter(|length| u64::try_from(*length).unwrap_or(0) >= thresholds.dead_rows);
                checks::HISTORY.judge(long.map(|length| format!("the history list holds {length} transactions")))
            }
            Err(reason) => checks::HISTORY.not_checked(reason),
        }
    }

    async fn replication(&self, state: &Result<Facts, StoreError>) -> Checked {
        let replicas = match self.ask(statement!("replicas")).await {
            Ok(rows) => rows.first().and_then(|row| int(row, 0).ok()).unwrap_or(0),
            Err(error) => return checks::REPLICATION.not_checked(without_process(&error)),
        };
        let state = match state {
            Ok(state) => state,
            Err(error) => return checks::REPLICATION.not_checked(error.to_string()),
        };
        let waits = ["rpl_semi_sync_master_status", "rpl_semi_sync_source_status"]
            .into_iter()
            .any(|name| state.get(name).is_some_and(|value| value == "ON"));
        let evidence = || format!("{replicas} attached; commits wait for none: semi-synchronous replication is off");
        checks::REPLICATION.judge((replicas > 0 && !waits).then(evidence))
    }

    async fn kept(&self, thresholds: &Thresholds) -> Checked {
        match self.number(statement!("kept")).await {
            Ok(age) => {
                let age = age.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
                let old = age.filter(|age| *age >= thresholds.kept_after);
                let days = |age: Duration| age.as_secs() / 86_400;
                let evidence = |age| format!("an event that was delivered {} days ago is still there", days(age));
                checks::KEPT.judge(old.map(evidence))
            }
            Err(reason) => checks::KEPT.not_checked(reason),
        }
    }
}

/// The privileges of a node, and statements that want them and change nothing.
fn needed(table: &TableName) -> Vec<(&'static str, String, String)> {
    let [event, node, partition, migration, inbox, pause, audit] = table.all();
    // The columns without a default, and a value for each.
    let writable = [
        (event, "event_id", "`event_id`, `event_type`", "'1', '1'"),
        (node, "node_id", "`node_id`, `mode`, `started_at`, `expires_at`", "'1', '1', NOW(), NOW()"),
        (partition, "partition", "`partition`", "1"),
        (inbox, "consumer", "`consumer`, `message_id`", "'1', '1'"),
    ];
    let mut all = Vec::new();
    for (name, column, columns, values) in writable {
        let quoted = qualified(table, &name);
        for (privilege, sql) in [
            ("SELECT", format!("EXPLAIN SELECT `{column}` FROM {quoted} WHERE FALSE")),
            ("INSERT", format!("EXPLAIN INSERT INTO {quoted} ({columns}) SELECT {values} FROM DUAL WHERE FALSE")),
            ("UPDATE", format!("EXPLAIN UPDATE {quoted} SET `{column}` = '1' WHERE FALSE")),
            ("DELETE", format!("EXPLAIN DELETE FROM {quoted} WHERE FALSE")),
        ] {
            all.push((privilege, name.clone(), sql));
        }
    }
    for (name, column) in [(migration, "version"), (pause, "name"), (audit.clone(), "id")] {
        let sql = format!("EXPLAIN SELECT `{column}` FROM {} WHERE FALSE", qualified(table, &name));
        all.push(("SELECT", name, sql));
    }
    let delete = format!("EXPLAIN DELETE FROM {} WHERE FALSE", qualified(table, &audit));
    all.push(("DELETE", audit, delete));
    all
}

/// The refusal to a user that may not see other connections, with its remedy.
fn without_process(error: &StoreError) -> String {
    if error.kind() == StoreErrorKind::Denied {
        return "the user sees no other user's connections; `GRANT PROCESS ON *.*` to it, or use one that has it"
            .to_owned();
    }
    error.to_string()
}

fn describe(row: &Row) -> Option<String> {
    let (thread, seconds) = (int(row, 0).ok()?, int(row, 1).ok()?);
    let column = |index| text(row, index).ok().flatten().unwrap_or_default();
    // Here a text may stand in double quotes too.
    let query = beginning(&column(4).replace('"', "'"));
    let query = if query.is_empty() { String::new() } else { format!(", statement: {query}") };
    let age = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    Some(format!("connection {thread} for {age:?} (user {}, {}{query})", column(2), column(3)))
}

fn read_only(settings: &Facts) -> Option<String> {
    let value = settings.get("read_only").filter(|value| !["OFF", "0"].contains(&value.as_str()))?;
    Some(format!("read_only is {value}"))
}

fn not_durable(settings: &Facts) -> Option<String> {
    let is = |name: &str, values: &[&str]| settings.get(name).is_some_and(|value| values.contains(&value.as_str()));
    let value = |name: &str| settings.get(name).map_or("", String::as_str);
    let mut weak = Vec::new();
    if !is("innodb_flush_log_at_trx_commit", &["1", "3"]) {
        weak.push("innodb_flush_log_at_trx_commit");
    }
    if is("log_bin", &["ON", "1"]) && !is("sync_binlog", &["1"]) {
        weak.push("sync_binlog");
    }
    if is("innodb_doublewrite", &["OFF", "0"]) {
        weak.push("innodb_doublewrite");
    }
    let texts: Vec<String> = weak.into_iter().map(|name| format!("{name} is {}", value(name))).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn binlog_format(settings: &Facts) -> Option<String> {
    let writes = settings.get("log_bin").is_some_and(|value| value == "ON");
    let statement = settings.get("binlog_format").is_some_and(|format| format == "STATEMENT");
    (writes && statement).then(|| "binlog_format is STATEMENT".to_owned())
}

fn connections(
    settings: &Result<Facts, StoreError>,
    state: &Result<Facts, StoreError>,
    thresholds: &Thresholds,
) -> Checked {
    let number = |facts: &Facts, name: &str| facts.get(name).and_then(|value| value.parse::<u64>().ok());
    match (settings, state) {
        (Ok(settings), Ok(state)) => {
            let (Some(limit), Some(used)) = (number(settings, "max_connections"), number(state, "threads_connected"))
            else {
                return checks::CONNECTIONS.not_checked("the server does not tell the number of its connections");
            };
            let nearly = used * 100 >= limit * u64::from(thresholds.connections_percent);
            checks::CONNECTIONS.judge(nearly.then(|| format!("{used} of {limit} connections are in use")))
        }
        (Err(error), _) | (_, Err(error)) => checks::CONNECTIONS.not_checked(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn settings_that_may_lose_a_commit_are_named() {
        let safe = [("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "ON"), ("sync_binlog", "1")];
        assert_eq!(not_durable(&facts(&safe)), None);
        let unsafe_log = [("innodb_flush_log_at_trx_commit", "2"), ("log_bin", "OFF"), ("sync_binlog", "0")];
        assert_eq!(not_durable(&facts(&unsafe_log)).as_deref(), Some("innodb_flush_log_at_trx_commit is 2"));
        let both = [
            ("innodb_flush_log_at_trx_commit", "0"),
            ("log_bin", "ON"),
            ("sync_binlog", "0"),
            ("innodb_doublewrite", "OFF"),
        ];
        assert!(
            not_durable(&facts(&both)).is_some_and(|text| text.contains("sync_binlog is 0; innodb_doublewrite is OFF"))
        );
    }

    #[test]
    fn a_format_that_is_not_written_harms_nobody() {
        assert_eq!(binlog_format(&facts(&[("log_bin", "OFF"), ("binlog_format", "STATEMENT")])), None);
        assert!(binlog_format(&facts(&[("log_bin", "ON"), ("binlog_format", "STATEMENT")])).is_some());
        assert_eq!(binlog_format(&facts(&[("log_bin", "ON"), ("binlog_format", "ROW")])), None);
    }
}
