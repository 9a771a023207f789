//! The plans of the statements, pinned: with any rows in the table, they enter it by an index that leads straight to the
//! rows they want, and read no others.

use futures_util::FutureExt as _;
use mysql_async::Row;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{EventId, Stamp};
use pillarbox_core::ownership::{NodeId, begun_by};
use pillarbox_core::row::Status;
use pillarbox_core::store::{EventFilter, Fetch, FetchScope, FetchedRow, Heads, OrderKey, RowId, Store as _};

use crate::admin::recent;
use crate::answer::{int, text};
use crate::fetch::queries;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::sql::Sql;
use crate::{MysqlOptions, MysqlStore};

const DONE: i64 = 50_000;
const READY: i64 = 5_000;
const TIMED: i64 = 2_000;
const DEAD: i64 = 1_000;
/// The number of rows that are asked for at once.
const LIMIT: usize = 1000;

/// Runs a test on tables of a database of its own, with many rows done and some pending, half of the timed ones due.
async fn with_rows(test: impl AsyncFnOnce(&MysqlStore, &mut Session)) {
    with_tables(async |store, session, database| {
        let timed = format!("UTC_TIMESTAMP(6) + INTERVAL i - {} SECOND", DONE + READY + TIMED / 2);
        let filled = [
            rows(database, 1, DONE, 1, "NULL"),
            rows(database, DONE + 1, READY, 0, "NULL"),
            rows(database, DONE + READY + 1, TIMED, 2, &timed),
            rows(database, DONE + READY + TIMED + 1, DEAD, 3, "NULL"),
            format!("ANALYZE TABLE {database}.outbox_event"),
        ];
        for statement in filled {
            session.run(statement).await.expect("fills the table");
        }
        test(store, session).await;
    })
    .await;
}

/// An insert of `count` rows in one state. Each of 1,000 keys has as many, in a row, so that a page holds few keys.
fn rows(database: &str, first: i64, count: i64, status: i16, available_at: &str) -> String {
    format!(
        "INSERT INTO {database}.outbox_event (seq, event_id, event_type, payload, ordering_key, `partition`, status, available_at)
         WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {first} + {count})
         SELECT i, i, 'order.placed', '{{}}', CONCAT('key-', i MOD 1000), i MOD 1000 MOD 256, {status}, {available_at} FROM n"
    )
}

/// The server to test against.
pub(crate) fn url() -> String {
    std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned())
}

