use std::sync::Arc;

use pillarbox_core::ownership::Fence;
use pillarbox_core::store::{Blocked, CANCELLED, FetchScope, Heads, RowSet, TableName};
use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

/// The indexes of the event table, without its name before them.
pub(crate) const INDEXES: [&str; 7] = ["ready", "due", "dead", "heads", "once", "new", "unique"];

/// The time by SQLite's clock, in microseconds; the same throughout one execution of a statement.
pub(crate) const NOW: &str = "(CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)";

/// The columns of a fetched row; read in this order by `row.rs`.
pub(crate) const COLUMNS: &str = "seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, \
                                  payload, payload_bytes, content_type, headers, attempts, occurred_at, created_at, \
                                  status, partition, handler, replays, locked_by";

/// True if the node `?1` may take a row; if it is NULL, every row will do.
const FREE: &str = "(?1 IS NULL OR locked_by IS NULL OR locked_by IN ('?', '!', ?1, ?1 || '!'))";

/// True if the node `?1` holds a row; if it is NULL, its right does not rest on the row.
pub(crate) const HELD: &str = "(?1 IS NULL OR locked_by IN (?1, ?1 || '!'))";

/// True if the node `?1` owns a row's partition.
pub(crate) const OWNED: &str = "EXISTS (SELECT 1 FROM {partition} AS owned \
                     WHERE owned.partition = {event}.partition AND owned.node_id = ?1)";

/// True if a row is of the partitions from `?5` to `?6`, or of none yet. One that does not exist is as good as none.
const WITHIN: &str = "(partition BETWEEN ?5 AND ?6 OR partition IS NULL OR partition NOT BETWEEN 0 AND 255)";

/// The heads before a row: the earlier ones of its key and handler. The index holds `IN (2, 3)`.
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
/// not after the creation, by any clock. Only a NEW row's due time is its writer's.
const READY: &str = "status IN (0, 2) AND (available_at IS NULL OR status = 0 AND available_at <= created_at)";

/// All other pending rows, which are in the index of due times.
const TIMED: &str = "status IN (0, 2) AND available_at IS NOT NULL AND (status = 2 OR available_at > created_at)";

/// True if a row is of the event type `?1`, the aggregate type `?2` and the tenant `?3`, for the handler `?4` and of the key `?5`, of those
/// that are not NULL.
const ATTRIBUTES: &str = "(?1 IS NULL OR event_type = ?1) \
                          AND (?2 IS NULL OR coalesce(aggregate_type, '__GLOBAL__') = ?2) \
                          AND (?3 IS NULL OR tenant_id = ?3) \
                          AND (?4 IS NULL OR handler = ?4) \
                          AND (?5 IS NULL OR coalesce(ordering_key, aggregate_id) = ?5)";

/// True if a DEAD row has the attributes, was given up since `?6` and before `?7`, and has the text `?8` in its error, of those that are not
/// NULL.
const MATCHING: &str = "{attributes} \
                        AND (?6 IS NULL OR coalesce(done_at, created_at) >= ?6) \
                        AND (?7 IS NULL OR coalesce(done_at, created_at) < ?7) \
                        AND (?8 IS NULL OR instr(last_error, ?8) > 0)";

/// The failed attempts of a row with one more, the last ten; without what is no such list. The numbers of its values stand in the
/// places of `attempts`, `node` and `error`.
const FAILED: &str = "json_remove(json_insert(\
                      CASE WHEN NOT coalesce(json_valid(failures), 0) THEN '[]' \
                      WHEN json_type(failures) = 'array' THEN failures ELSE '[]' END, \
                      '$[#]', json_object('attempts', {attempts}, 'at', {now}, 'node', {node}, \
                      'error', substr({error}, 1, 500))), '$[#-11]')";

/// The number of a pending row's state: new, delayed, retrying.
const PENDING_STATE: &str =
    "CASE WHEN status = 2 THEN 2 WHEN available_at > created_at AND available_at > {now} THEN 1 ELSE 0 END";

/// True if a pending row has the attributes and is in the state `?6`, unless that is NULL.
const PENDING_MATCHING: &str = "{attributes} AND (?6 IS NULL OR {pending_state} = ?6)";

