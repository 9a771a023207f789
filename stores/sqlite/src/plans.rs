//! The plans SQLite makes for the statements of the store: a change of an index or of a predicate shows here.

use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{NodeId, NodeMode};
use pillarbox_core::store::{Store as _, TableName};
use sqlx::{AssertSqlSafe, Row as _, query, raw_sql};

use crate::SqliteStore;
use crate::insert::Inserts;
use crate::sql::{Pages, Reads, Recent, Scoped, Settle, Sql};

const KEY: &str = "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid=?)";
const ID: &str = "SEARCH outbox_event USING INDEX outbox_event_once (event_id=?)";
const IDS: &str = "SCAN outbox_event USING COVERING INDEX outbox_event_once";
const READY: &str = "SCAN outbox_event USING INDEX outbox_event_ready";
const READY_ABOVE: &str = "SEARCH outbox_event USING INDEX outbox_event_ready (seq>?)";
const TIMED: &str = "SEARCH outbox_event USING INDEX outbox_event_due (available_at>?)";
const DUE: &str = "SEARCH outbox_event USING INDEX outbox_event_due (available_at>? AND available_at<?)";
const DEAD: &str = "SCAN outbox_event USING INDEX outbox_event_dead";
const DEAD_ONLY: &str = "SCAN outbox_event USING COVERING INDEX outbox_event_dead";
const DEAD_ABOVE: &str = "SEARCH outbox_event USING INDEX outbox_event_dead (seq>?)";
const DEAD_ONES: &str = "SEARCH outbox_event USING COVERING INDEX outbox_event_dead (seq=?)";
const ANY_HEAD: &str = "SCAN outbox_event USING COVERING INDEX outbox_event_heads";
const HEADS: &str = "SCAN head USING COVERING INDEX outbox_event_heads";
const HEADS_OF_KEY: &str =
    "SEARCH head USING COVERING INDEX outbox_event_heads (<expr>=? AND handler=? AND status=? AND seq<?)";
const A_HEAD_OF_KEY: &str =
    "SEARCH head EXISTS USING COVERING INDEX outbox_event_heads (<expr>=? AND handler=? AND status=? AND seq<?)";
const HEAD: &str = "SEARCH head USING INTEGER PRIMARY KEY (rowid=?)";
/// Every row, delivered ones as well.
const ALL: &str = "SCAN outbox_event";
const LAST: &str = "SEARCH outbox_event";
const WINDOW: &str = "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid>?)";
const MESSAGE: &str = "SEARCH outbox_inbox USING PRIMARY KEY (consumer=? AND message_id=?)";
const NEXT_CONSUMER: &str = "SEARCH outbox_inbox USING COVERING INDEX outbox_inbox_age (consumer>?)";
const OF_CONSUMER: &str = "SEARCH outbox_inbox USING COVERING INDEX outbox_inbox_age (consumer=?)";
const OLD: &str = "SEARCH outbox_inbox USING COVERING INDEX outbox_inbox_age (consumer=? AND received_at<?)";
const UNIQUE: &str = "SEARCH outbox_event USING INDEX outbox_event_unique (unique_key=? AND <expr>=?)";
const BELOW: &str = "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid<?)";
const READY_BELOW: &str = "SEARCH outbox_event USING INDEX outbox_event_ready (seq<?)";
const READY_SPAN: &str = "SEARCH outbox_event USING INDEX outbox_event_ready (seq>? AND seq<?)";
const DEAD_BELOW: &str = "SEARCH outbox_event USING INDEX outbox_event_dead (seq<?)";
const DEAD_SPAN: &str = "SEARCH outbox_event USING INDEX outbox_event_dead (seq>? AND seq<?)";
const SPAN: &str = "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";