/// Runs a test on empty tables of a database of its own.
pub(crate) async fn with_tables(test: impl AsyncFnOnce(&MysqlStore, &mut Session, &str)) {
    let database = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
    let options = MysqlOptions::parse(&url()).expect("a valid URL").table(format!("{database}.outbox_event"));
    let store = options.connect().await;
    let store = store.unwrap_or_else(|error| panic!("{error}; this test needs MariaDB: run it by ./scripts/test"));
    store.migrate().await.expect("migrates");
    let mut session = store.inner().sessions.session().await.expect("a session");
    let depth = "SET SESSION /*!80003 cte_max_recursion_depth = 1000000 */ /*M!100600 max_recursive_iterations = 1000000, max_statement_time = 0 */";
    session.run(depth).await.expect("allows to fill the tables");
    let outcome = std::panic::AssertUnwindSafe(test(&store, &mut session, &database)).catch_unwind().await;
    session.run(format!("DROP DATABASE {database}")).await.expect("drops the database");
    session.finish();
    store.close().await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Asserts that a statement enters the event table by the index `key` only, and heads by theirs for each row in turn, sorts
/// nothing, and reads at most `most` rows. Its changes are rolled back.
async fn check(session: &mut Session, statement: &str, key: &str, most: u64) {
    let plan =
        session.run(format!("EXPLAIN {statement}")).await.unwrap_or_else(|error| panic!("{error:?}: {statement}"));
    let mut entered = 0;
    for row in plan.rows(0) {
        let named = |name| named(row, name);
        if matches!(named("table").as_str(), "outbox_event" | "e") {
            entered += 1;
            assert_eq!(named("key"), key, "{statement}");
            assert!(
                ["ref", "eq_ref", "range", "const", "index"].contains(&&*named("type")),
                "{}: {statement}",
                named("type")
            );
        }
        if named("table").starts_with("head_") {
            assert_eq!((&*named("key"), &*named("type")), ("pillarbox_heads", "ref"), "{statement}");
            assert!(named("Extra").contains("Using index"), "it reads whole rows: {statement}");
        }
        assert!(!named("Extra").contains("filesort"), "it sorts: {statement}");
        assert!(!named("Extra").contains("join buffer"), "it loses the order: {statement}");
    }
    assert!(entered > 0, "{statement}");

    check_reads(session, statement, most).await;
}

/// The column of a plan that has this name.
fn named(row: &Row, name: &str) -> String {
    let index = row.columns_ref().iter().position(|column| column.name_str() == name);
    index.and_then(|index| text(row, index).expect("text")).unwrap_or_default().to_owned()
}

/// Asserts that a statement reads at most `most` rows. Its changes are rolled back.
async fn check_reads(session: &mut Session, statement: &str, most: u64) {
    session.run("START TRANSACTION; FLUSH STATUS").await.expect("forgets what was read before");
    session.run(statement).await.unwrap_or_else(|error| panic!("{error:?}: {statement}"));
    let status = session.run("SHOW SESSION STATUS LIKE 'Handler_read%'").await.expect("counts");
    let read: u64 = status.rows(0).iter().map(|row| u64::try_from(int(row, 1).expect("a number")).unwrap_or(0)).sum();
    session.run("ROLLBACK").await.expect("rolls back");
    assert!(read <= most, "it read {read} rows, not at most {most}: {statement}");
}

fn seqs(first: i64, count: usize) -> Literal {
    Literal::ints(&(first..).take(count).collect::<Vec<_>>())
}

#[tokio::test]
async fn fetches_and_claims_read_the_rows_they_return() {
    with_rows(async |store, session| {
        let sql = &store.inner().sql;
        let node = NodeId::from_stored("a node");
        let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(&node)));
        let free = fill(&sql.free, &[("id", &id), ("begun", &begun)]);
        let limit = u64::try_from(LIMIT).expect("fits");
        let in_memory: Vec<i64> = (DONE + 1..=DONE + 500).collect();
        for (above, exclude) in [(0, vec![]), (0, in_memory.clone()), (DONE + 2000, in_memory)] {
            let left_out = u64::try_from(exclude.len()).expect("fits");
            let fetch = Fetch { above, exclude, ..Fetch::new(LIMIT) };
            for (free, locking) in [("", ""), (&*free, "\nFOR UPDATE SKIP LOCKED")] {
                let [next_due, due, ready] = queries(sql, &fetch, free, locking);
                check(session, &next_due, "pillarbox_queue", 3).await;
                // A row that failed is itself among the heads of its key.
                check(session, &due, "pillarbox_queue", limit + 2).await;
                check(session, &ready, "pillarbox_queue", limit + left_out + 2).await;
            }
        }
    })
    .await;
}

/// The statistics do not matter: they are first of an empty table, and stay so.
#[tokio::test]
async fn fetches_in_a_scope_look_once_for_the_head_of_each_row() {
    with_tables(async |store, session, database| {
        let event = format!("{database}.outbox_event");
        let insert = rows(database, 1, 200_000, 0, "NULL");
        let frozen = format!("ALTER TABLE {event} STATS_AUTO_RECALC = 0; ANALYZE TABLE {event}");
        session.run(format!("{frozen}; {insert}")).await.expect("fills the table");
        check_scopes(store, session).await;
        let fail = |status: i16, above: i64| {
            format!(
                "UPDATE {event} SET status = {status}, ordering_key = CONCAT('other-', seq), room = NULL,
                 available_at = UTC_TIMESTAMP(6) + INTERVAL IF(seq MOD 2 = 0, 1, -1) HOUR WHERE seq > {above} AND status = 0"
            )
        };
        for step in [
            fail(2, 199_990),
            format!("ANALYZE TABLE {event}"),
            format!("{}; {}", fail(2, 150_000), fail(3, 100_000)),
            format!("ANALYZE TABLE {event}"),
        ] {
            session.run(step).await.expect("makes heads");
            check_scopes(store, session).await;
        }
    })
    .await;
}

