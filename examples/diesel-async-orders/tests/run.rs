//! The program as its users meet it, in a schema of its own. It needs PostgreSQL.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::process::Command;

use pillarbox::event::Stamp;
use tokio_postgres::NoTls;

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_was_placed_gets_its_receipt() {
    let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap_or_else(|error| {
        panic!("this test needs PostgreSQL and cannot reach it ({error}); run it by ./scripts/test")
    });
    tokio::spawn(connection);
    let schema = format!("orders_{}", Stamp::system().next_id().as_str().to_ascii_lowercase());
    client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.expect("a schema");
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}options=-c%20search_path%3D{schema}");
    let run = Command::new(env!("CARGO_BIN_EXE_diesel-async-orders")).env("DATABASE_URL", url).output();
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.expect("dropped");
    let output = run.expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).expect("text"), "receipt for ada: 1999 cents\n");
}