/// The files of `sql/`, rendered for one table, each under its name. Everything but names is bound, never rendered.
macro_rules! statements {
    ($($name:ident)*) => {
        #[derive(Debug)]
        pub(crate) struct Sql {
            $(pub(crate) $name: SqlStr,)*
            /// The statement that records a message, which adapters bind.
            pub(crate) receive: Arc<str>,
            pub(crate) recent: Recent,
            pub(crate) scoped: Scoped,
            pub(crate) settle: Settle,
            pub(crate) settle_in_partition: Settle,
        }

        impl Sql {
            pub(crate) fn new(table: &TableName) -> Self {
                Self {
                    $($name: statement(table, include_str!(concat!("../sql/", stringify!($name), ".sql"))),)*
                    receive: render(table, include_str!("../sql/receive.sql")).into(),
                    recent: Recent::new(table),
                    scoped: Scoped::new(table),
                    settle: Settle::new(table, HELD),
                    settle_in_partition: Settle::new(table, OWNED),
                }
            }

            /// The statements by their names, but for those that come in several forms.
            #[cfg(test)]
            pub(crate) fn by_name(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($name), self.$name.as_str())),*]
            }
        }
    };
}

statements! {
    action_end action_record actions actions_purge assign_partitions backlog blocked cancel claim count_dead
    count_paused count_pending counts dead discard evict fetch_due fetch_ready fetch_times free_abandoned
    free_orphans give_partitions head_of highest identify inbox_consumers inbox_count inbox_purge intervene
    intervened interventions join lease_end leave leave_partitions membership migration_compatible migration_names
    migration_ours migration_version names newest node_alive node_registered nodes now owner_is partition_owners
    partitions pause pause_ended pause_found pauses pending probe promote_due purge purge_window reclaim_orphans
    rebalance record record_by_seq record_json release rename renew replay resume retry_now states statistics_forget
    statistics_small statistics_there take_partitions take_table
}

impl Sql {
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
    pub(crate) begin: SqlStr,
    pub(crate) ended: SqlStr,
    pub(crate) done: SqlStr,
    pub(crate) done_as: SqlStr,
    pub(crate) retry_in_place: SqlStr,
    pub(crate) refused: SqlStr,
    pub(crate) removed: SqlStr,
    pub(crate) retry: SqlStr,
}

impl Settle {
    fn new(table: &TableName, mine: &str) -> Self {
        let file = |text: &str| statement(table, &text.replace("{mine}", mine));
        let failing = |text: &str, [attempts, node, error]: [&str; 3]| {
            let failed = FAILED.replace("{attempts}", attempts).replace("{node}", node).replace("{error}", error);
            file(&text.replace("{failed}", &failed))
        };
        Self {
            begin: failing(include_str!("../sql/begin_attempt.sql"), ["?5", "?2", "?6"]),
            ended: failing(include_str!("../sql/settle_ended.sql"), ["?4", "?10", "?5"]),
            done: file(include_str!("../sql/settle_done.sql")),
            done_as: file(include_str!("../sql/settle_done_as.sql")),
            retry_in_place: failing(include_str!("../sql/settle_retry_in_place.sql"), ["?4", "?9", "?5"]),
            refused: file(include_str!("../sql/settle_refused.sql")),
            removed: file(include_str!("../sql/settle_removed.sql")),
            retry: failing(include_str!("../sql/settle_retry.sql"), ["?4", "?10", "?11"]),
        }
    }
}

/// Statements that read the rows of a scope. A condition that a scope does not ask for is not in the statement, so it costs nothing.
#[derive(Debug)]
pub(crate) struct Scoped {
    pub(crate) times: SqlStr,
    /// By the rows that make a row wait: the statements for rows of any key, and for rows by their keys.
    pub(crate) reads: [[Reads; 2]; 3],
}

/// Statements that read the rows without a due time, and the ones with one.
#[derive(Debug)]
pub(crate) struct Reads {
    pub(crate) ready: SqlStr,
    pub(crate) due: SqlStr,
}

