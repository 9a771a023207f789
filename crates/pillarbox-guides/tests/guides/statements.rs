//! Statements of the guides that no other test runs, on PostgreSQL.

use std::time::Duration;

use pillarbox::handle::{Unroutable, on_type};
use pillarbox::{Delivery, Outbox, PostgresStore, Store as _};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, NoTls};

use crate::blocks::Block;
use crate::classes::{Class, all};

/// Runs a test in a schema of its own, with the tables of a store.
async fn with_schema(schema: &str, test: impl AsyncFnOnce(&Client, PostgresStore)) {
    let server = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let (client, connection) = tokio_postgres::connect(&server, NoTls).await.expect("a server: see scripts/test");
    let connection = JoinSet::from_iter([connection]);
    client
        .batch_execute(&format!("drop schema if exists {schema} cascade; create schema {schema}"))
        .await
        .expect("a schema");
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}options=-c%20search_path%3D{schema}");
    let store = PostgresStore::connect(&url).await.expect("connected");
    store.migrate().await.expect("migrated");
    test(&client, store).await;
    client.batch_execute(&format!("drop schema {schema} cascade")).await.expect("dropped");
    drop(client);
    connection.join_all().await;
}

#[tokio::test]
async fn sql_runs() {
    let schema = "guides";
    // Roles are the server's, so they end with the transaction, as all that a block does.
    let roles: String =
        ["relay", "operator", "shop", "billing", "store"].map(|role| format!("create role {role};")).concat();
    with_schema(schema, async |client, _| {
        for Block { page, line, text, .. } in all(Class::Run, "sql") {
            let whole = format!("begin; set local search_path = {schema}; {roles}\n{text}\n; rollback");
            if let Err(error) = client.batch_execute(&whole).await {
                panic!("{page}:{line}: {}", error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string));
            }
        }
    })
    .await;
}

/// What an outbox says of a row that names no handler, where handlers have names, is what the statement looks for.
#[tokio::test]
async fn dead_rows_without_a_handler_are_replaced_by_rows_with_names() {
    let schema = "guides_nameless";
    with_schema(schema, async |client, store| {
        let insert =
            "insert into outbox_event (event_id, event_type, aggregate_type, payload, status, last_error) values
             ('e-1', 'order.placed', null, '{}', 0, null), ('e-2', 'order.placed', 'order', '{}', 0, null),
             ('e-3', 'order.placed', null, '{}', 3, 'refused')";
        client.batch_execute(&format!("set search_path = {schema}; {insert}")).await.expect("inserted");
        let handler = |events: &'static str| on_type(events, |_: Delivery| async {}).named("mailer");
        let of_order = on_type(("order", "order.placed"), |_: Delivery| async {}).named("mailer");
        let outbox = Outbox::single_node(store).handler(handler("order.placed")).handler(of_order);
        let outbox = outbox.unroutable(Unroutable::Dead).start().await.expect("started");
        let dead = async {
            while outbox.stats().dead < 2 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), dead).await.expect("both are for nobody");
        outbox.shutdown().await;

        let repair = all(Class::Run, "sql").into_iter().find(|block| block.text.contains("with nameless as"));
        client.batch_execute(&repair.expect("the guide has the statement").text).await.expect("runs");
        let row = client
            .query_one(
                "select string_agg(concat_ws(' ', event_id, handler, status), ', ' order by event_id, handler),
                     (select interventions from outbox_partition where \"partition\" = 0)
                 from outbox_event",
                &[],
            )
            .await
            .expect("reads");
        let rows = "e-1 ledger 0, e-1 mailer 0, e-2 ledger 0, e-2 mailer 0, e-3 3";
        assert_eq!((row.get::<_, &str>(0), row.get::<_, i64>(1)), (rows, 1));
    })
    .await;
}
