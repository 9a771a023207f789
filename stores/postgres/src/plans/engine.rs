use pillarbox_core::ownership::{Fence, NodeId};
use pillarbox_core::row::Position;
use pillarbox_core::store::Store as _;
use tokio_postgres::types::{ToSql, Type};

use super::{ENDED, PENDING, Plan, Setting, execute, number, with_rows};
use crate::PostgresStore;
use crate::positions::Positions;
use crate::session::{BY_INDEX, Param};

const FENCES: [Fence; 3] = [Fence::Table, Fence::Partition, Fence::Row];

/// The parameters that a claim binds.
fn claim<'a>(node: &'a &str, above: &'a i64, exclude: &'a Vec<i64>, limit: &'a i64, share: &'a i64) -> [Param<'a>; 6] {
    let number = |value: &'a i64| (value as &(dyn ToSql + Sync), Type::INT8);
    let exclude: Param<'a> = (exclude, Type::INT8_ARRAY);
    [(node, Type::TEXT), number(above), exclude, number(limit), number(share), number(&i64::MAX)]
}

/// Fetch, claim and settle by a thousand; the small statements by a few.
async fn check(store: &PostgresStore, node: &NodeId, sorts_allowed: i64) {
    let sql = &store.inner().sql;
    let node = node.as_str();
    let (limit, share) = (1000_i64, 334_i64);
    let exclude: Vec<i64> = (ENDED + 1..ENDED + 501).collect();
    for above in [i64::MIN, ENDED + 2000] {
        let params = claim(&node, &above, &exclude, &limit, &share);
        // After the node a fetch begins with the same; it has three limits more.
        let fetch = [&params[1..5], &[params[3].clone(), params[3].clone(), params[3].clone()]].concat();
        let plan = Plan::of(store, "", sql.fetch.of(None), &fetch).await;
        plan.enters_by(&["pkey", "aside_idx", "due_idx"], 1500).sorts(sorts_allowed);
        // The places of as many rows as there are to claim are put in order; each of the three kinds is read up to the limit.
        let plan = Plan::of(store, "", &sql.claim, &params).await;
        plan.enters_by(&["pkey", "aside_idx", "due_idx"], 1800).sorts(limit);
        assert!(plan.0.contains("Tid Scan on outbox_event"));
    }

    let done: Vec<i64> = (ENDED + 1..ENDED + 1001).collect();
    let (seqs, expected, states, attempts) =
        (vec![ENDED + 5001, ENDED + 5002], vec![0_i32; 2], vec![2_i16; 2], vec![1_i32; 2]);
    let (delays, errors) = (vec![Some(1_i64), None], vec![Some("late"); 2]);
    let (removed, unfailed) = (vec![ENDED + 5003, ENDED + 5004], vec![0_i32; 2]);
    let durable = false;
    let (events, handlers) = (vec!["event"; 1000], vec![None::<&str>; 1000]);
    let failures = vec![Some("late"), None];
    let settle: [Param<'_>; 20] = [
        (&node, Type::TEXT),
        (&durable, Type::BOOL),
        (&done, Type::INT8_ARRAY),
        (&events, Type::TEXT_ARRAY),
        (&handlers, Type::TEXT_ARRAY),
        (&seqs, Type::INT8_ARRAY),
        (&events, Type::TEXT_ARRAY),
        (&handlers, Type::TEXT_ARRAY),
        (&expected, Type::INT4_ARRAY),
        (&expected, Type::INT4_ARRAY),
        (&states, Type::INT2_ARRAY),
        (&attempts, Type::INT4_ARRAY),
        (&delays, Type::INT8_ARRAY),
        (&errors, Type::TEXT_ARRAY),
        (&removed, Type::INT8_ARRAY),
        (&events, Type::TEXT_ARRAY),
        (&handlers, Type::TEXT_ARRAY),
        (&unfailed, Type::INT4_ARRAY),
        (&unfailed, Type::INT4_ARRAY),
        (&failures, Type::TEXT_ARRAY),
    ];
    let (ids, length, handler) = (b"event".repeat(done.len()), 5, None::<&str>);
    let at_once: [Param<'_>; 6] = [
        settle[0].clone(),
        settle[1].clone(),
        settle[2].clone(),
        (&ids, Type::BYTEA),
        (&length, Type::INT4),
        (&handler, Type::TEXT),
    ];
    let mut positions = Positions::default();
    done.iter().for_each(|seq| positions.push(*seq, &Position::new(format!("orders/3/{seq}")).expect("a position")));
    let (mut settle_as, mut at_once_as) = (settle.to_vec(), at_once.to_vec());
    positions.bind(&mut settle_as);
    positions.bind(&mut at_once_as);
    let none: Option<&str> = None;
    let begin: [Param<'_>; 9] = [
        (&node, Type::TEXT),
        (&seqs[0], Type::INT8),
        (&expected[0], Type::INT4),
        (&attempts[0], Type::INT4),
        (&none, Type::TEXT),
        (&"event", Type::TEXT),
        (&none, Type::TEXT),
        (&expected[0], Type::INT4),
        (&none, Type::TEXT),
    ];
    for fence in FENCES {
        let of_rows_alike = [sql.settle_done.both(), sql.settle_removed.both()].concat();
        let of_rows_alike = of_rows_alike.into_iter().map(|statement| (statement, &at_once[..]));
        let done_as = sql.settle_done_as.both().map(|statement| (statement, &at_once_as[..]));
        let mixed = [(&sql.settle_mixed, &settle[..]), (&sql.settle_mixed_as, &settle_as[..])];
        for (statement, params) in of_rows_alike.chain(done_as).chain(mixed) {
            Plan::of(store, "", statement.of(fence), params).await.enters_by(&["pkey"], 1000);
        }
        Plan::of(store, "", sql.begin_attempt.of(fence), &begin).await.enters_by(&["pkey"], 1);
    }
    let release = [settle[0].clone(), settle[2].clone(), settle[3].clone(), settle[4].clone()];
    Plan::of(store, "", &sql.release, &release).await.enters_by(&["pkey"], 1000);

    // The rows that have a due time are passed over among the others, and those of them that are due are looked at.
    let plan = Plan::of(store, BY_INDEX, &sql.free_orphans, &[]).await;
    let looked_at = PENDING;
    plan.enters_by(&["pkey", "aside_idx", "due_idx"], looked_at);
    let looked_at_in_all: i64 =
        plan.0.lines().filter(|line| line.contains("Rows Removed by Filter")).map(|line| number(line, ": ")).sum();
    assert!(looked_at_in_all <= looked_at + PENDING / 20 + 10, "{}", plan.0);
}

