use pillarbox_core::store::{Admin as _, DeadFilter, FIRST_PAGE, PendingFilter};
use sqlx::raw_sql;

use crate::scratch::Scratch;

#[tokio::test]
async fn a_row_that_is_no_utf_8_can_be_looked_at() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let sql = "INSERT INTO outbox_event (event_id, event_type, payload, status, attempts)
               VALUES ('a', 't', CAST(x'22ff22' AS TEXT), 3, 4294967295)";
    raw_sql(sql).execute(store.writer()).await.expect("inserts");
    let record = store.records("a").await.expect("reads").pop().expect("is there");
    assert_eq!(record.payload.as_ref().and_then(|payload| payload.as_json()), Some("\"\u{fffd}\""));
    assert_eq!(record.attempts, i32::MAX, "more than fit");
    let dead = store.dead(&DeadFilter::default(), 0, 10).await.expect("lists");
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].event_id.as_str(), dead[0].dead_at), ("a", None));
}

#[tokio::test]
async fn the_backlog_bears_any_time_of_creation() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    for (created_at, age) in [(i64::MAX, 0), (0, 1), (i64::MIN, 1)] {
        let sql =
            "INSERT INTO outbox_event (event_id, event_type, payload, created_at) VALUES ('e' || ?1, 't', '{}', ?1)";
        sqlx::query(sql).bind(created_at).execute(store.writer()).await.expect("inserts");
        let oldest = store.backlog().await.expect("counts").oldest_due.expect("one is due");
        assert_eq!(oldest.is_zero(), age == 0, "{created_at}: {oldest:?}");
        raw_sql("DELETE FROM outbox_event").execute(store.writer()).await.expect("deletes");
    }
}

#[tokio::test]
async fn rows_with_numbers_of_zero_and_less_are_listed() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let sql = "INSERT INTO outbox_event (seq, event_id, event_type, payload, status) VALUES
               (-9223372036854775806, 'a', 't', '{}', 0), (0, 'b', 't', '{}', 3), (7, 'c', 't', '{}', 0)";
    raw_sql(sql).execute(store.writer()).await.expect("inserts");
    let pending = store.pending(&PendingFilter::new(), FIRST_PAGE, 10).await.expect("lists");
    assert_eq!(pending.iter().map(|event| event.seq).collect::<Vec<_>>(), [-9_223_372_036_854_775_806, 7]);
    let dead = store.dead(&DeadFilter::default(), FIRST_PAGE, 10).await.expect("lists");
    assert_eq!(dead.iter().map(|event| event.seq).collect::<Vec<_>>(), [0]);
}
