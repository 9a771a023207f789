//! The plans SQLite makes for the statements of the store: a change of an index or of a predicate shows here.

use pillarbox_core::event::Stamp;
use pillarbox_core::store::{Store as _, TableName};
use sqlx::{AssertSqlSafe, Row as _, query, raw_sql};

use crate::SqliteStore;
use crate::sql::Sql;

const KEY: &str = "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid=?)";
const ID: &str = "SEARCH outbox_event USING INDEX sqlite_autoindex_outbox_event_1 (event_id=?)";
const IDS: &str = "SCAN outbox_event USING COVERING INDEX sqlite_autoindex_outbox_event_1";
const READY: &str = "SCAN outbox_event USING INDEX outbox_event_ready";
const READY_ABOVE: &str = "SEARCH outbox_event USING INDEX outbox_event_ready (seq>?)";
const TIMED: &str = "SEARCH outbox_event USING INDEX outbox_event_due (available_at>?)";
const DUE: &str = "SEARCH outbox_event USING INDEX outbox_event_due (available_at>? AND available_at<?)";
const DEAD: &str = "SCAN outbox_event USING INDEX outbox_event_dead";
const DEAD_ONLY: &str = "SCAN outbox_event USING COVERING INDEX outbox_event_dead";
const DEAD_ABOVE: &str = "SEARCH outbox_event USING INDEX outbox_event_dead (seq>?)";
const DEAD_ONES: &str = "SEARCH outbox_event USING COVERING INDEX outbox_event_dead (seq=?)";
const WINDOW: &str = "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid>?)";
const SPAN: &str = "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";

/// Every statement that reads or changes events, and how it finds them. The other tables hold a few rows.
fn expected() -> Vec<(String, Vec<&'static str>)> {
    // Without `..`, so that a new statement has to be listed.
    let Sql {
        attempt_begin,
        backlog,
        check,
        claim,
        counts,
        dead,
        dead_count,
        dead_discard,
        dead_replay,
        fetch_due,
        fetch_ready,
        fetch_times,
        migration_names,
        migration_ours,
        migration_version,
        node_alive,
        node_expire,
        node_join: _, // Inserts values, of which there is no plan.
        node_leave,
        node_modes,
        node_registered,
        node_renew,
        nodes,
        owner_free,
        owner_is,
        owner_probe,
        owner_take,
        purge_delete,
        purge_window,
        reclaim_free,
        reclaim_orphans,
        reclaim_probe,
        record,
        release,
        settle_dead,
        settle_done,
        settle_hold,
        settle_refused,
        settle_retry,
        statistics_forget: _, // Of a table that only `ANALYZE` makes.
        statistics_there,
    } = Sql::new(&TableName::default());
    let plans = [
        (attempt_begin, vec![KEY]),
        (backlog, vec![READY, DUE, TIMED, DEAD_ONLY, READY]),
        (check, vec![READY]),
        (claim, vec![KEY]),
        (counts, vec![READY, TIMED, DEAD_ONLY, IDS]),
        (dead, vec![DEAD_ABOVE]),
        (dead_count, vec![DEAD]),
        (dead_discard, vec![DEAD_ONES]),
        (dead_replay, vec![DEAD_ONES]),
        (fetch_due, vec![DUE]),
        (fetch_ready, vec![READY_ABOVE]),
        (fetch_times, vec![TIMED, TIMED]),
        (purge_delete, vec![SPAN]),
        (purge_window, vec![WINDOW]),
        (reclaim_free, vec![KEY, READY, DUE]),
        (reclaim_orphans, vec![READY, DUE]),
        (record, vec![ID]),
        (release, vec![KEY]),
        (settle_dead, vec![KEY]),
        (settle_done, vec![KEY]),
        (settle_hold, vec![KEY]),
        (settle_refused, vec![KEY]),
        (settle_retry, vec![KEY]),
    ];
    let others = [
        migration_names,
        migration_ours,
        migration_version,
        node_alive,
        node_expire,
        node_leave,
        node_modes,
        node_registered,
        node_renew,
        nodes,
        owner_free,
        owner_is,
        owner_probe,
        owner_take,
        reclaim_probe,
        statistics_there,
    ];
    let others = others.into_iter().map(|sql| (sql, Vec::new()));
    plans.into_iter().chain(others).map(|(sql, plan)| (sql.to_string(), plan)).collect()
}

/// Explains every statement in a database of so many events, most of them delivered, with statistics if there are any.
async fn check_plans(events: u32) {
    let file = std::env::temp_dir().join(format!("pillarbox_sx_plan_{}.db", Stamp::system().next_id()));
    let store = SqliteStore::open(file.to_str().expect("a UTF-8 path")).await.expect("opens");
    store.migrate().await.expect("migrates");
    if events > 0 {
        let sql = format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {events})
             INSERT INTO outbox_event (event_id, event_type, payload, status, available_at)
             SELECT 'e' || n, 't', '1', CASE WHEN n % 10 THEN 1 ELSE n / 10 % 4 END, CASE n / 40 % 3 WHEN 0 THEN n END
             FROM numbers;
             INSERT INTO outbox_node VALUES ('a', 'multi_node', 1, 1), ('b', 'multi_node', 1, 1);
             ANALYZE"
        );
        raw_sql(AssertSqlSafe(sql)).execute(store.writer()).await.expect("is valid SQL");
        store.migrate().await.expect("finds nothing to do");
    }
    for (sql, expected) in expected() {
        let plan = query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"))).fetch_all(store.writer()).await;
        let plan: Vec<String> = plan.expect("explains").iter().map(|row| row.get("detail")).collect();
        let found: Vec<&String> = plan.iter().filter(|step| step.contains("outbox_event")).collect();
        assert_eq!(found, expected, "with {events} events: {sql}");
        let sorted = plan.iter().any(|step| step.starts_with("USE TEMP B-TREE"));
        assert!(!sorted || expected.is_empty(), "with {events} events it sorts: {sql}\n{plan:?}");
    }
    store.close().await;
    std::fs::remove_file(file).expect("the file is there");
}

#[tokio::test]
async fn every_statement_reads_its_index_without_statistics() {
    check_plans(0).await;
}

#[tokio::test]
async fn every_statement_reads_its_index_with_statistics() {
    check_plans(10_000).await;
}

#[tokio::test]
async fn statistics_of_a_nearly_empty_table_mislead_nobody_after_migrate() {
    for events in [1, 3, 60] {
        check_plans(events).await;
    }
}