#[tokio::test]
async fn the_engine_enters_by_index_without_statistics() {
    with_rows(Setting::WithoutStatistics, async |store, node| check(store, node, 0).await).await;
}

#[tokio::test]
async fn the_engine_enters_by_index_with_statistics() {
    with_rows(Setting::WithStatistics, async |store, node| check(store, node, 0).await).await;
}

#[tokio::test]
async fn the_engine_enters_by_index_behind_a_pooler() {
    with_rows(Setting::BehindAPooler, async |store, node| check(store, node, 1000).await).await;
}

/// Neither a claim nor the first success of a delivery changes an index: new versions land beside the old ones.
#[tokio::test]
async fn claims_and_first_successes_are_heap_only() {
    with_rows(Setting::WithStatistics, async |store, node| {
        let sql = &store.inner().sql;
        let (node, above, none, limit, share) = (node.as_str(), i64::MIN, Vec::<i64>::new(), 1000_i64, 334_i64);
        let mut session = store.inner().sessions.session().await.expect("a session");
        let transaction = session.transaction().await.expect("begins");
        let updated = async || {
            let updated =
                "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = $1::text::regclass";
            let row = transaction.query_typed_one(updated, &[(&store.info().table, Type::TEXT)]).await.expect("reads");
            (row.get::<_, i64>(0), row.get::<_, i64>(1))
        };
        // Of rows that are due, and of others; those go to no index either once they have been claimed.
        transaction.query_typed(&sql.claim, &claim(&node, &above, &none, &limit, &share)).await.expect("claims");
        assert_eq!(updated().await, (1000, 1000));

        let seqs: Vec<i64> = (ENDED + 2001..).filter(|seq| seq % 10 != 0).take(1000).collect();
        let ids = seqs.iter().map(i64::to_string).collect::<String>().into_bytes();
        let (durable, length, handler) = (false, 6, None::<&str>);
        let params: [Param<'_>; 6] = [
            (&node, Type::TEXT),
            (&durable, Type::BOOL),
            (&seqs, Type::INT8_ARRAY),
            (&ids, Type::BYTEA),
            (&length, Type::INT4),
            (&handler, Type::TEXT),
        ];
        let [sparse, dense] = sql.settle_done.both().map(|statement| statement.of(Fence::Table));
        for (statement, rows) in [(dense, 1000), (sparse, 0)] {
            let done = transaction.query_typed_one(statement, &params).await.expect("settles");
            assert_eq!(done.get::<_, Vec<i64>>(0).len(), rows);
            assert_eq!(updated().await, (2000, 2000));
        }

        // With positions too, as long as the page has room.
        let seqs: Vec<i64> = (ENDED + 4001..).filter(|seq| seq % 10 != 0).take(20).collect();
        let ids = seqs.iter().map(i64::to_string).collect::<String>().into_bytes();
        let mut positions = Positions::default();
        seqs.iter().for_each(|seq| positions.push(*seq, &Position::new(format!("o/{seq}")).expect("a position")));
        let mut params = params.to_vec();
        params[2] = (&seqs, Type::INT8_ARRAY);
        params[3] = (&ids, Type::BYTEA);
        positions.bind(&mut params);
        let [sparse, _] = sql.settle_done_as.both().map(|statement| statement.of(Fence::Table));
        let done = transaction.query_typed_one(sparse, &params).await.expect("settles");
        assert_eq!((done.get::<_, Vec<i64>>(0).len(), updated().await), (20, (2020, 2020)));
    })
    .await;
}

