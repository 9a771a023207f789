use std::sync::Arc;

use pillarbox_core::store::TableName;

/// The time by SQLite's clock, in microseconds; the same throughout one execution of a statement.
const NOW: &str = "(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)";

/// What a fetched row consists of; read in this order by `row.rs`.
const COLUMNS: &str = "seq, attempts, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, \
                       headers, payload, payload_bytes, content_type, occurred_at, created_at";

/// The files of `sql/`, rendered for one table. Everything but names is bound, never rendered.
#[derive(Debug)]
pub(crate) struct Sql {
    pub(crate) check: Arc<str>,
    pub(crate) counts: Arc<str>,
    pub(crate) fetch_due: Arc<str>,
    pub(crate) fetch_ready: Arc<str>,
    pub(crate) fetch_times: Arc<str>,
    pub(crate) migration_version: Arc<str>,
    pub(crate) node_expire: Arc<str>,
    pub(crate) node_join: Arc<str>,
    pub(crate) node_leave: Arc<str>,
    pub(crate) node_modes: Arc<str>,
    pub(crate) node_renew: Arc<str>,
    pub(crate) owner_free: Arc<str>,
    pub(crate) owner_probe: Arc<str>,
    pub(crate) owner_take: Arc<str>,
    pub(crate) settle_dead: Arc<str>,
    pub(crate) settle_done: Arc<str>,
    pub(crate) settle_fence: Arc<str>,
    pub(crate) settle_refused: Arc<str>,
    pub(crate) settle_retry: Arc<str>,
}

impl Sql {
    pub(crate) fn new(table: &TableName) -> Self {
        let file = |text: &str| render(table, text).into();
        Self {
            check: file(include_str!("../sql/check.sql")),
            counts: file(include_str!("../sql/counts.sql")),
            fetch_due: file(include_str!("../sql/fetch_due.sql")),
            fetch_ready: file(include_str!("../sql/fetch_ready.sql")),
            fetch_times: file(include_str!("../sql/fetch_times.sql")),
            migration_version: file(include_str!("../sql/migration_version.sql")),
            node_expire: file(include_str!("../sql/node_expire.sql")),
            node_join: file(include_str!("../sql/node_join.sql")),
            node_leave: file(include_str!("../sql/node_leave.sql")),
            node_modes: file(include_str!("../sql/node_modes.sql")),
            node_renew: file(include_str!("../sql/node_renew.sql")),
            owner_free: file(include_str!("../sql/owner_free.sql")),
            owner_probe: file(include_str!("../sql/owner_probe.sql")),
            owner_take: file(include_str!("../sql/owner_take.sql")),
            settle_dead: file(include_str!("../sql/settle_dead.sql")),
            settle_done: file(include_str!("../sql/settle_done.sql")),
            settle_fence: file(include_str!("../sql/settle_fence.sql")),
            settle_refused: file(include_str!("../sql/settle_refused.sql")),
            settle_retry: file(include_str!("../sql/settle_retry.sql")),
        }
    }
}

/// Puts names in the places of `{event}`, `{node}`, …. Names are identifiers by their type, so quoting needs no escaping.
pub(crate) fn render(table: &TableName, text: &str) -> String {
    let event = table.event();
    let mut sql = text.replace("{now}", NOW).replace("{columns}", COLUMNS);
    for index in ["ready", "due", "dead"] {
        sql = sql.replace(&format!("{{event_{index}}}"), &format!("\"{event}_{index}\""));
    }
    for role in ["node", "partition", "migration"] {
        sql = sql.replace(&format!("{{{role}}}"), &format!("\"{}\"", table.beside(role)));
    }
    sql.replace("{event}", &format!("\"{event}\"")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Sql, TableName};

    #[test]
    fn every_place_is_filled() {
        let sql = format!("{:?}", Sql::new(&TableName::default()));
        let rendered = sql.strip_prefix("Sql {").and_then(|sql| sql.strip_suffix('}')).expect("the derived form");
        assert!(!rendered.contains(['{', '}']), "{rendered}");
    }
}