/// Statements on events or messages, and the indexes by which each finds them.
const OF_EVENTS: [(&str, &[&str]); 38] = [
    ("assign_partitions", &[KEY]),
    ("backlog", &[READY, DUE, TIMED, DEAD_ONLY, READY]),
    ("blocked", &[HEADS, READY_ABOVE, A_HEAD_OF_KEY, TIMED, A_HEAD_OF_KEY, HEAD]),
    ("cancel", &[KEY]),
    ("claim", &[KEY]),
    ("count_dead", &[DEAD]),
    ("count_paused", &[READY, DUE]),
    ("count_pending", &[READY, TIMED]),
    ("counts", &[READY, TIMED, DEAD_ONLY, IDS, ALL]),
    ("dead", &[DEAD_ABOVE]),
    ("discard", &[DEAD_ONES]),
    ("fetch_due", &[DUE]),
    ("fetch_ready", &[READY_ABOVE]),
    ("fetch_times", &[TIMED, TIMED]),
    ("free_orphans", &[KEY, READY, DUE]),
    ("head_of", &[HEADS_OF_KEY]),
    ("highest", &[LAST]),
    ("identify", &[KEY]),
    ("inbox_consumers", &[NEXT_CONSUMER, NEXT_CONSUMER, OF_CONSUMER]),
    ("inbox_count", &[OF_CONSUMER]),
    ("inbox_purge", &[MESSAGE, OLD]),
    ("interventions", &[ANY_HEAD]),
    ("names", &[KEY]),
    ("newest", &["SCAN outbox_event"]),
    ("partitions", &[READY, TIMED]),
    ("pending", &[READY_ABOVE, TIMED, KEY]),
    ("promote_due", &[KEY]),
    ("purge", &[SPAN]),
    ("purge_window", &[WINDOW]),
    ("reclaim_orphans", &[READY, DUE]),
    ("record", &[ID]),
    ("record_by_seq", &[KEY]),
    ("record_json", &[KEY]),
    ("release", &[KEY]),
    ("rename", &[KEY]),
    ("replay", &[DEAD_ONES]),
    ("retry_now", &[KEY]),
    ("states", &[ID]),
];
/// Statements on other tables, which hold a few rows.
const OF_OTHERS: &str = "action_end action_record actions actions_purge evict free_abandoned give_partitions \
                         intervene intervened lease_end leave leave_partitions membership migration_compatible \
                         migration_names migration_ours migration_version node_alive node_registered nodes owner_is \
                         partition_owners pause_ended pause_found pauses probe rebalance renew resume statistics_there \
                         take_partitions take_table";
/// Statements without a plan: they insert values, read no table, or are of a table that only `ANALYZE` makes.
const WITHOUT_A_PLAN: &str = "join now pause statistics_forget statistics_small";

/// Every statement, and the indexes by which it finds events.
fn expected() -> Vec<(String, Vec<&'static str>)> {
    let sql = Sql::new(&TableName::default());
    let is_in = |names: &str, name: &str| names.split_whitespace().any(|other| other == name);
    let mut plans = Vec::new();
    for (name, statement) in sql.by_name() {
        match OF_EVENTS.iter().find(|(other, _)| *other == name) {
            Some((_, plan)) => plans.push((statement.to_owned(), plan.to_vec())),
            None if is_in(OF_OTHERS, name) => plans.push((statement.to_owned(), Vec::new())),
            None => assert!(is_in(WITHOUT_A_PLAN, name), "a new statement has to be listed: {name}"),
        }
    }
    for statement in Inserts::new(&TableName::default()).around_unique() {
        plans.push((statement.to_owned(), vec![UNIQUE]));
    }
    let Recent { all, of_event, pending, dead } = sql.recent;
    plans.push((of_event.page.as_str().to_owned(), vec![ID]));
    let pages = [
        (all, [vec![BELOW], vec![SPAN]]),
        (pending, [vec![READY_BELOW, TIMED], vec![READY_SPAN, TIMED]]),
        (dead, [vec![DEAD_BELOW], vec![DEAD_SPAN]]),
    ];
    for (Pages { end, page }, expected) in pages {
        plans.extend([end, page].map(|sql| sql.as_str().to_owned()).into_iter().zip(expected));
    }
    let Scoped { times, reads } = sql.scoped;
    plans.push((times.as_str().to_owned(), vec![TIMED, TIMED]));
    for (heads, reads) in [vec![], vec![HEADS_OF_KEY], vec![HEADS_OF_KEY]].into_iter().zip(reads) {
        for Reads { ready, due } in reads {
            plans.push((ready.as_str().to_owned(), [vec![READY_ABOVE], heads.clone()].concat()));
            plans.push((due.as_str().to_owned(), [vec![DUE], heads.clone()].concat()));
        }
    }
    for Settle { begin, done, done_as, ended, refused, removed, retry, retry_in_place } in
        [sql.settle, sql.settle_in_partition]
    {
        let all = [begin, ended, done, done_as, refused, removed, retry, retry_in_place];
        plans.extend(all.map(|sql| (sql.as_str().to_owned(), vec![KEY])));
    }
    plans
}