/// Until the next release, existing tables keep the index of ready rows. With it, no read point is needed.
#[tokio::test]
async fn a_table_of_the_release_before_is_read_by_its_index_of_ready_rows() {
    with_rows(Setting::WithStatistics, async |store, _| {
        let (table, partition) = (&store.info().table, store.inner().table.beside("partition"));
        let schema = store.inner().table.schema().expect("a schema");
        let ready_index = format!(
            "CREATE INDEX outbox_event_ready_idx ON {table} (seq)
             WHERE status IN (0, 2) AND (available_at IS NULL OR status = 0 AND available_at <= created_at);
             UPDATE {schema}.{partition} SET read_point = NULL"
        );
        execute(store, &ready_index).await;
        let (above, exclude, limit, share) = (i64::MIN, Vec::<i64>::new(), 1000_i64, 334_i64);
        let params = claim(&"", &above, &exclude, &limit, &share);
        let fetch = [&params[1..5], &[params[3].clone(), params[3].clone(), params[3].clone()]].concat();
        let plan = Plan::of(store, "", store.inner().sql.fetch.of(None), &fetch).await;
        plan.enters_by(&["ready_idx", "aside_idx", "due_idx"], 1500);
    })
    .await;
}

/// The setting is made inside the fence, of which the UPDATE only asks whether it has a row: it must not be left out.
#[tokio::test]
async fn marks_relax_their_commit_unless_they_are_to_be_durable() {
    with_rows(Setting::WithoutStatistics, async |store, node| {
        let (node, seqs) = (node.as_str(), vec![ENDED + 1]);
        let sql = &store.inner().sql;
        let statements = [sql.settle_done.both(), sql.settle_removed.both()].concat();
        let statements = statements.iter().flat_map(|statement| FENCES.map(|fence| statement.of(fence)));
        for statement in statements {
            for (durable, expected) in [(false, "off"), (true, "on")] {
                let mut session = store.inner().sessions.session().await.expect("a session");
                let transaction = session.transaction().await.expect("begins");
                transaction.batch_execute("SET LOCAL synchronous_commit = on").await.expect("sets");
                let (ids, length, handler) = (b"event".to_vec(), 5, None::<&str>);
                let params: [Param<'_>; 6] = [
                    (&node, Type::TEXT),
                    (&durable, Type::BOOL),
                    (&seqs, Type::INT8_ARRAY),
                    (&ids, Type::BYTEA),
                    (&length, Type::INT4),
                    (&handler, Type::TEXT),
                ];
                transaction.query_typed(statement, &params).await.expect("settles");
                let setting = transaction.query_typed_one("SHOW synchronous_commit", &[]).await.expect("shows");
                assert_eq!(setting.get::<_, &str>(0), expected);
            }
        }
    })
    .await;
}

/// Rows that others hold are stepped over at the head of the index, and only those.
#[tokio::test]
async fn a_claim_steps_over_what_others_hold() {
    with_rows(Setting::WithStatistics, async |store, node| {
        let table = &store.info().table;
        let head = ENDED + 1000;
        execute(store, &format!("UPDATE {table} SET locked_by = 'other' WHERE status = 0 AND seq <= {head}")).await;
        let (node, above, none, limit, share) = (node.as_str(), i64::MIN, Vec::<i64>::new(), 500_i64, 167_i64);
        let params = claim(&node, &above, &none, &limit, &share);
        Plan::of(store, "", &store.inner().sql.claim, &params).await.enters_by(&["pkey", "aside_idx", "due_idx"], 1600);
    })
    .await;
}
