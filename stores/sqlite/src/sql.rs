use std::sync::Arc;

use pillarbox_core::store::TableName;

/// The time by SQLite's clock, in microseconds; the same throughout one execution of a statement.
const NOW: &str = "(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)";

/// What a fetched row consists of; read in this order by `row.rs`.
const COLUMNS: &str = "seq, attempts, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, \
                       headers, payload, payload_bytes, content_type, occurred_at, created_at, locked_by";

/// Whether the node `?1` may take a row; if it is NULL, every row will do.
const FREE: &str = "(?1 IS NULL OR locked_by IS NULL OR locked_by IN ('?', '!', ?1, ?1 || '!'))";

/// Whether the node `?1` holds a row; if it is NULL, its right does not rest on the row.
const MINE: &str = "(?1 IS NULL OR locked_by IN (?1, ?1 || '!'))";

/// Whether a row says that a node holds it that is not registered.
const ORPHAN: &str = "locked_by NOT IN ('?', '!') AND rtrim(locked_by, '!') NOT IN (SELECT node_id FROM {node})";

/// Whether a DEAD row is of the event type `?1`, the aggregate type `?2` and the tenant `?3`, of those that are not NULL.
const MATCHING: &str = "(?1 IS NULL OR event_type = ?1) \
                        AND (?2 IS NULL OR coalesce(aggregate_type, '__GLOBAL__') = ?2) \
                        AND (?3 IS NULL OR tenant_id = ?3)";

/// The files of `sql/`, rendered for one table. Everything but names is bound, never rendered.
#[derive(Debug)]
pub(crate) struct Sql {
    pub(crate) attempt_begin: Arc<str>,
    pub(crate) backlog: Arc<str>,
    pub(crate) check: Arc<str>,
    pub(crate) claim: Arc<str>,
    pub(crate) counts: Arc<str>,
    pub(crate) dead: Arc<str>,
    pub(crate) dead_count: Arc<str>,
    pub(crate) dead_discard: Arc<str>,
    pub(crate) dead_replay: Arc<str>,
    pub(crate) fetch_due: Arc<str>,
    pub(crate) fetch_ready: Arc<str>,
    pub(crate) fetch_times: Arc<str>,
    pub(crate) migration_names: Arc<str>,
    pub(crate) migration_ours: Arc<str>,
    pub(crate) migration_version: Arc<str>,
    pub(crate) node_alive: Arc<str>,
    pub(crate) node_expire: Arc<str>,
    pub(crate) node_join: Arc<str>,
    pub(crate) node_leave: Arc<str>,
    pub(crate) node_modes: Arc<str>,
    pub(crate) node_registered: Arc<str>,
    pub(crate) node_renew: Arc<str>,
    pub(crate) nodes: Arc<str>,
    pub(crate) owner_free: Arc<str>,
    pub(crate) owner_is: Arc<str>,
    pub(crate) owner_probe: Arc<str>,
    pub(crate) owner_take: Arc<str>,
    pub(crate) purge_delete: Arc<str>,
    pub(crate) purge_window: Arc<str>,
    pub(crate) reclaim_free: Arc<str>,
    pub(crate) reclaim_orphans: Arc<str>,
    pub(crate) reclaim_probe: Arc<str>,
    pub(crate) record: Arc<str>,
    pub(crate) release: Arc<str>,
    pub(crate) settle_dead: Arc<str>,
    pub(crate) settle_done: Arc<str>,
    pub(crate) settle_hold: Arc<str>,
    pub(crate) settle_refused: Arc<str>,
    pub(crate) settle_retry: Arc<str>,
    pub(crate) statistics_forget: Arc<str>,
    pub(crate) statistics_there: Arc<str>,
}

impl Sql {
    pub(crate) fn new(table: &TableName) -> Self {
        let file = |text: &str| render(table, text).into();
        Self {
            attempt_begin: file(include_str!("../sql/attempt_begin.sql")),
            backlog: file(include_str!("../sql/backlog.sql")),
            check: file(include_str!("../sql/check.sql")),
            claim: file(include_str!("../sql/claim.sql")),
            counts: file(include_str!("../sql/counts.sql")),
            dead: file(include_str!("../sql/dead.sql")),
            dead_count: file(include_str!("../sql/dead_count.sql")),
            dead_discard: file(include_str!("../sql/dead_discard.sql")),
            dead_replay: file(include_str!("../sql/dead_replay.sql")),
            fetch_due: file(include_str!("../sql/fetch_due.sql")),
            fetch_ready: file(include_str!("../sql/fetch_ready.sql")),
            fetch_times: file(include_str!("../sql/fetch_times.sql")),
            migration_names: file(include_str!("../sql/migration_names.sql")),
            migration_ours: file(include_str!("../sql/migration_ours.sql")),
            migration_version: file(include_str!("../sql/migration_version.sql")),
            node_alive: file(include_str!("../sql/node_alive.sql")),
            node_expire: file(include_str!("../sql/node_expire.sql")),
            node_join: file(include_str!("../sql/node_join.sql")),
            node_leave: file(include_str!("../sql/node_leave.sql")),
            node_modes: file(include_str!("../sql/node_modes.sql")),
            node_registered: file(include_str!("../sql/node_registered.sql")),
            node_renew: file(include_str!("../sql/node_renew.sql")),
            nodes: file(include_str!("../sql/nodes.sql")),
            owner_free: file(include_str!("../sql/owner_free.sql")),
            owner_is: file(include_str!("../sql/owner_is.sql")),
            owner_probe: file(include_str!("../sql/owner_probe.sql")),
            owner_take: file(include_str!("../sql/owner_take.sql")),
            purge_delete: file(include_str!("../sql/purge_delete.sql")),
            purge_window: file(include_str!("../sql/purge_window.sql")),
            reclaim_free: file(include_str!("../sql/reclaim_free.sql")),
            reclaim_orphans: file(include_str!("../sql/reclaim_orphans.sql")),
            reclaim_probe: file(include_str!("../sql/reclaim_probe.sql")),
            record: file(include_str!("../sql/record.sql")),
            release: file(include_str!("../sql/release.sql")),
            settle_dead: file(include_str!("../sql/settle_dead.sql")),
            settle_done: file(include_str!("../sql/settle_done.sql")),
            settle_hold: file(include_str!("../sql/settle_hold.sql")),
            settle_refused: file(include_str!("../sql/settle_refused.sql")),
            settle_retry: file(include_str!("../sql/settle_retry.sql")),
            statistics_forget: file(include_str!("../sql/statistics_forget.sql")),
            statistics_there: file(include_str!("../sql/statistics_there.sql")),
        }
    }
}

/// Puts names in the places of `{event}`, `{node}`, …. Names are identifiers by their type, so quoting needs no escaping.
pub(crate) fn render(table: &TableName, text: &str) -> String {
    let event = table.event();
    let mut sql = text.to_owned();
    let fragments = [("now", NOW), ("columns", COLUMNS), ("free", FREE), ("mine", MINE), ("orphan", ORPHAN)];
    for (place, fragment) in fragments.into_iter().chain([("matching", MATCHING)]) {
        sql = sql.replace(&format!("{{{place}}}"), fragment);
    }
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
