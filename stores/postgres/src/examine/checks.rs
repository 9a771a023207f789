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
    &STANDBY,
    &READ_ONLY,
    &POOLER,
    &PRIVILEGES,
    &INDEXES,
    &ROW_SECURITY,
    &LOCKED,
    &SNAPSHOTS,
    &WRITERS,
    &AUTOVACUUM,
    &DEAD_ROWS,
    &CONNECTIONS,
    &DURABILITY,
    &REPLICATION,
    &TABLE_UNLOGGED,
    &NUMBERS,
    &BEHIND,
    &SUBSCRIBER,
    &ENCODING,
    &KEPT,
];

pub(super) static STANDBY: Check = check(
    "postgres-standby",
    Critical,
    "the server is a primary",
    "The URL leads to a standby, which takes no writes: no node can join, and no event is recorded as delivered.",
    "Name the primary in the URL, or all servers with `target_session_attrs=read-write`.",
);
pub(super) static READ_ONLY: Check = check(
    "postgres-read-only",
    Critical,
    "transactions may write",
    "Every transaction of this user begins as read-only: no node can join, and no event is recorded as delivered.",
    "Connect as another user, or take the setting back where it is given, as by `ALTER ROLE NAME RESET default_transaction_read_only`.",
);
pub(super) static POOLER: Check = check(
    "postgres-pooler",
    Critical,
    "no pooler stands in between that the URL does not name",
    "A pooler such as PgBouncer drops the settings of sessions, and in transaction mode hands connections on: prepared statements fail, and wake-ups are not heard.",
    "Add `pgbouncer=true` to the URL, or in code use `.pooler(true)`; or connect to the server itself.",
);
pub(super) static PRIVILEGES: Check = check(
    "postgres-privilege-missing",
    Critical,
    "the user has the privileges of a node",
    "The user of this URL lacks a privilege that a node needs, so that it cannot join, deliver or purge.",
    "Grant what is missing; docs/relay.md#privileges has the whole list.",
);
pub(super) static INDEXES: Check = check(
    "postgres-index-missing",
    Critical,
    "all indexes are there and valid",
    "An index was dropped, or its building was interrupted: statements read the whole table in its place, or accept an event twice.",
    "Create it again beside the writers; drop an invalid one first with `DROP INDEX CONCURRENTLY`.",
);
pub(super) static ROW_SECURITY: Check = check(
    "postgres-row-security",
    Critical,
    "no policy hides rows of the event table",
    "Row-level security hides rows of the event table from the user of this URL: nodes do not start, and one that runs passes over what it does not see.",
    "Let whoever delivers see every row: `ALTER ROLE … BYPASSRLS`, or the owner of the table, without FORCE ROW LEVEL SECURITY. Writers may have policies.",
);
pub(super) static LOCKED: Check = check(
    "postgres-table-locked",
    Critical,
    "nobody waits for a lock on the tables",
    "A session has locked one of the tables, and others wait for it: writers cannot insert events, or nodes cannot deliver.",
    "End the session, or wait until what it does has ended, such as `CREATE INDEX` without CONCURRENTLY.",
);
pub(super) static SNAPSHOTS: Check = check(
    "postgres-snapshot-pinned",
    Warning,
    "no old snapshot is held",
    "A transaction, a prepared transaction, a standby or a replication slot keeps an old snapshot: vacuum removes no row that was deleted or changed since, and tables and indexes grow.",
    "End the session, commit or roll back the prepared transaction, or drop the slot if nobody uses it. Against the next time: `idle_in_transaction_session_timeout`.",
);
pub(super) static WRITERS: Check = check(
    "postgres-writer-open",
    Warning,
    "no transaction that writes events is open for long",
    "A transaction has written to the event table and does not end: the read point cannot pass it, in mode partitioned its partitions are not proven, and its events are not delivered.",
    "End the session that is named, and mend the program that leaves its transaction open.",
);
pub(super) static AUTOVACUUM: Check = check(
    "postgres-autovacuum-off",
    Warning,
    "autovacuum runs",
    "Autovacuum is switched off for the server or for the event table: rows that were changed or deleted are never removed, and each poll of the table takes longer.",
    "Switch it on: `ALTER TABLE … RESET (autovacuum_enabled)`, or `autovacuum = on` and `track_counts = on` for the server.",
);
pub(super) static DEAD_ROWS: Check = check(
    "postgres-vacuum-behind",
    Warning,
    "vacuum keeps up",
    "More dead rows have gathered in the event table than vacuum removes, because of an old snapshot, too few workers, or too long pauses of autovacuum.",
    "Look for `postgres-snapshot-pinned` first; then run `VACUUM` on the table, and raise `autovacuum_max_workers` or lower `autovacuum_naptime`.",
);
pub(super) static CONNECTIONS: Check = check(
    "postgres-connections-nearly-used",
    Warning,
    "connections are left",
    "Nearly all connections that the server, the database or the user may have are in use: nodes that lose one may not get another, and lose their leases.",
    "Make pools smaller, put a pooler in between, or raise the limit that is named.",
);
pub(super) static DURABILITY: Check = check(
    "postgres-not-durable",
    Critical,
    "commits wait for the disk",
    "The server does not wait for its disk: events that were committed can be lost in a crash, and with `fsync` or `full_page_writes` off the whole database.",
    "Set `fsync`, `full_page_writes` and, for those who write events, `synchronous_commit` to `on`.",
);
pub(super) static REPLICATION: Check = check(
    "postgres-replication-asynchronous",
    Notice,
    "no standby is asynchronous, or there is none",
    "Standbys follow the server and no commit waits for one: a failover loses the newest commits, events and business rows together.",
    "Set `synchronous_standby_names` where that must not happen; else accept it with `--ignore postgres-replication-asynchronous`.",
);
pub(super) static TABLE_UNLOGGED: Check = check(
    "postgres-table-unlogged",
    Critical,
    "the event table is logged",
    "The event table is UNLOGGED: a crash of the server empties it, and standbys do not have it.",
    "`ALTER TABLE … SET LOGGED`.",
);
pub(super) static NUMBERS: Check = check(
    "postgres-numbers-cached",
    Critical,
    "numbers are given in order",
    "The sequence of `seq` hands numbers out to sessions in advance, or does not ascend, so that a later event may have a lower number: modes `partitioned` and `ordered` deliver events of a key in another order than they were written in, and in every mode each look at the table begins at the bottom.",
    "`ALTER SEQUENCE … CACHE 1`, with a positive `INCREMENT`.",
);
pub(super) static BEHIND: Check = check(
    "postgres-numbers-behind",
    Critical,
    "the sequence has given the highest number",
    "The sequence of `seq` stands below rows that are there, as after a copy of the table or an upgrade by logical replication: new events are delivered before older ones, and fail to be written once their numbers meet those rows.",
    "Set the sequence to the highest `seq`, by `setval`.",
);
pub(super) static SUBSCRIBER: Check = check(
    "postgres-subscriber",
    Critical,
    "no subscription writes the event table",
    "A subscription of logical replication writes the event table, in the order of another server's commits. Nothing here tells of that server's open transactions: events that are committed late may be delivered after later ones of their key, and each look at the table begins at the bottom.",
    "Deliver from the publisher. After an upgrade by logical replication, drop the subscription and set the sequence of `seq` to the highest `seq`.",
);
pub(super) static ENCODING: Check = check(
    "postgres-encoding",
    Warning,
    "the database is encoded in UTF8",
    "The database is not encoded in UTF8. It refuses events, and errors of handlers, with characters that its encoding lacks. With SQL_ASCII it takes any bytes, and an event that a program wrote in another encoding cannot be read.",
    "Create a database with `ENCODING 'UTF8'` and restore a dump of this one into it; until then see to it that all writers use UTF-8.",
);
pub(super) static KEPT: Check = check(
    "postgres-purge-behind",
    Warning,
    "delivered events are purged",
    "Rows of events that were delivered long ago are still there: no node purges, `purge.done_after` is longer than expected, or the purge is refused.",
    "Run `pillarbox purge --done-after 7d`, and look into the log of the nodes for \"cannot be purged\".",
);
