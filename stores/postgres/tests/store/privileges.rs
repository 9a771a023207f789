//! The privileges that a guide names are enough.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use crate::support::{unique, with_db};
use deadpool_postgres::{Manager, Pool};
use pillarbox_core::event::Envelope;
use pillarbox_core::write::insert;
use pillarbox_engine::run::Outbox;
use tokio_postgres::{Config, NoTls};

const RELAY: &str = include_str!("../../../../docs/relay.md");

#[tokio::test]
async fn a_program_that_writes_starts_with_what_the_guide_grants() {
    with_db(async |db| {
        let schema = &db.schema;
        db.store().await;
        let role = unique("pillarbox_role");
        db.execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO {role}")).await;
        let grants = RELAY.lines().filter_map(|line| line.strip_suffix(" to store;"));
        for grant in grants {
            db.execute(&format!("{} TO {role}", grant.replace("outbox_", &format!("{schema}.outbox_")))).await;
        }
        let store = db.options_as(&role).connect().await.expect("connects");
        let outbox = Outbox::writer_only(store.clone()).start().await.expect("the privileges are enough");
        let config: Config = db.url_with(&format!("{role}:x"), "").parse().expect("a URL");
        let pool = Pool::builder(Manager::new(config, NoTls)).max_size(1).build().expect("a pool");
        let mut client = pool.get().await.expect("a connection");
        for written in [1, 0] {
            let event = Envelope::builder("report.wanted").unique_key("report:7").payload_json("{}");
            let mut transaction = client.transaction().await.expect("begins");
            let seqs = insert(&store, &mut transaction, vec![event.build().expect("valid")]).await;
            assert_eq!(seqs.expect("the privileges are enough").len(), written);
            transaction.commit().await.expect("commits");
        }
        outbox.shutdown().await;
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}
