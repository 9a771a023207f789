use std::sync::Arc;

use pillarbox_core::ownership::Fence;
use pillarbox_core::store::{Heads, Scope, TableName};

/// The indexes of the event table, without its name before them.
pub(crate) const INDEXES: [&str; 6] = ["ready", "due", "dead", "heads", "once", "new"];

/// The time by SQLite's clock, in microseconds; the same throughout one execution of a statement.
pub(crate) const NOW: &str = "(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)";

/// The columns of a fetched row; read in this order by `row.rs`.
const COLUMNS: &str = "seq, attempts, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, \
                       headers, payload, payload_bytes, content_type, occurred_at, created_at, locked_by, status, partition, handler, replays";

/// True if the node `?1` may take a row; if it is NULL, every row will do.
const FREE: &str = "(?1 IS NULL OR locked_by IS NULL OR locked_by IN ('?', '!', ?1, ?1 || '!'))";

/// True if the node `?1` holds a row; if it is NULL, its right does not rest on the row.
const HELD: &str = "(?1 IS NULL OR locked_by IN (?1, ?1 || '!'))";

/// True if the node `?1` owns a row's partition.
const OWNED: &str = "EXISTS (SELECT 1 FROM {partition} AS owned \
                     WHERE owned.partition = {event}.partition AND owned.node_id = ?1)";

/// True if a row is of the partitions from `?5` to `?6`, or of none yet. One that does not exist is as good as none.
const WITHIN: &str = "(partition BETWEEN ?5 AND ?6 OR partition IS NULL OR partition NOT BETWEEN 0 AND 255)";

/// The heads before a row: the earlier ones of its key and handler. `IN (2, 3)` is what the index holds.
const HEADS: &str = "SELECT 1 FROM {event} AS head INDEXED BY {event_heads} \
                     WHERE head.status IN (2, 3) AND coalesce(head.ordering_key, head.aggregate_id) = {key} \
                     AND head.handler IS {event}.handler AND head.seq < {event}.seq";

/// True if a row is not of a key in `?7`, and of a key in `?8`, unless that is NULL. In the lists keys are hexadecimal, because
/// SQLite ends a JSON text at a NUL.
const PICKED: &str = "({key} IS NULL OR {hexed} NOT IN (SELECT value FROM json_each(?7))) \
                      AND (?8 IS NULL OR {key} IS NOT NULL AND {hexed} IN (SELECT value FROM json_each(?8)))";

/// A row's key as it is in such a list.
const HEXED: &str = "iif(handler IS NULL, '', hex(handler) || ':') || hex({key})";

/// The key that a row is ordered by.
const KEY: &str = "coalesce({event}.ordering_key, {event}.aggregate_id)";

/// True if a row says that a node holds it that is not registered.
const ORPHAN: &str = "locked_by NOT IN ('?', '!') AND rtrim(locked_by, '!') NOT IN (SELECT node_id FROM {node})";

/// The pending rows in the index of those without a due time. Writers that stamp both times mean no delay by a due time that is
/// not after the creation, whatever their clock says. Only a NEW row's due time is its writer's.
const READY: &str = "status IN (0, 2) AND (available_at IS NULL OR status = 0 AND available_at <= created_at)";

/// All other pending rows, which are in the index of due times.
const TIMED: &str = "status IN (0, 2) AND available_at IS NOT NULL AND (status = 2 OR available_at > created_at)";

/// True if a DEAD row is of the event type `?1`, the aggregate type `?2` and the tenant `?3`, for the handler `?4` and of the key
/// `?5`, of those that are not NULL.
const MATCHING: &str = "(?1 IS NULL OR event_type = ?1) \
                        AND (?2 IS NULL OR coalesce(aggregate_type, '__GLOBAL__') = ?2) \
                        AND (?3 IS NULL OR tenant_id = ?3) \
                        AND (?4 IS NULL OR handler = ?4) \
                        AND (?5 IS NULL OR coalesce(ordering_key, aggregate_id) = ?5)";

