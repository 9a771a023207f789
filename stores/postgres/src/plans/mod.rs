//! The plans of all statements that read events, pinned: with any rows in the table, they enter it by an index that leads
//! straight to the rows they want.

mod admin;
mod engine;
mod order;

use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{NodeId, NodeMode};
use pillarbox_core::store::Store as _;

use crate::session::Param;
use crate::{PostgresOptions, PostgresStore};

/// Rows that have ended; one in a hundred is DEAD.
const ENDED: i64 = 100_000;
const DEAD: i64 = ENDED / 100;
/// Rows after them; one in ten has a due time, which for half of these has passed.
const PENDING: i64 = 10_000;

/// The settings of a store's sessions, and the statistics of its table.
#[derive(Clone, Copy)]
pub(crate) enum Setting {
    /// The sessions' settings keep the plans right even where the statistics know nothing of the table yet, and for all values at once.
    WithoutStatistics,
    WithStatistics,
    /// A pooler's sessions have no settings: there the statements have to be right by themselves.
    BehindAPooler,
}

/// Runs a test on a table with many rows done and some pending, and with a node that owns it.
async fn with_rows(setting: Setting, test: impl AsyncFnOnce(&PostgresStore, &NodeId)) {
    with_table(setting, async |store| {
        let node = fill(store, setting).await;
        test(store, &node).await;
    })
    .await;
}

