//! Statements of the guides that no other test runs, on PostgreSQL.

use pillarbox::{PostgresStore, Store as _};
use tokio_postgres::NoTls;

use crate::blocks::Block;
use crate::classes::{Class, all};

const SCHEMA: &str = "guides";

#[tokio::test]
async fn sql_runs() {
    let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let (client, connection) = tokio_postgres::connect(&server, NoTls).await.expect("a server: see scripts/test");
    let connection = tokio::task::JoinSet::from_iter([connection]);
    client
        .batch_execute(&format!("drop schema if exists {SCHEMA} cascade; create schema {SCHEMA}"))
        .await
        .expect("a schema");
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}options=-c%20search_path%3D{SCHEMA}");
    PostgresStore::connect(&url).await.expect("connected").migrate().await.expect("migrated");

    // Roles are the server's, so they end with the transaction, as all that a block does.
    let roles: String =
        ["relay", "operator", "shop", "billing", "store"].map(|role| format!("create role {role};")).concat();
    for Block { page, line, text, .. } in all(Class::Run, "sql") {
        let whole = format!("begin; set local search_path = {SCHEMA}; {roles}\n{text}\n; rollback");
        if let Err(error) = client.batch_execute(&whole).await {
            panic!("{page}:{line}: {}", error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string));
        }
    }
    client.batch_execute(&format!("drop schema {SCHEMA} cascade")).await.expect("dropped");
    drop(client);
    connection.join_all().await;
}