/// The time at which statistics are made.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistics {
    Never,
    /// Before there is any head or much else.
    Early,
    Fresh,
    /// After the migration, before a node joins.
    Late,
}

/// Explains every statement in a database of so many events, most of them delivered, and so many heads.
async fn check_plans(events: u32, heads: u32, statistics: Statistics) {
    let file = std::env::temp_dir().join(format!("pillarbox_sx_plan_{}.db", Stamp::system().next_id()));
    let store = SqliteStore::open(file.to_str().expect("a UTF-8 path")).await.expect("opens");
    store.migrate().await.expect("migrates");
    let run = async |sql: String| {
        raw_sql(AssertSqlSafe(sql)).execute(store.writer()).await.expect("is valid SQL");
    };
    let early = if statistics == Statistics::Early { events.min(2_000) } else { 0 };
    for (first, last) in [(1, early), (early + 1, events)] {
        // One in ten is pending, of which one in three has a due time.
        run(format!(
            "WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
             INSERT INTO outbox_event (event_id, event_type, payload, ordering_key, partition, status, available_at, created_at)
             SELECT 'e' || n, 't', '1', 'k' || (n % 1000), n % 256, CASE WHEN n % 10 THEN 1 ELSE 0 END,
                    CASE n / 40 % 3 WHEN 0 THEN n END, 0
             FROM numbers WHERE n <= {last}"
        ))
        .await;
        if last == early && early > 0 {
            run("ANALYZE".to_owned()).await;
        }
    }
    run(format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {events})
         INSERT INTO outbox_inbox SELECT 'c' || n % 10, 'm' || n, n FROM numbers WHERE n <= {events}"
    ))
    .await;
    // Half of the heads are DEAD; the others wait for another attempt.
    run(format!(
        "UPDATE outbox_event SET status = 2 + seq % 2, attempts = 1, available_at = CASE seq % 2 WHEN 0 THEN 9e15 END
         WHERE seq <= {heads};
         INSERT INTO outbox_node (node_id, mode, started_at, expires_at, lease) VALUES ('a', 'partitioned', 1, 1, 1), ('b', 'partitioned', 1, 1, 1)"
    ))
    .await;
    if statistics == Statistics::Fresh {
        run("ANALYZE".to_owned()).await;
    }
    store.migrate().await.expect("finds nothing to do");
    if statistics == Statistics::Late {
        run("ANALYZE".to_owned()).await;
        let (node, lease) = (NodeId::from_stored("c"), std::time::Duration::from_secs(60));
        store.join(&node, NodeMode::Partitioned, lease).await.expect("joins");
    }
    let table = format!("{events} events, {heads} heads and statistics made {statistics:?}");
    for (sql, expected) in expected() {
        let plan = query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"))).fetch_all(store.writer()).await;
        let plan: Vec<String> = plan.expect("explains").iter().map(|row| row.get("detail")).collect();
        let found: Vec<&String> = plan
            .iter()
            .filter(|step| ["outbox_event", "outbox_inbox", " head "].iter().any(|of| step.contains(of)))
            .collect();
        assert_eq!(found, expected, "with {table}: {sql}");
        let sorted = plan.iter().any(|step| step.starts_with("USE TEMP B-TREE"));
        // The rows of one event, and pending rows of two indexes, are sorted.
        let sorts = ["GROUP BY", "MATERIALIZED", "UNION ALL", "INDEXED BY \"outbox_event_once\""];
        let may = expected.is_empty() || sorts.iter().any(|part| sql.contains(part));
        assert!(!sorted || may, "with {table} it sorts: {sql}\n{plan:?}");
    }
    store.close().await;
    std::fs::remove_file(file).expect("the file is there");
}