async fn check_scopes(store: &MysqlStore, session: &mut Session) {
    let sql = &store.inner().sql;
    let key = |key: &str| OrderKey { handler: None, key: key.into() };
    let limit = u64::try_from(LIMIT).expect("fits");
    for (heads, looks) in [(Heads::None, 0), (Heads::Retry, 1), (Heads::RetryAndDead, 2)] {
        let many: Vec<OrderKey> = (0..LIMIT).map(|number| key(&format!("key-{number}"))).collect();
        // Every second row is in another partition, and told by the index to be.
        for (last, without, only, read) in [
            (255, vec![], vec![], limit),
            (127, vec![key("key-1"), key("key-2")], vec![], limit + 20),
            (255, vec![], many, limit + 20),
        ] {
            let scope = FetchScope { partitions: 0..=last, heads, without, only, node: None };
            let fetch = Fetch { exclude: vec![1, 2, 3], scope: Some(scope), ..Fetch::new(LIMIT) };
            let [next_due, due, ready] = queries(sql, &fetch, "", "");
            check(session, &next_due, "pillarbox_queue", 200).await;
            // Rows that wait for a time are of other keys: among them, these are looked for in vain.
            let others = if fetch.scope.as_ref().is_some_and(|scope| !scope.only.is_empty()) { 60_000 } else { 0 };
            check(session, &due, "pillarbox_queue", read + 2 * looks * limit + 200 + others).await;
            check(session, &ready, "pillarbox_queue", read + looks * limit + 10).await;
        }
    }
}

/// A key of which everything waits behind its head is passed over, two reads for a row.
#[tokio::test]
async fn rows_that_wait_behind_a_head_are_passed_over() {
    with_tables(async |store, session, database| {
        let event = format!("{database}.outbox_event");
        let fill = [
            rows(database, 1, 20_000, 0, "NULL"),
            format!("UPDATE {event} SET status = 2, available_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE seq = 1"),
            format!("UPDATE {event} SET ordering_key = 'key-1' WHERE seq <= 10000"),
        ];
        for statement in fill {
            session.run(statement).await.expect("fills the table");
        }
        let scope = FetchScope { partitions: 0..=255, heads: Heads::Retry, without: vec![], only: vec![], node: None };
        let fetch = Fetch { scope: Some(scope), ..Fetch::new(LIMIT) };
        let [_, _, ready] = queries(&store.inner().sql, &fetch, "", "");
        check(session, &ready, "pillarbox_queue", 2 * 11_000 + 10).await;
        let fetched = store.fetch(&fetch).await.expect("fetches");
        assert_eq!(fetched.rows.first().map(FetchedRow::seq), Some(10_002), "another key comes next");
    })
    .await;
}

