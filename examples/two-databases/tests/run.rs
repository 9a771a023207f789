//! The program as its users meet it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::process::Command;

use pillarbox::event::Stamp;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Runs it, with the database of the orders at this URL; each announcement is to be made once.
fn run(orders: Option<&str>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_two-databases"));
    command.env_remove("ORDERS_OUTBOX_STORE__URL").env_remove("STOCK_OUTBOX_STORE__URL");
    command.envs(orders.map(|url| ("ORDERS_OUTBOX_STORE__URL", url)));
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.pop(), Some("orders: 1 delivered, stock: 1 delivered"));
    lines.sort_unstable();
    let expected =
        [r#"announced order.placed {"order_id":"o-1"}"#, r#"announced stock.taken {"article":"a-7","pieces":2}"#];
    assert_eq!(lines, expected);
}

#[test]
fn two_databases_of_sqlite() {
    run(None);
}

#[tokio::test]
async fn one_of_postgresql_and_one_of_sqlite() {
    let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let mut connection = PgConnection::connect(&server).await.unwrap_or_else(|error| {
        panic!(
            "this test needs PostgreSQL and cannot reach it ({error}); run it by ./scripts/test, or name a server: \
             PILLARBOX_TEST_POSTGRES_URL=postgres://USER@HOST:PORT/DATABASE"
        )
    });
    let name = format!("two_databases_{}", Stamp::system().next_id().as_str().to_ascii_lowercase());
    connection.execute(AssertSqlSafe(format!("CREATE SCHEMA {name}"))).await.expect("a schema");
    let url = in_schema(&server, &name);
    let ran = tokio::task::spawn_blocking(move || run(Some(&url))).await;
    connection.execute(AssertSqlSafe(format!("DROP SCHEMA {name} CASCADE"))).await.expect("dropped");
    ran.expect("as expected");
}

/// The same server, where all tables are in this schema.
fn in_schema(url: &str, schema: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}options=-c%20search_path%3D{schema}")
}