/// The files of `sql/`, rendered for one table. Everything but names is bound, never rendered.
#[derive(Debug)]
pub(crate) struct Sql {
    pub(crate) backlog: Arc<str>,
    pub(crate) blocked: Arc<str>,
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
    pub(crate) identify: Arc<str>,
    pub(crate) intervene: Arc<str>,
    pub(crate) interventions: Arc<str>,
    pub(crate) migration_compatible: Arc<str>,
    pub(crate) migration_names: Arc<str>,
    pub(crate) migration_ours: Arc<str>,
    pub(crate) migration_version: Arc<str>,
    pub(crate) node_alive: Arc<str>,
    pub(crate) node_evict: Arc<str>,
    pub(crate) node_join: Arc<str>,
    pub(crate) node_lease: Arc<str>,
    pub(crate) node_leave: Arc<str>,
    pub(crate) node_registered: Arc<str>,
    pub(crate) node_renew: Arc<str>,
    pub(crate) nodes: Arc<str>,
    pub(crate) now: Arc<str>,
    pub(crate) owner_free: Arc<str>,
    pub(crate) owner_is: Arc<str>,
    pub(crate) owner_probe: Arc<str>,
    pub(crate) owner_take: Arc<str>,
    pub(crate) partitions: Arc<str>,
    pub(crate) purge_delete: Arc<str>,
    pub(crate) purge_window: Arc<str>,
    pub(crate) reclaim_free: Arc<str>,
    pub(crate) reclaim_orphans: Arc<str>,
    pub(crate) reclaim_probe: Arc<str>,
    pub(crate) record: Arc<str>,
    pub(crate) record_by_seq: Arc<str>,
    pub(crate) release: Arc<str>,
    pub(crate) promote_due: Arc<str>,
    pub(crate) scoped: Scoped,
    pub(crate) settle: Settle,
    pub(crate) settle_in_partition: Settle,
    pub(crate) leave_partitions: Arc<str>,
    pub(crate) share_give: Arc<str>,
    pub(crate) share_seen: Arc<str>,
    pub(crate) share_take: Arc<str>,
    pub(crate) assign_partitions: Arc<str>,
    pub(crate) statistics_forget: Arc<str>,
    pub(crate) statistics_there: Arc<str>,
    pub(crate) written: Arc<str>,
}

impl Sql {
    pub(crate) fn new(table: &TableName) -> Self {
        let file = |text: &str| render(table, text).into();
        Self {
            backlog: file(include_str!("../sql/backlog.sql")),
            blocked: file(include_str!("../sql/blocked.sql")),
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
            identify: file(include_str!("../sql/identify.sql")),
            intervene: file(include_str!("../sql/intervene.sql")),
            interventions: file(include_str!("../sql/interventions.sql")),
            migration_compatible: file(include_str!("../sql/migration_compatible.sql")),
            migration_names: file(include_str!("../sql/migration_names.sql")),
            migration_ours: file(include_str!("../sql/migration_ours.sql")),
            migration_version: file(include_str!("../sql/migration_version.sql")),
            node_alive: file(include_str!("../sql/node_alive.sql")),
            node_evict: file(include_str!("../sql/node_evict.sql")),
            node_join: file(include_str!("../sql/node_join.sql")),
            node_lease: file(include_str!("../sql/node_lease.sql")),
            node_leave: file(include_str!("../sql/node_leave.sql")),
            node_registered: file(include_str!("../sql/node_registered.sql")),
            node_renew: file(include_str!("../sql/node_renew.sql")),
            nodes: file(include_str!("../sql/nodes.sql")),
            now: file(include_str!("../sql/now.sql")),
            owner_free: file(include_str!("../sql/owner_free.sql")),
            owner_is: file(include_str!("../sql/owner_is.sql")),
            owner_probe: file(include_str!("../sql/owner_probe.sql")),
            owner_take: file(include_str!("../sql/owner_take.sql")),
            partitions: file(include_str!("../sql/partitions.sql")),
            purge_delete: file(include_str!("../sql/purge_delete.sql")),
            purge_window: file(include_str!("../sql/purge_window.sql")),
            reclaim_free: file(include_str!("../sql/reclaim_free.sql")),
            reclaim_orphans: file(include_str!("../sql/reclaim_orphans.sql")),
            reclaim_probe: file(include_str!("../sql/reclaim_probe.sql")),
            record: file(include_str!("../sql/record.sql")),
            record_by_seq: file(include_str!("../sql/record_by_seq.sql")),
            release: file(include_str!("../sql/release.sql")),
            promote_due: file(include_str!("../sql/promote_due.sql")),
            scoped: Scoped::new(table),
            settle: Settle::new(table, HELD),
            settle_in_partition: Settle::new(table, OWNED),
            leave_partitions: file(include_str!("../sql/leave_partitions.sql")),
            share_give: file(include_str!("../sql/share_give.sql")),
            share_seen: file(include_str!("../sql/share_seen.sql")),
            share_take: file(include_str!("../sql/share_take.sql")),
            assign_partitions: file(include_str!("../sql/assign_partitions.sql")),
            statistics_forget: file(include_str!("../sql/statistics_forget.sql")),
            statistics_there: file(include_str!("../sql/statistics_there.sql")),
            written: file(include_str!("../sql/written.sql")),
        }
    }