/// The statements that lock, change or delete `count` rows from `first` on, or the first of them.
fn changes(sql: &Sql, first: i64, count: usize) -> Vec<String> {
    let node = NodeId::from_stored("a node");
    let (id, begun) = (Literal::text(node.as_str()), Literal::text(&begun_by(&node)));
    let held = Literal::clause(fill(&sql.held, &[("id", &id), ("begun", &begun)]));
    let (many, one, nothing) = (seqs(first, count), Literal::int(first), Literal::nothing());
    let ids = Literal::byte_list(&vec!["an event"; count]);
    let events = Literal::clause(fill(&sql.of_events, &[("events", &ids)]));
    let pairs = Literal::byte_pairs(vec![("an event", "a handler"); count]);
    let pairs = Literal::clause(fill(&sql.of_handlers, &[("pairs", &pairs)]));
    let positions = [("placed", &many), ("positions", &Literal::texts(&vec!["orders/3/1042"; count]))];
    let position = Literal::clause(fill(&sql.position, &positions));
    let holders = Literal::texts(&["a dead node", "another!"]);
    let (delay, attempts, error) = (Literal::int(5), Literal::int(1), Literal::text("it failed"));
    let status = Literal::int(3);
    let failures = [("attempts", &attempts), ("failed_by", &id), ("error", &error)];
    let failures = &Literal::clause(fill(&sql.failed, &failures));
    let all = [
        (&sql.settle_lock, vec![("seqs", &many), ("held", &nothing)]),
        (&sql.settle_lock, vec![("seqs", &many), ("held", &held)]),
        (&sql.settle_done, vec![("seqs", &many), ("position", &nothing)]),
        (&sql.settle_done, vec![("seqs", &many), ("position", &position)]),
        (
            &sql.settle_done_at_once,
            vec![("seqs", &many), ("events", &events), ("held", &nothing), ("position", &nothing)],
        ),
        (&sql.settle_done_at_once, vec![("seqs", &many), ("events", &pairs), ("held", &held), ("position", &position)]),
        (&sql.settle_removed_at_once, vec![("seqs", &many), ("events", &events), ("held", &nothing)]),
        (&sql.settle_removed_at_once, vec![("seqs", &many), ("events", &pairs), ("held", &held)]),
        (&sql.promote_due, vec![("seqs", &many), ("events", &ids)]),
        (
            &sql.settle_retry,
            vec![("seq", &one), ("failures", failures), ("delay", &delay), ("attempts", &attempts), ("error", &error)],
        ),
        (
            &sql.settle_retry_in_place,
            vec![("seq", &one), ("failures", failures), ("attempts", &attempts), ("error", &error)],
        ),
        (
            &sql.settle_ended,
            vec![
                ("seq", &one),
                ("failures", failures),
                ("status", &status),
                ("attempts", &attempts),
                ("error", &error),
            ],
        ),
        (
            &sql.begin_attempt,
            vec![("seq", &one), ("failures", failures), ("attempts", &attempts), ("error", &error), ("begun", &begun)],
        ),
        (&sql.claim, vec![("seqs", &many), ("id", &id), ("begun", &begun)]),
        (&sql.release, vec![("seqs", &many), ("events", &ids), ("id", &id), ("begun", &begun)]),
        (&sql.free_orphans, vec![("seqs", &many), ("holders", &holders)]),
        (&sql.pending_lock, vec![("seqs", &many)]),
        (&sql.waiting_lock, vec![("seqs", &many)]),
        (&sql.cancel, vec![("seqs", &many)]),
        (&sql.retry_now, vec![("seqs", &many)]),
        (&sql.dead_lock, vec![("seqs", &many)]),
        (&sql.replay, vec![("seqs", &many)]),
        (&sql.delete, vec![("seqs", &many)]),
        (&sql.purge, vec![("seqs", &many), ("status", &one)]),
    ];
    all.into_iter().map(|(statement, values)| fill(statement, &values)).collect()
}

#[tokio::test]
async fn changes_find_their_rows_by_the_primary_key() {
    with_rows(async |store, session| {
        let sql = &store.inner().sql;
        let (many, nothing) = (seqs(DONE + 1, 1000), Literal::nothing());
        let reads = [fill(&sql.identify, &[("seqs", &many)]), fill(&sql.record_json, &[("seqs", &many)])];
        let newest = fill(&sql.newest, &[("limit", &Literal::count(1000))]);
        for statement in changes(sql, DONE + 1, 1000).iter().chain(&reads).chain([&newest]) {
            check(session, statement, "PRIMARY", 2001).await;
        }
        let free = sql.free_unique.replacen('?', &(DONE + 1).to_string(), 1).replacen('?', "'k'", 1);
        check(session, &free, "PRIMARY", 2).await;
        check_reads(session, &sql.find_unique.replacen('?', "'k'", 2), 2).await;
        // The owner of each row's partition besides; the server remembers those it has seen.
        let id = Literal::text("a node");
        let owned = Literal::clause(fill(&sql.held_partition, &[("id", &id)]));
        let events = Literal::clause(fill(&sql.of_events, &[("events", &Literal::byte_list(&["an event"; 1000]))]));
        for statement in [&sql.settle_lock, &sql.settle_done_at_once, &sql.settle_removed_at_once] {
            let values = [("seqs", &many), ("events", &events), ("held", &owned), ("position", &nothing)];
            let statement = fill(statement, &values);
            check(session, &statement, "PRIMARY", 3001).await;
        }
        let stamp = |seq| (RowId { seq, event_id: EventId::from_stored("an event"), handler: None }, 7);
        let partitions: Vec<(RowId, u8)> = (DONE + 1..=DONE + 1000).map(stamp).collect();
        let assign = fill(&sql.assign_partitions, &[("partitions", &Literal::partitions(&partitions))]);
        check(session, &assign, "PRIMARY", 2002).await;
    })
    .await;
}

