//! `docs/sql-contract.md` is true: its examples run, what they insert is delivered, and its columns are those of the
//! tables. It needs PostgreSQL with psql, and Python 3.
#![cfg(all(feature = "postgres", feature = "sqlite"))]
#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pillarbox::event::Stamp;
use pillarbox::{Delivery, Outbox, PostgresStore, SqliteStore, Store};
use tokio::sync::mpsc;
use tokio::time::timeout;

const DOCUMENT: &str = include_str!("../../../../docs/sql-contract.md");
const ORDERS: &str = "create table orders (id text primary key, total_cents bigint not null)";
const SOON: Duration = Duration::from_secs(20);

/// The examples whose fence says `language`, in the order of the document.
fn examples(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let examples: Vec<_> = DOCUMENT.split(&fence).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    assert!(!examples.is_empty(), "there is no example in {language}");
    examples
}

/// The example that writes an event with a unique key.
fn unique_key(language: &str) -> &'static str {
    examples(language).into_iter().find(|example| example.contains("unique_key")).expect("an example with a unique key")
}

/// Counts the events that this example writes.
const REPORTS: &str = "select count(*) from outbox_event where event_type = 'report.wanted';";
/// Makes them DONE.
const REPORTED: &str = "update outbox_event set status = 1 where event_type = 'report.wanted';";

/// The rows of the table of columns: name, type in PostgreSQL, type in SQLite.
fn columns() -> Vec<[&'static str; 3]> {
    let (_, section) = DOCUMENT.split_once("## Columns").expect("the section");
    let (section, _) = section.split_once("## States").expect("the next section");
    let cells = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(|cell| cell.trim().trim_matches('`'));
        Some([cells.next()?, cells.next()?, cells.nth(1)?])
    };
    section.lines().filter_map(cells).collect()
}

/// Runs a program that reads its script from standard input.
fn run(program: &str, arguments: &[&str], script: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!("this test needs {program}, which cannot be started: {error}; install it, or see scripts/setup")
    });
    child.stdin.take().expect("its input").write_all(script.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{program} failed: {}\n{script}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn psql(url: &str, script: &str) -> String {
    run("psql", &["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", url], script)
}

/// Delivers what is in the table: the event types with aggregate, key, payload and headers, in the order of their names.
async fn deliver(store: impl Store, expected: usize) -> Vec<String> {
    let (told, mut handled) = mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        let payload = delivery.payload();
        let payload = payload.as_json().map_or_else(|| format!("{:?}", payload.as_bytes()), str::to_owned);
        let headers: Vec<_> = delivery.headers().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let seen = format!(
            "{} {} {} {} {payload} {}",
            delivery.event_type(),
            delivery.aggregate_type(),
            delivery.key().unwrap_or("-"),
            delivery.tenant_id().unwrap_or("-"),
            headers.join(",")
        );
        let sent = told.send(seen);
        async move { sent }
    };
    let outbox = Outbox::single_node(store).handle_all(handler).start().await.expect("started");
    let mut seen = Vec::new();
    for _ in 0..expected {
        seen.push(timeout(SOON, handled.recv()).await.expect("soon").expect("a delivery"));
    }
    outbox.shutdown().await;
    assert_eq!(handled.recv().await, None, "nothing else, and nothing twice");
    seen.sort_unstable();
    seen
}

const ORDER_1: &str = r#"order.placed __GLOBAL__ - - {"order_id": "o-1", "total_cents": 1999} "#;
const REPORT: &str = r#"report.wanted __GLOBAL__ - - {"customer": 7} "#;
const ORDER_2: &str = r#"order.placed __GLOBAL__ - - {"order_id": "o-2", "total_cents": 2499} "#;

#[tokio::test]
async fn rows_that_sqlite_and_python_insert_are_delivered() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("shop.db");
    let path = file.to_str().expect("text");
    let store = SqliteStore::open(path).await.expect("opened");
    store.migrate().await.expect("migrated");
    sqlx::raw_sql(ORDERS).execute(store.writer()).await.expect("a table");
    for example in examples("sql sqlite") {
        sqlx::raw_sql(example).execute(store.writer()).await.expect("the example runs");
    }
    for expected in [1, 2] {
        sqlx::raw_sql(unique_key("sql sqlite")).execute(store.writer()).await.expect("the example runs");
        let reports: i64 = sqlx::query_scalar(REPORTS).fetch_one(store.writer()).await.expect("counted");
        assert_eq!(reports, expected);
        if expected == 1 {
            sqlx::raw_sql(REPORTED).execute(store.writer()).await.expect("settled");
        }
    }
    for example in examples("python sqlite3") {
        run("python3", &["-", path], example);
    }
    let declared = sqlx::query_as::<_, (String, String)>("select name, type from pragma_table_info('outbox_event')");
    let declared = declared.fetch_all(store.writer()).await.expect("columns");
    let documented: Vec<_> = columns().into_iter().map(|[name, _, kind]| (name.to_owned(), kind.to_owned())).collect();
    assert_eq!(documented, declared);

    let seen = deliver(store, 4).await;
    assert_eq!(seen, [r#"invoice.due invoice i-1 - {"invoice_id": "i-1"} "#, ORDER_1, ORDER_2, REPORT]);
    assert!(Path::new(path).exists());
}

#[tokio::test]
async fn rows_that_psql_inserts_are_delivered() {
    let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let schema = format!("contract_{}", Stamp::system().next_id().as_str().to_ascii_lowercase());
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}options=-c%20search_path%3D{schema}");
    psql(&server, &format!("create schema {schema};"));

    let store = PostgresStore::connect(&url).await.expect("connected");
    store.migrate().await.expect("migrated");
    psql(&url, &format!("{ORDERS};"));
    for example in examples("sql postgres") {
        psql(&url, example);
    }
    for expected in ["1", "2"] {
        psql(&url, unique_key("sql postgres"));
        assert_eq!(psql(&url, REPORTS).trim(), expected);
        if expected == "1" {
            psql(&url, REPORTED);
        }
    }
    let declared = psql(
        &url,
        "select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute
         where attrelid = 'outbox_event'::regclass and attnum > 0 and attgenerated = '' order by attnum;",
    );
    let declared = declared.replace("character varying", "varchar").replace("timestamp with time zone", "timestamptz");
    let documented: Vec<_> = columns().into_iter().map(|[name, kind, _]| format!("{name} {kind}")).collect();
    assert_eq!(documented, declared.lines().collect::<Vec<_>>());

    let seen = deliver(store, 5).await;
    psql(&server, &format!("drop schema {schema} cascade;"));
    let expected = [
        r#"invoice.due invoice customer-1 shop-7 {"invoice_id": "i-1"} source=psql"#,
        r#"invoice.due invoice customer-2 shop-7 {"invoice_id": "i-2"} "#,
        "label.printed __GLOBAL__ - - [1, 2] ",
        ORDER_1,
        REPORT,
    ];
    assert_eq!(seen, expected);
}