impl Scoped {
    fn new(table: &TableName) -> Self {
        let file = |text: &str, wanted: &str| statement(table, &text.replace("{free}", wanted));
        let waits = |blocked: &str| {
            [format!("{WITHIN}{blocked}"), format!("{WITHIN} AND {PICKED}{blocked}")].map(|wanted| Reads {
                ready: file(include_str!("../sql/fetch_ready.sql"), &wanted),
                due: file(include_str!("../sql/fetch_due.sql"), &wanted),
            })
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
    pub(crate) fn reads(&self, scope: &FetchScope) -> &Reads {
        let [nothing, retry, retry_and_dead] = &self.reads;
        let [any, picked] = match scope.heads {
            Heads::None => nothing,
            Heads::Retry => retry,
            Heads::RetryAndDead => retry_and_dead,
        };
        if scope.without.is_empty() && scope.only.is_empty() { any } else { picked }
    }
}

/// Statements that list events of any state, by the rows among which they look.
#[derive(Debug)]
pub(crate) struct Recent {
    pub(crate) all: Pages,
    pub(crate) of_event: Pages,
    /// NEW and RETRY rows, told apart by their state.
    pub(crate) pending: Pages,
    pub(crate) dead: Pages,
}

/// The statement that finds where a page has to stop, and the one that reads it.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) end: SqlStr,
    pub(crate) page: SqlStr,
}

/// The pending rows, each kind by its index. Rows that wait for a time are in the order of time, so all of them are looked at.
const PENDING_ROWS: &str = "(SELECT * FROM {event} INDEXED BY {event_ready} WHERE {ready} \
                            UNION ALL SELECT * FROM {event} INDEXED BY {event_due} WHERE {timed})";

impl Recent {
    fn new(table: &TableName) -> Self {
        let among = |rows: &str, of: &str| {
            let file = |text: &str| statement(table, &text.replace("{rows}", rows).replace("{of}", of));
            Pages { end: file(include_str!("../sql/recent_end.sql")), page: file(include_str!("../sql/recent.sql")) }
        };
        let end_of_pending = statement(table, include_str!("../sql/recent_end_pending.sql"));
        Self {
            all: among("{event} NOT INDEXED", "TRUE"),
            of_event: among("{event} INDEXED BY {event_once}", "event_id = ?10"),
            pending: Pages { end: end_of_pending, ..among(PENDING_ROWS, "TRUE") },
            dead: among("{event} INDEXED BY {event_dead}", "status = 3"),
        }
    }

    pub(crate) fn among(&self, rows: RowSet) -> &Pages {
        match rows {
            RowSet::All => &self.all,
            RowSet::OfEvent => &self.of_event,
            RowSet::New | RowSet::Retry => &self.pending,
            RowSet::Dead => &self.dead,
        }
    }
}

/// The index by which messages are purged.
pub(crate) fn inbox_age(table: &TableName) -> String {
    table.beside("inbox_age")
}

/// A rendered statement, of which a clone copies no text.
fn statement(table: &TableName, text: &str) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(render(table, text))).into_sql_str()
}

/// Puts names in the places of `{event}`, `{node}`, …. Names are identifiers by their type, so quoting needs no escaping.
pub(crate) fn render(table: &TableName, text: &str) -> String {
    let event = table.event();
    let mut sql = text.to_owned();
    // Parts that are made of others come first.
    let (cancelled, most_counted) = (format!("'{CANCELLED}'"), Blocked::COUNTED_UP_TO.to_string());
    let fragments = [
        ("cancelled", cancelled.as_str()),
        ("most_counted", most_counted.as_str()),
        ("pending_matching", PENDING_MATCHING),
        ("pending_state", PENDING_STATE),
        ("heads", HEADS),
        ("hexed", HEXED),
        ("key", KEY),
        ("orphan", ORPHAN),
        ("now", NOW),
        ("columns", COLUMNS),
        ("free", FREE),
        ("ready", READY),
        ("timed", TIMED),
        ("matching", MATCHING),
        ("attributes", ATTRIBUTES),
    ];
    for (place, fragment) in fragments {
        sql = sql.replace(&format!("{{{place}}}"), fragment);
    }
    for index in INDEXES {
        sql = sql.replace(&format!("{{event_{index}}}"), &format!("\"{event}_{index}\""));
    }
    sql = sql.replace("{inbox_age}", &format!("\"{}\"", inbox_age(table)));
    for role in TableName::COMPANIONS {
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
