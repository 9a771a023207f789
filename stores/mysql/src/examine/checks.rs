use pillarbox_core::examine::Severity::{Critical, Notice, Warning};
use pillarbox_core::examine::{Check, Severity};

const fn check(
    code: &'static str,
    severity: Severity,
    healthy: &'static str,
    cause: &'static str,
    remedy: &'static str,
) -> Check {
    Check { code, severity, healthy, cause, remedy }
}

/// All checks of this store.
pub const ALL: &[&Check] = &[
    &REPLICA,
    &PRIVILEGES,
    &INDEXES,
    &TRANSACTIONS,
    &HISTORY,
    &CONNECTIONS,
    &DURABILITY,
    &REPLICATION,
    &BINLOG_FORMAT,
    &KEPT,
];

pub(super) static REPLICA: Check = check(
    "mysql-read-only",
    Critical,
    "the server takes writes",
    "The server is read-only, probably a replica: no node can join, and no event is recorded as delivered.",
    "Name the primary in the URL, or switch `read_only` off after a failover.",
);
pub(super) static PRIVILEGES: Check = check(
    "mysql-privilege-missing",
    Critical,
    "the user has the privileges of a node",
    "The user of this URL lacks a privilege that a node needs, so that it cannot join, deliver or purge.",
    "Grant what is missing; docs/relay.md#privileges has the whole list.",
);
pub(super) static INDEXES: Check = check(
    "mysql-index-missing",
    Critical,
    "all indexes are there",
    "An index was dropped: statements read the whole table in its place, lock more than their rows, or accept an event twice.",
    "Create it again.",
);
pub(super) static TRANSACTIONS: Check = check(
    "mysql-transaction-open",
    Warning,
    "no transaction is open for long",
    "A transaction does not end: old versions of rows that were changed or deleted since cannot be purged, each poll of the table takes longer, and in mode partitioned reading cannot pass a transaction that may still commit events.",
    "End the connection that is named, and mend the program that leaves its transaction open.",
);
pub(super) static HISTORY: Check = check(
    "mysql-history-long",
    Warning,
    "purging of old versions keeps up",
    "InnoDB keeps more old versions of rows than it purges, because of an open transaction, or because more is changed than it can purge: each poll of the table passes over them.",
    "Look for `mysql-transaction-open` first; then raise `innodb_purge_threads`.",
);
pub(super) static CONNECTIONS: Check = check(
    "mysql-connections-nearly-used",
    Warning,
    "connections are left",
    "Nearly all connections of the server are in use: nodes that lose one may not get another, and lose their leases.",
    "Make pools smaller, or raise `max_connections`.",
);
pub(super) static DURABILITY: Check = check(
    "mysql-not-durable",
    Critical,
    "commits wait for the disk",
    "The server does not wait for its disk: events that were committed can be lost in a crash, and replicas may have what the server has lost.",
    "Set `innodb_flush_log_at_trx_commit`, and with a binary log `sync_binlog`, to 1, and leave `innodb_doublewrite` on.",
);
pub(super) static REPLICATION: Check = check(
    "mysql-replication-asynchronous",
    Notice,
    "no replica is asynchronous, or there is none",
    "Replicas follow the server and no commit waits for one: a failover loses the newest commits, events and business rows together.",
    "Set up semi-synchronous replication where that must not happen; else accept it with `--ignore mysql-replication-asynchronous`.",
);
pub(super) static BINLOG_FORMAT: Check = check(
    "mysql-binlog-format",
    Critical,
    "the binary log takes the engine's statements",
    "`binlog_format` is STATEMENT, with which the server refuses writes at the isolation level of the engine.",
    "Set `binlog_format` to ROW or MIXED.",
);
pub(super) static KEPT: Check = check(
    "mysql-purge-behind",
    Warning,
    "delivered events are purged",
    "Rows of events that were delivered long ago are still there: no node purges, `purge.done_after` is longer than expected, or the purge is refused.",
    "Run `pillarbox purge --done-after 7d`, and look into the log of the nodes for \"cannot be purged\".",
);