/// A server would rather read a small table as a whole, and would lock the rows that open transactions have inserted.
#[tokio::test]
async fn changes_enter_a_small_table_by_the_primary_key() {
    with_tables(async |store, session, database| {
        session.run(rows(database, 1, 20, 0, "NULL")).await.expect("fills the table");
        for statement in changes(&store.inner().sql, 1, 20) {
            let plan = session.run(format!("EXPLAIN {statement}")).await.expect("explains");
            let mut entered = plan.rows(0).iter().filter(|row| ["outbox_event", "e"].contains(&&*named(row, "table")));
            let entry = entered.next().expect("it is of the event table");
            let (key, kind) = (named(entry, "key"), named(entry, "type"));
            assert!(key == "PRIMARY" && ["range", "const"].contains(&&*kind), "{kind} of {key}: {statement}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_error_of_the_last_statement_of_a_script_is_its_error() {
    with_tables(async |store, session, database| {
        session.run(format!("CREATE TABLE {database}.one (a INT PRIMARY KEY)")).await.expect("creates");
        let insert = format!("INSERT INTO {database}.one VALUES (1)");
        for script in [format!("{insert}; {insert}"), format!("SELECT 1; {insert}; SELECT a FROM {database}.none")] {
            let mut session = store.inner().sessions.session().await.expect("a session");
            let answer = session.run(format!("START TRANSACTION; {script}")).await;
            assert!(answer.is_err(), "{answer:?}: {script}");
        }
    })
    .await;
}

#[tokio::test]
async fn admin_reads_pending_and_dead_rows_only() {
    with_rows(async |store, session| {
        let sql = &store.inner().sql;
        let (limit, nothing) = (Literal::count(LIMIT), Literal::nothing());
        let pending = u64::try_from(READY + TIMED).expect("fits");
        let dead = u64::try_from(DEAD).expect("fits");
        check(session, &fill(&sql.reclaim_orphans, &[("limit", &limit)]), "pillarbox_queue", pending + 10).await;
        check(session, &sql.backlog, "pillarbox_queue", pending + dead + 20).await;
        // Each entry of the index, and the place of its partition among the sums.
        check_reads(session, &sql.partitions, 2 * pending + 1200).await;
        let page = [("lowest", &Literal::int(1)), ("limit", &Literal::int(50)), ("most", &Literal::int(1000))];
        let heads = u64::try_from(TIMED + DEAD).expect("fits");
        check(session, &fill(&sql.lowest_head, &[("above", &Literal::int(0))]), "pillarbox_heads", heads + 2).await;
        check_reads(session, &fill(&sql.blocked, &page), 10 * (pending + dead)).await;
        let (waits, of_key) = (Literal::int(DONE + READY), heads / 1000);
        check(session, &fill(&sql.head_of, &[("seq", &waits)]), "PRIMARY", of_key + 3).await;
        check(session, &fill(&sql.count_dead, &[("filter", &nothing)]), "pillarbox_queue", dead + 2).await;
        check_reads(session, &fill(&sql.count_pending, &[("filter", &nothing)]), pending + 10).await;
        let page = [("above", &Literal::int(0)), ("filter", &nothing), ("limit", &limit)];
        // A page of each kind, all that wait for a time, and the sorting of both.
        let most = u64::try_from(TIMED).expect("fits") + 8 * u64::try_from(LIMIT).expect("fits");
        check_reads(session, &fill(&sql.pending, &page), most).await;
        let page = [("above", &Literal::int(DONE + READY + TIMED + 500)), ("filter", &nothing), ("limit", &limit)];
        check(session, &fill(&sql.dead, &page), "pillarbox_queue", 502).await;
        let window =
            [("above", &Literal::int(100)), ("age", &Literal::int(1)), ("limit", &limit), ("of_key", &nothing)];
        check(session, &fill(&sql.purge_window, &window), "PRIMARY", 1001).await;
        // The row, and the look for another one of the same event.
        check(session, &fill(&sql.record, &[("event_id", &Literal::text("77"))]), "pillarbox_event_id", 2).await;
        let ids: Vec<String> = (500..1500).map(|id| id.to_string()).collect();
        let ids = Literal::texts(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        check(session, &fill(&sql.states, &[("event_ids", &ids)]), "pillarbox_event_id", 2002).await;
    })
    .await;
}

#[tokio::test]
async fn pages_of_any_state_read_no_more_rows_than_they_may() {
    with_rows(async |store, session| {
        const MOST: u64 = 200;
        let sql = &store.inner().sql;
        let all = || EventFilter::new().read_at_most(200);
        let (timed, epoch) = (u64::try_from(TIMED).expect("fits"), Timestamp::from_micros(0));
        for filter in [all(), all().event_type("absent"), all().error_contains("absent"), all().status(Status::Done)] {
            check(session, &recent::end_of_page(sql, &filter, None), "PRIMARY", MOST + 1).await;
            let end = Some((DONE + READY + TIMED + DEAD - 200, epoch));
            check(session, &recent::rows(sql, &filter, None, end, 50), "PRIMARY", MOST + 2).await;

            let dead = filter.clone().status(Status::Dead);
            check(session, &recent::end_of_page(sql, &dead, None), "pillarbox_queue", MOST + 1).await;
            check(session, &recent::rows(sql, &dead, None, end, 50), "pillarbox_queue", MOST + 2).await;

            for status in [Status::New, Status::Retry] {
                let pending = filter.clone().status(status);
                let end = Some((DONE + READY + TIMED - 200, epoch));
                // All rows that wait for a time, and the sorted ones among them.
                let most = timed + 4 * MOST + 10;
                check_reads(session, &recent::end_of_page(sql, &pending, None), most).await;
                check_reads(session, &recent::rows(sql, &pending, None, end, 50), most).await;
            }
            let of_event = filter.clone().event_id("77");
            check_reads(session, &recent::rows(sql, &of_event, None, None, 50), 4).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_inbox_reads_the_messages_it_is_about() {
    with_tables(async |store, session, database| {
        let sql = &store.inner().sql;
        let rows = format!(
            "INSERT INTO {database}.outbox_inbox (consumer, message_id, received_at)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             SELECT CONCAT('c', i MOD 10), CONCAT('m', i), '2000-01-01' + INTERVAL i HOUR FROM n"
        );
        session.run(rows).await.expect("fills the inbox");
        session.run(format!("ANALYZE TABLE {database}.outbox_inbox")).await.expect("analyzes");
        let (consumer, limit) = (Literal::bytes("c3"), Literal::count(100));
        let page = [("after", &Literal::bytes("c")), ("limit", &limit)];
        check_reads(session, &fill(&sql.inbox_consumers, &page), 60).await;
        let page = [("after", &Literal::bytes("c")), ("limit", &Literal::count(2))];
        check_reads(session, &fill(&sql.inbox_consumers, &page), 20).await;
        check_reads(session, &fill(&sql.inbox_count, &[("consumer", &consumer), ("most", &limit)]), 310).await;
        let old = [("consumer", &consumer), ("age", &Literal::int(1)), ("limit", &limit)];
        check_reads(session, &fill(&sql.inbox_old, &old), 101).await;
        let ids = Literal::byte_strings((0..50).map(|_| &b"m3"[..]).chain([&b"m13"[..], b"m23"]));
        check_reads(session, &fill(&sql.inbox_delete, &[("consumer", &consumer), ("ids", &ids)]), 60).await;
    })
    .await;
}
