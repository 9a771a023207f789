//! The plans SQLite makes for the statements that run all the time: a change of an index or of a predicate shows here.

use pillarbox_core::store::{Store as _, TableName};
use sqlx::{AssertSqlSafe, Row as _, query};

use crate::SqliteStore;
use crate::sql::Sql;

async fn plan(sql: &str) -> Vec<String> {
    let file =
        std::env::temp_dir().join(format!("pillarbox_sx_plan_{}.db", pillarbox_core::event::Stamp::system().next_id()));
    let store = SqliteStore::open(file.to_str().expect("a UTF-8 path")).await.expect("opens");
    store.migrate().await.expect("migrates");
    let plan =
        query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"))).fetch_all(store.writer()).await.expect("explains");
    store.close().await;
    std::fs::remove_file(file).expect("the file is there");
    plan.iter().map(|row| row.get::<String, _>("detail")).collect()
}

#[tokio::test]
async fn fetching_reads_the_indexes_of_pending_rows_in_their_order() {
    let sql = Sql::new(&TableName::default());
    let ready = plan(&sql.fetch_ready).await;
    assert_eq!(ready[0], "SEARCH outbox_event USING INDEX outbox_event_ready (seq>?)", "{ready:?}");
    let due = plan(&sql.fetch_due).await;
    assert_eq!(
        due[0], "SEARCH outbox_event USING INDEX outbox_event_due (available_at>? AND available_at<?)",
        "{due:?}"
    );
    for plan in [ready, due] {
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE FOR ORDER")), "{plan:?}");
    }
    let times = plan(&sql.fetch_times).await;
    let searches = times.iter().filter(|step| step.contains("SEARCH outbox_event USING INDEX outbox_event_due"));
    assert_eq!(searches.count(), 2, "{times:?}");
}

#[tokio::test]
async fn settling_finds_rows_by_their_primary_key() {
    let sql = Sql::new(&TableName::default());
    for sql in [&sql.settle_done, &sql.settle_retry, &sql.settle_dead] {
        let plan = plan(sql).await;
        assert_eq!(plan[0], "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid=?)", "{plan:?}");
    }
    let refused = plan(&sql.settle_refused).await;
    assert!(
        refused.iter().any(|step| step == "SEARCH outbox_event USING INTEGER PRIMARY KEY (rowid=?)"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn counting_pending_and_dead_rows_reads_their_indexes() {
    let sql = Sql::new(&TableName::default());
    let plan = plan(&sql.counts).await;
    assert!(!plan.iter().any(|step| step == "SCAN outbox_event"), "{plan:?}");
}