/// A page of events has their payloads and headers nowhere in memory, at any size.
#[tokio::test]
async fn lists_read_no_content_of_events() {
    let file = std::env::temp_dir().join(format!("pillarbox_sx_plan_{}.db", Stamp::system().next_id()));
    let store = SqliteStore::open(file.to_str().expect("a UTF-8 path")).await.expect("opens");
    store.migrate().await.expect("migrates");
    let numbers = async |sql: &'static str| -> Vec<i64> {
        let rows = query(sql).fetch_all(store.writer()).await.expect("is valid SQL");
        rows.iter().map(|row| row.get(0)).collect()
    };
    let table = numbers("SELECT rootpage FROM sqlite_schema WHERE name = 'outbox_event'").await;
    let content = numbers(
        "SELECT cid FROM pragma_table_info('outbox_event') WHERE name IN ('payload', 'payload_bytes', 'headers')",
    )
    .await;
    assert_eq!((table.len(), content.len()), (1, 3));
    let reads_content = async |sql: &str| {
        let steps = query(AssertSqlSafe(format!("EXPLAIN {sql}"))).fetch_all(store.writer()).await.expect("explains");
        let steps: Vec<(String, i64, i64)> =
            steps.iter().map(|step| (step.get("opcode"), step.get("p1"), step.get("p2"))).collect();
        let opens = |cursor: i64| {
            steps.iter().any(|(code, of, root)| code == "OpenRead" && *of == cursor && table.contains(root))
        };
        steps.iter().any(|(code, cursor, column)| code == "Column" && content.contains(column) && opens(*cursor))
    };
    let Sql { dead, pending, recent, record_by_seq, .. } = Sql::new(&TableName::default());
    assert!(reads_content(record_by_seq.as_str()).await, "what is shown of one event");
    for list in [dead, pending, recent.all.page, recent.of_event.page, recent.pending.page, recent.dead.page] {
        assert!(!reads_content(list.as_str()).await, "{}", list.as_str());
    }
    store.close().await;
    std::fs::remove_file(file).expect("the file is there");
}

#[tokio::test]
async fn every_statement_reads_its_index_without_statistics() {
    check_plans(0, 0, Statistics::Never).await;
    check_plans(200_000, 100_000, Statistics::Never).await;
}

#[tokio::test]
async fn every_statement_reads_its_index_with_statistics() {
    for heads in [0, 100, 100_000] {
        check_plans(200_000, heads, Statistics::Fresh).await;
    }
}

#[tokio::test]
async fn statistics_of_a_table_that_has_grown_since_mislead_nobody() {
    check_plans(200_000, 100_000, Statistics::Early).await;
}

#[tokio::test]
async fn statistics_of_a_nearly_empty_table_mislead_nobody_after_migrate() {
    for events in [1, 3, 60] {
        check_plans(events, events / 2, Statistics::Fresh).await;
    }
}

#[tokio::test]
async fn statistics_of_a_nearly_empty_table_mislead_nobody_after_a_node_has_joined() {
    for events in [1, 3, 60] {
        check_plans(events, events / 2, Statistics::Late).await;
    }
}