    /// The statements that change rows by the right that `fence` names.
    pub(crate) fn settle(&self, fence: Fence) -> &Settle {
        match fence {
            Fence::Table | Fence::Row => &self.settle,
            Fence::Partition => &self.settle_in_partition,
        }
    }
}

/// Statements that change rows that are a node's own.
#[derive(Debug)]
pub(crate) struct Settle {
    pub(crate) begin: Arc<str>,
    pub(crate) ended: Arc<str>,
    pub(crate) done: Arc<str>,
    pub(crate) hold: Arc<str>,
    pub(crate) refused: Arc<str>,
    pub(crate) remove: Arc<str>,
    pub(crate) retry: Arc<str>,
}

impl Settle {
    fn new(table: &TableName, mine: &str) -> Self {
        let file = |text: &str| render(table, &text.replace("{mine}", mine)).into();
        Self {
            begin: file(include_str!("../sql/attempt_begin.sql")),
            ended: file(include_str!("../sql/settle_ended.sql")),
            done: file(include_str!("../sql/settle_done.sql")),
            hold: file(include_str!("../sql/settle_hold.sql")),
            refused: file(include_str!("../sql/settle_refused.sql")),
            remove: file(include_str!("../sql/settle_remove.sql")),
            retry: file(include_str!("../sql/settle_retry.sql")),
        }
    }
}

/// Statements that read the rows of a scope. A condition that a scope does not ask for is not in the statement, so it costs nothing.
#[derive(Debug)]
pub(crate) struct Scoped {
    pub(crate) times: Arc<str>,
    /// By what makes a row wait.
    pub(crate) reads: [ScopedReads; 3],
}

/// Statements that read rows that wait behind certain heads: whatever their key, and by their keys.
#[derive(Debug)]
pub(crate) struct ScopedReads {
    pub(crate) any: Reads,
    pub(crate) picked: Reads,
}

/// Statements that read the rows without a due time, and those with one.
#[derive(Debug)]
pub(crate) struct Reads {
    pub(crate) ready: Arc<str>,
    pub(crate) due: Arc<str>,
}

impl Scoped {
    fn new(table: &TableName) -> Self {
        let file = |text: &str, wanted: &str| render(table, &text.replace("{free}", wanted)).into();
        let reads = |wanted: &str| Reads {
            ready: file(include_str!("../sql/fetch_ready.sql"), wanted),
            due: file(include_str!("../sql/fetch_due.sql"), wanted),
        };
        let waits = |blocked: &str| ScopedReads {
            any: reads(&format!("{WITHIN}{blocked}")),
            picked: reads(&format!("{WITHIN} AND {PICKED}{blocked}")),
        };
        Self {
            times: file(include_str!("../sql/fetch_times.sql"), WITHIN),
            reads: [
                waits(""),
                waits(" AND NOT EXISTS ({heads} AND head.status = 2)"),
                waits(" AND NOT EXISTS ({heads})"),
            ],
        }
    }

    /// The statements that read rows of this scope.
    pub(crate) fn reads(&self, scope: &Scope) -> &Reads {
        let [nothing, retry, retry_and_dead] = &self.reads;
        let reads = match scope.heads {
            Heads::None => nothing,
            Heads::Retry => retry,
            Heads::RetryAndDead => retry_and_dead,
        };
        if scope.without.is_empty() && scope.only.is_empty() { &reads.any } else { &reads.picked }
    }
}

/// Puts names in the places of `{event}`, `{node}`, …. Names are identifiers by their type, so quoting needs no escaping.
pub(crate) fn render(table: &TableName, text: &str) -> String {
    let event = table.event();
    let mut sql = text.to_owned();
    // Those that are made of others come first.
    let fragments = [
        ("heads", HEADS),
        ("hexed", HEXED),
        ("key", KEY),
        ("orphan", ORPHAN),
        ("now", NOW),
        ("columns", COLUMNS),
        ("free", FREE),
        ("ready", READY),
        ("timed", TIMED),
    ];
    for (place, fragment) in fragments.into_iter().chain([("matching", MATCHING)]) {
        sql = sql.replace(&format!("{{{place}}}"), fragment);
    }
    for index in INDEXES {
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
        // The braces of the derived form stand alone, those of a place do not.
        let place = sql.split('{').skip(1).find(|rest| !rest.starts_with(' '));
        assert_eq!(place, None, "{sql}");
    }
}
