use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{RowSet, Store as _};
use tokio_postgres::types::Type;

use super::{DEAD, ENDED, PENDING, Plan, Setting, execute, with_rows};
use crate::PostgresStore;
use crate::row::Micros;
use crate::session::{BY_INDEX, Param};

async fn check(store: &PostgresStore, _: &NodeId) {
    let sql = &store.inner().sql;
    let (any, placed) = (None::<&str>, Some("order.placed"));
    let any_time = None::<Micros>;
    let (above, limit) = (500_i64, 100_i64);
    for (event_type, most) in [(any, limit), (placed, limit), (Some("other"), DEAD)] {
        let page: [Param<'_>; 10] = [
            (&event_type, Type::TEXT),
            (&any, Type::TEXT),
            (&any, Type::TEXT),
            (&any, Type::TEXT),
            (&any, Type::TEXT),
            (&any_time, Type::TIMESTAMPTZ),
            (&any_time, Type::TIMESTAMPTZ),
            (&any, Type::TEXT),
            (&above, Type::INT8),
            (&limit, Type::INT8),
        ];
        Plan::of(store, "", &sql.dead, &page).await.enters_by(&["dead_idx"], most).sorts(0);
        Plan::of(store, "", &sql.count_dead, &page[..8]).await.enters_by(&["dead_idx"], DEAD);
    }
    let no_state = None::<i16>;
    let page: [Param<'_>; 8] = [
        (&any, Type::TEXT),
        (&any, Type::TEXT),
        (&any, Type::TEXT),
        (&any, Type::TEXT),
        (&any, Type::TEXT),
        (&no_state, Type::INT2),
        (&above, Type::INT8),
        (&limit, Type::INT8),
    ];
    Plan::of(store, BY_INDEX, &sql.pending, &page)
        .await
        .enters_by(&["pkey", "aside_idx", "due_idx"], PENDING)
        .sorts(PENDING);
    let count = Plan::of(store, BY_INDEX, &sql.count_pending, &page[..6]).await;
    count.enters_by(&["pkey", "aside_idx", "due_idx"], PENDING);
    let some: Vec<i64> = (100..200).collect();
    for statement in [&sql.replay, &sql.discard] {
        // One in a hundred is DEAD; the index to choose depends on the statistics of that.
        Plan::of(store, "", statement, &[(&some, Type::INT8_ARRAY)]).await.enters_by(&[], DEAD);
    }
    for statement in [&sql.cancel.free, &sql.cancel.any, &sql.retry_now.free, &sql.retry_now.any] {
        Plan::of(store, "", statement, &[(&some, Type::INT8_ARRAY)]).await.enters_by(&[], PENDING);
    }
    let (age, none) = (0_i64, None::<i16>);
    for state in [Some(1_i16), Some(3), none] {
        let window: [Param<'_>; 5] =
            [(&state, Type::INT2), (&age, Type::INT8), (&above, Type::INT8), (&limit, Type::INT8), (&any, Type::TEXT)];
        Plan::of(store, BY_INDEX, &sql.purge, &window).await.enters_by(&["pkey"], DEAD).sorts(limit);
    }
    let backlog = Plan::of(store, BY_INDEX, &sql.backlog, &[]).await;
    backlog.enters_by(&["pkey", "aside_idx", "due_idx", "dead_idx"], PENDING);
    let id = "77";
    Plan::of(store, "", &sql.record, &[(&id, Type::TEXT)]).await.enters_by(&["event_id_key"], 1);
    let ids: Vec<String> = (500..1500).map(|id| id.to_string()).collect();
    Plan::of(store, "", &sql.states, &[(&ids, Type::TEXT_ARRAY)]).await.enters_by(&["event_id_key"], 1000);
}

/// Pages of events of any state read no more rows than they may, for any filter, and sort none but pending ones.
async fn check_recent(store: &PostgresStore, _: &NodeId) {
    const MOST: i64 = 200;
    let sql = &store.inner().sql.recent;
    let (any, placed, absent) = (None::<&str>, Some("order.placed"), Some("absent"));
    let (any_time, limit) = (None::<Micros>, 50_i64);
    let sets = [
        (RowSet::All, None, &["pkey"][..], MOST + 1),
        (RowSet::All, Some(1_i16), &["pkey"], MOST + 1),
        (RowSet::Dead, Some(3), &["dead_idx"], MOST + 1),
        (RowSet::New, Some(0), &["pkey", "aside_idx", "due_idx"], PENDING / 10),
        (RowSet::Retry, Some(2), &["pkey", "aside_idx", "due_idx"], PENDING / 10),
    ];
    for (set, status, indexes, most) in sets {
        let statements = sql.among(set);
        for below in [i64::MAX, 500] {
            let end: [Param<'_>; 2] = [(&below, Type::INT8), (&MOST, Type::INT8)];
            Plan::of(store, BY_INDEX, &statements.end, &end).await.enters_by(indexes, most).sorts(PENDING);
            let from = if below == i64::MAX { ENDED + PENDING - MOST } else { below - MOST };
            // Of the DEAD rows, which are one in a hundred, as many.
            let from = if set == RowSet::Dead { from - MOST * 99 - PENDING } else { from };
            for (event_type, error) in [(any, any), (placed, any), (absent, any), (any, absent)] {
                let page: [Param<'_>; 13] = [
                    (&event_type, Type::TEXT),
                    (&any, Type::TEXT),
                    (&any, Type::TEXT),
                    (&any, Type::TEXT),
                    (&any, Type::TEXT),
                    (&any_time, Type::TIMESTAMPTZ),
                    (&any_time, Type::TIMESTAMPTZ),
                    (&error, Type::TEXT),
                    (&status, Type::INT2),
                    (&any, Type::TEXT),
                    (&below, Type::INT8),
                    (&from, Type::INT8),
                    (&limit, Type::INT8),
                ];
                let plan = Plan::of(store, BY_INDEX, &statements.page, &page).await;
                let is_pending = matches!(set, RowSet::New | RowSet::Retry);
                plan.enters_by(indexes, most).sorts(if is_pending { PENDING } else { 0 });
                let id = Some("77");
                let mut of_event = page;
                of_event[9] = (&id, Type::TEXT);
                let plan = Plan::of(store, BY_INDEX, &sql.among(RowSet::OfEvent).page, &of_event).await;
                plan.enters_by(&["event_id_key"], 1);
            }
        }
    }
}

#[tokio::test]
async fn pages_of_any_state_are_bounded_without_statistics() {
    with_rows(Setting::WithoutStatistics, check_recent).await;
}

#[tokio::test]
async fn pages_of_any_state_are_bounded_with_statistics() {
    with_rows(Setting::WithStatistics, check_recent).await;
}

#[tokio::test]
async fn pages_of_any_state_are_bounded_behind_a_pooler() {
    with_rows(Setting::BehindAPooler, check_recent).await;
}

/// Messages of ten consumers.
const MESSAGES: i64 = 50_000;

async fn check_inbox(store: &PostgresStore, _: &NodeId) {
    let fill = format!(
        "INSERT INTO {} SELECT 'c' || i % 10, 'm' || i, timestamptz '2000-01-01' + i * interval '1 hour'
         FROM generate_series(1, {MESSAGES}) i",
        store.info().table.replace("outbox_event", "outbox_inbox")
    );
    execute(store, &fill).await;
    let sql = &store.inner().sql;
    let (consumer, limit, age) = ("c3", 100_i64, 0_i64);
    let page: [Param<'_>; 2] = [(&"", Type::TEXT), (&limit, Type::INT8)];
    let plan = Plan::of(store, BY_INDEX, &sql.inbox_consumers, &page).await;
    plan.enters_inbox_by("age_idx", 10);
    let most: [Param<'_>; 2] = [(&consumer, Type::TEXT), (&limit, Type::INT8)];
    Plan::of(store, BY_INDEX, &sql.inbox_count, &most).await.enters_inbox_by("", limit);
    let old: [Param<'_>; 3] = [(&consumer, Type::TEXT), (&age, Type::INT8), (&limit, Type::INT8)];
    let plan = Plan::of(store, BY_INDEX, &sql.inbox_purge, &old).await;
    plan.enters_inbox_by("age_idx", limit).sorts(0);
}

#[tokio::test]
async fn the_inbox_is_entered_by_index() {
    for setting in [Setting::WithoutStatistics, Setting::WithStatistics, Setting::BehindAPooler] {
        with_rows(setting, check_inbox).await;
    }
}

/// A write with a unique key looks for the row that has it, pending or ended, by the index of these keys.
async fn check_unique(store: &PostgresStore, _: &NodeId) {
    let sql = &store.inner().sql;
    let (text, number, none, json, bytes) = ("k", 0_i64, None::<i64>, "{}", None::<&[u8]>);
    let params = |id| -> [Param<'_>; 17] {
        [
            (id, Type::TEXT),
            (&text, Type::TEXT),
            (&text, Type::TEXT),
            (&text, Type::TEXT),
            (&text, Type::TEXT),
            (&text, Type::TEXT),
            (&number, Type::INT8),
            (&json, Type::TEXT),
            (&bytes, Type::BYTEA),
            (&text, Type::TEXT),
            (&json, Type::TEXT),
            (&none, Type::INT8),
            (&none, Type::INT8),
            (&number, Type::INT8),
            (&text, Type::TEXT),
            (&text, Type::TEXT),
            (&text, Type::TEXT),
        ]
    };
    Plan::of(store, "", &sql.insert_unique, &params(&"new")).await.enters_by(&["unique_idx"], 1);
    let keys = format!("UPDATE {} SET unique_key = seq, handler = 'k' WHERE seq % 2 = 0", store.info().table);
    execute(store, &keys).await;
    for status in [0, 1] {
        let taken = format!("UPDATE {} SET unique_key = 'k', status = {status} WHERE seq = 2", store.info().table);
        execute(store, &taken).await;
        Plan::of(store, "", &sql.insert_unique, &params(&"new")).await.enters_by(&["unique_idx"], 1);
    }
}

#[tokio::test]
async fn unique_writes_enter_by_index_without_statistics() {
    with_rows(Setting::WithoutStatistics, check_unique).await;
}

#[tokio::test]
async fn unique_writes_enter_by_index_with_statistics() {
    with_rows(Setting::WithStatistics, check_unique).await;
}

#[tokio::test]
async fn admin_enters_by_index_without_statistics() {
    with_rows(Setting::WithoutStatistics, check).await;
}

#[tokio::test]
async fn admin_enters_by_index_with_statistics() {
    with_rows(Setting::WithStatistics, check).await;
}

#[tokio::test]
async fn admin_enters_by_index_behind_a_pooler() {
    with_rows(Setting::BehindAPooler, check).await;
}