/// Runs a test on tables of its own.
pub(crate) async fn with_table(setting: Setting, test: impl AsyncFnOnce(&PostgresStore)) {
    let schema = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
    let url = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let options = PostgresOptions::parse(&url).expect("a valid URL").table(format!("{schema}.outbox_event"));
    let store = options.pooler(matches!(setting, Setting::BehindAPooler)).connect().await;
    let store = store.unwrap_or_else(|error| panic!("{error}; this test needs PostgreSQL: run it by ./scripts/test"));
    let outcome = std::panic::AssertUnwindSafe(async {
        store.migrate().await.expect("migrates");
        test(&store).await;
    });
    let outcome = futures_util::FutureExt::catch_unwind(outcome).await;
    execute(&store, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

async fn fill(store: &PostgresStore, setting: Setting) -> NodeId {
    let table = &store.info().table;
    let rows = format!(
        "INSERT INTO {table} (event_id, event_type, payload, status, available_at, done_at, created_at)
         SELECT i, 'order.placed', '{{\"n\": 1}}',
             CASE WHEN i > {ENDED} THEN 0 WHEN i % 100 = 0 THEN 3 ELSE 1 END,
             CASE WHEN i > {ENDED} AND i % 10 = 0 THEN now() + (i - {ENDED} - 5000) * interval '1 second' END,
             CASE WHEN i <= {ENDED} THEN now() END, '2000-01-01'
         FROM generate_series(1, {ENDED} + {PENDING}) i"
    );
    execute(store, &rows).await;
    if !matches!(setting, Setting::WithoutStatistics) {
        execute(store, &format!("ANALYZE {table}")).await;
    }
    let node = NodeId::from_stored("a node");
    store.join(&node, NodeMode::SingleNode, Duration::from_secs(3600)).await.expect("joins");
    store.acquire(&node).await.expect("acquires");
    store.raise_read_point().await.expect("raises");
    node
}

pub(crate) async fn execute(store: &PostgresStore, sql: &str) {
    let mut session = store.inner().sessions.session().await.expect("a session");
    let transaction = session.transaction().await.expect("begins");
    transaction.batch_execute(sql).await.expect("executes");
    transaction.commit().await.expect("commits");
    session.finish();
}

/// The plan by which the server ran a statement in a session of the engine, and the rows that it read. Its changes are rolled back.
struct Plan(String);

impl Plan {
    async fn of(store: &PostgresStore, settings: &str, sql: &str, params: &[Param<'_>]) -> Self {
        let mut session = store.inner().sessions.session().await.expect("a session");
        let transaction = session.transaction().await.expect("begins");
        transaction.batch_execute(settings).await.expect("sets");
        let explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)";
        let mode: String = transaction.query_typed_one("SHOW plan_cache_mode", &[]).await.expect("shows").get(0);
        let rows = if mode == "force_generic_plan" {
            let execute = prepare(&transaction, sql, params).await;
            transaction.query_typed(&format!("{explain} {execute}"), &[]).await
        } else {
            transaction.query_typed(&format!("{explain} {sql}"), params).await
        };
        let rows = rows.expect("explains");
        Self(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n"))
    }

    /// Every one of these indexes was used, events were reached in no other way than by index or by place, and no more than
    /// `most` of them were read in one go, those included that were read in vain.
    fn enters_by(&self, indexes: &[&str], most: i64) -> &Self {
        let plan = &self.0;
        assert!(
            !plan.contains("Seq Scan on outbox_event") && !plan.contains("Bitmap Heap Scan on outbox_event"),
            "{plan}"
        );
        for index in indexes {
            assert!(plan.contains(&format!("using outbox_event_{index} ")), "{index} is not used:\n{plan}");
        }
        let mut scan = None;
        for line in plan.lines() {
            if line.contains("->  ") || scan.is_none() {
                scan = line.contains(" on outbox_event").then(|| number(line, "actual rows="));
            }
            let in_vain = if line.contains("Rows Removed by") { number(line, ": ") } else { 0 };
            if let Some(read) = scan.as_mut() {
                *read += in_vain;
                assert!(*read <= most, "it reads more than {most} rows: {line}\n{plan}");
            }
        }
        self
    }

    /// The inbox was reached by an index, by this one too if it is named, or by place, and no step read more than `most` messages.
    fn enters_inbox_by(&self, index: &str, most: i64) -> &Self {
        let plan = &self.0;
        assert!(
            index.is_empty() || plan.contains(&format!("using outbox_inbox_{index} ")),
            "{index} is not used:\n{plan}"
        );
        for line in plan.lines().filter(|line| line.contains(" on outbox_inbox")) {
            let by_index =
                ["Index Scan", "Index Only Scan", "Tid Scan", "Delete on"].iter().any(|step| line.contains(step));
            assert!(by_index && number(line, "actual rows=") <= most, "{line}\n{plan}");
        }
        let in_vain = plan.lines().filter(|line| line.contains("Rows Removed by")).map(|line| number(line, ": ")).max();
        assert!(in_vain <= Some(1), "{plan}");
        self
    }

    fn sorts(&self, most: i64) {
        for sort in self.0.lines().filter(|line| line.contains("Sort  (")) {
            assert!(number(sort, "actual rows=") <= most, "{sort}\n{}", self.0);
        }
    }
}

/// Prepares a statement, and returns another that executes it with these values: explained by itself, it would be planned for them.
async fn prepare(transaction: &Transaction<'_>, sql: &str, params: &[Param<'_>]) -> String {
    let types: Vec<&str> = params.iter().map(|(_, of)| of.name()).collect();
    let quoted: Vec<String> = (1..=params.len()).map(|number| format!("quote_nullable(${number}::text)")).collect();
    let quote = format!("SELECT ARRAY[{}]::text[]", quoted.join(", "));
    let values: Vec<String> = transaction.query_typed_one(&quote, params).await.expect("quotes").get(0);
    let in_parentheses = |list: String| if list.is_empty() { list } else { format!("({list})") };
    let prepare = format!("PREPARE statement {} AS {sql}", in_parentheses(types.join(", ")));
    transaction.batch_execute(&prepare).await.expect("prepares");
    format!("EXECUTE statement {}", in_parentheses(values.join(", ")))
}

/// The number after a label. A branch that had nothing to do says `never executed` instead.
fn number(line: &str, label: &str) -> i64 {
    let digits = line.split(label).nth(1).and_then(|rest| rest.split([' ', ')', '.']).next());
    digits.map_or(0, |digits| digits.parse().expect("a number of rows"))
}
