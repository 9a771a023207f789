//! Creating and checking the tables.
#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::time::Duration;

use crate::support::{self, Db, LEASE, events, fetch, unique, with_db};
use futures_util::future::{join, try_join_all};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::event::Stamp;
use pillarbox_core::ownership::{NodeId, NodeMode, NodeName};
use pillarbox_core::store::{Admin as _, Fetch, FetchScope, Heads, Store as _, TableName};
use pillarbox_postgres::{PostgresOptions, PostgresStore};
use tokio::time::{Instant, sleep};

/// Many processes start at once on an empty database; stores share nothing, as processes do.
#[tokio::test]
async fn many_migrate_at_once() {
    with_db(async |db| {
        let stores = try_join_all((0..8).map(|_| db.options().pool_size(1).connect())).await.expect("connect");
        try_join_all(stores.iter().map(|store| store.migrate())).await.expect("all migrate");
        try_join_all(stores.iter().map(|store| store.check())).await.expect("all find the tables");
        let recorded = format!("SELECT count(*) FROM {}.outbox_migration", db.schema);
        assert_eq!(db.text(&recorded).await.as_deref(), Some("20"), "one of them did it, once each version");
        let partitions = format!("SELECT count(*) FROM {}.outbox_partition WHERE node_id IS NULL", db.schema);
        assert_eq!(db.text(&partitions).await.as_deref(), Some("256"));
    })
    .await;
}

/// Options of a store whose tables are found by this search path.
fn by_search_path(db: &Db, path: &str) -> PostgresOptions {
    let url = db.url_with("", &format!("&options=-c%20search_path%3D{path}"));
    PostgresOptions::parse(&url).expect("a valid URL").table("outbox_event").pool_size(1)
}

/// Processes that name the schema and such that leave it to the search path.
#[tokio::test]
async fn processes_with_and_without_a_schema_name_migrate_one_at_a_time() {
    with_db(async |db| {
        let schema = &db.schema;
        let migrated = async |versions: &str| {
            let options = (0..8).map(|number| match number % 2 {
                0 => db.options().pool_size(1),
                _ => by_search_path(db, schema),
            });
            let stores = try_join_all(options.map(PostgresOptions::connect)).await.expect("connect");
            try_join_all(stores.iter().map(|store| store.migrate())).await.expect("all migrate");
            try_join_all(stores.iter().map(|store| store.check())).await.expect("all find the tables");
            let recorded = format!("SELECT count(*) FROM {schema}.outbox_migration");
            assert_eq!(db.text(&recorded).await.as_deref(), Some(versions));
        };
        db.execute(&format!("CREATE SCHEMA {schema}")).await;
        migrated("20").await;
        db.execute(&format!("DROP SCHEMA {schema} CASCADE")).await;
        tables_of_version(db, 8).await;
        migrated("19").await;
    })
    .await;
}

/// Outboxes in two schemas of a search path have indexes of the same names.
#[tokio::test]
async fn an_index_of_another_schema_is_not_taken_for_one_of_the_table() {
    with_db(async |db| {
        let complete = unique("pillarbox");
        let other = db.options().table(format!("{complete}.outbox_event")).connect().await.expect("connects");
        other.migrate().await.expect("migrates");
        let before = db.indexes(&complete).await;
        tables_of_version(db, 5).await;
        let path = format!("{},{complete}", db.schema);
        let store = by_search_path(db, &path).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        store.check().await.expect("is complete");
        let found = db.indexes(&db.schema).await;
        for name in ["aside_idx", "new_due_idx", "new_dead_idx", "new_head_idx", "unique_idx"] {
            let name = format!(" outbox_event_{name} ");
            assert!(found.iter().any(|index| index.contains(&name)), "{name} is missing: {found:?}");
        }
        assert_eq!(db.indexes(&complete).await, before);
        db.execute(&format!("DROP SCHEMA {complete} CASCADE")).await;
    })
    .await;
}

#[tokio::test]
async fn missing_tables_are_named_with_the_remedy() {
    with_db(async |db| {
        let store = db.options().connect().await.expect("connects");
        let error = store.check().await.expect_err("nothing is there");
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        let text = error.to_string();
        for part in [&format!("{}.outbox_event", db.schema), "outbox_partition", "store.migrate()", "pillarbox migrate"]
        {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
        let error = store.fetch(&fetch(1)).await.expect_err("nothing is there");
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains("pillarbox migrate"), "{error}");

        store.migrate().await.expect("migrates");
        db.execute(&format!("DROP TABLE {}.outbox_node", db.schema)).await;
        for answer in [store.check().await, store.migrate().await] {
            let error = answer.expect_err("one is missing, and another migration makes nothing");
            let text = error.to_string();
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{text}");
            assert!(text.contains("outbox_node") && !text.contains("outbox_event,"), "{text}");
            assert!(text.contains("--print") && !text.contains("store.migrate()"), "{text}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    with_db(async |db| {
        let store = db.store().await;
        db.execute(&format!("INSERT INTO {}.outbox_migration (version) VALUES (99)", db.schema)).await;
        for error in [store.migrate().await, store.check().await] {
            let error = error.expect_err("it is newer");
            assert_eq!(error.kind(), StoreErrorKind::Schema);
            assert!(error.to_string().contains("99") && error.to_string().contains("upgrade Pillarbox"), "{error}");
        }
    })
    .await;
}

/// The tables as a release of this version of them has left them, and a store of this release on them.
async fn tables_of_version(db: &Db, version: usize) -> PostgresStore {
    let store = db.options().connect().await.expect("connects");
    let sql = store.migration_sql();
    let (later, _) = sql.match_indices("\n-- Version ").nth(version).expect("later versions");
    db.execute(&sql[..later]).await;
    store
}

/// A table that an earlier release created and filled.
#[tokio::test]
async fn a_table_of_version_2_is_upgraded_with_its_rows() {
    with_db(async |db| {
        let store = tables_of_version(db, 2).await;
        assert_eq!(store.check().await.expect_err("it is old").kind(), StoreErrorKind::Schema);
        let table = format!("{}.outbox_event", db.schema);
        db.execute(&format!(
            "INSERT INTO {table} (event_id, event_type, payload, aggregate_id, partition, status, available_at, done_at)
             SELECT i, 'order.placed', '[1,  2]', 'order-' || i % 5, CASE WHEN i > 7 THEN i % 5 END, i % 4,
                 CASE i % 4 WHEN 2 THEN now() + interval '1 hour' END, CASE WHEN i % 4 IN (1, 3) THEN now() END
             FROM generate_series(1, 40) i"
        ))
        .await;
        let added = "ARRAY['replays', 'aside', 'failures', 'unique_key', 'delivered_as']";
        let rows =
            format!("SELECT string_agg(concat(payload, to_jsonb(e) - {added}), E'\\n' ORDER BY seq) FROM {table} e");
        let before = db.text(&rows).await;

        store.migrate().await.expect("migrates");
        store.check().await.expect("it is up to date");
        assert_eq!(db.text(&rows).await, before, "no row has changed");
        let aside =
            format!("SELECT string_agg(concat(status, '/', aside), ',' ORDER BY seq) FROM {table} WHERE seq <= 4");
        assert_eq!(db.text(&aside).await.as_deref(), Some("1/,2/2,3/3,0/"));
        // Of the NEW rows this one alone comes before all heads of its key; row 8, the next, is behind row 3, which is DEAD.
        let scope =
            FetchScope { partitions: 0..=255, heads: Heads::RetryAndDead, without: vec![], only: vec![], node: None };
        let fetched = store.fetch(&Fetch { scope: Some(scope), ..fetch(100) }).await.expect("fetches");
        assert_eq!(support::seqs(&fetched.rows), [4]);
        assert_eq!(store.counts().await.expect("counts").pending(), 20);
    })
    .await;
}

/// An event without a handler stays one row; for each handler there may be another.
#[tokio::test]
async fn tables_of_version_2_take_an_event_for_several_handlers() {
    with_db(async |db| {
        let store = tables_of_version(db, 2).await;
        let insert = |column: &str, value: &str| {
            format!(
                "INSERT INTO {}.outbox_event (event_id, event_type, payload{column}) VALUES ('a', 't', '{{}}'{value})",
                db.schema
            )
        };
        db.execute(&insert("", "")).await;
        assert_eq!(store.check().await.expect_err("is older").kind(), StoreErrorKind::Schema);
        store.migrate().await.expect("migrates");
        store.check().await.expect("is complete");

        let mailer = insert(", handler", ", 'mailer'");
        db.execute(&mailer).await;
        for twice in [insert("", ""), mailer] {
            let connection = db.pool.get().await.expect("a connection");
            assert!(connection.batch_execute(&twice).await.is_err(), "{twice}");
        }
        let handlers: Vec<_> =
            store.records("a").await.expect("reads").into_iter().map(|record| record.handler).collect();
        assert_eq!(handlers, [None, Some("mailer".to_owned())]);
    })
    .await;
}

/// Statements that the server has not let through yet, because of what another transaction has locked.
async fn waits(db: &Db, statement: &str) -> bool {
    let waiting = format!(
        "SELECT EXISTS (SELECT FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND query LIKE '%{statement}%' AND query LIKE '%{}%')::text",
        db.schema
    );
    db.text(&waiting).await.as_deref() == Some("true")
}

/// Inserts rows one by one until `enough` says so of how long each has taken, and returns the longest time.
async fn insert_until(db: &Db, enough: impl AsyncFn(&[Duration]) -> bool) -> Duration {
    let mut took = Vec::new();
    while !enough(&took).await {
        let began = Instant::now();
        db.execute(&insert(db, &unique("event")[6..])).await;
        took.push(began.elapsed());
    }
    took.into_iter().max().unwrap_or_default()
}

fn insert(db: &Db, event_id: &str) -> String {
    format!("INSERT INTO {}.outbox_event (event_id, event_type, payload) VALUES ('{event_id}', 't', '1')", db.schema)
}

/// Nobody else may have made a column of the name that a version adds: what it holds would be taken for a count.
#[tokio::test]
async fn a_column_of_the_same_name_and_another_kind_is_refused() {
    with_db(async |db| {
        let store = tables_of_version(db, 8).await;
        let event = format!("{}.outbox_event", db.schema);
        db.execute(&insert(db, "waits")).await;
        let kinds = [
            ("replays", "integer"),
            ("replays", "text DEFAULT 'often'"),
            ("failures", "integer"),
            ("unique_key", "text DEFAULT repeat('x', 256)"),
            ("delivered_as", "text DEFAULT repeat('x', 301)"),
        ];
        for (name, kind) in kinds {
            db.execute(&format!("ALTER TABLE {event} ADD COLUMN {name} {kind}")).await;
            let error = store.migrate().await.expect_err(kind);
            let length = ["unique_key", "delivered_as"].contains(&name).then_some("too long");
            assert!(error.to_string().contains(length.unwrap_or(name)), "{name} {kind}: {error}");
            store.check().await.expect_err("the version was not recorded");
            db.execute(&format!("ALTER TABLE {event} DROP COLUMN {name}")).await;
        }
        store.migrate().await.expect("migrates");
    })
    .await;
}

/// A column that holds nothing yet becomes what a version needs.
#[tokio::test]
async fn a_column_of_the_same_name_that_can_be_converted_is() {
    with_db(async |db| {
        let store = tables_of_version(db, 8).await;
        let event = format!("{}.outbox_event", db.schema);
        let theirs = "ADD failures json NOT NULL, ADD unique_key text NOT NULL, ADD delivered_as integer DEFAULT 1";
        db.execute(&format!("ALTER TABLE {event} {theirs}")).await;
        store.migrate().await.expect("migrates");
        let columns = format!(
            "SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), collname, attnotnull, atthasdef), ', ' ORDER BY attname)
             FROM pg_attribute LEFT JOIN pg_collation c ON c.oid = attcollation
             WHERE attrelid = '{event}'::regclass AND attname IN ('failures', 'unique_key', 'delivered_as')"
        );
        let ours = "delivered_as character varying(300) default f f, failures jsonb f f, unique_key character varying(255) C f f";
        assert_eq!(db.text(&columns).await.as_deref(), Some(ours));
    })
    .await;
}

/// The longest that an insert may wait for a migration: what the migration waits for a lock, and a slow machine.
const LONGEST: Duration = Duration::from_secs(4);

/// A statement that waits for a lock keeps all others waiting behind it; so it gives up soon, and comes back.
#[tokio::test]
async fn writers_go_on_while_a_migration_waits_for_one_of_them() {
    with_db(async |db| {
        let store = tables_of_version(db, 6).await;
        let mut writer = db.pool.get().await.expect("a connection");
        let open = writer.transaction().await.expect("begins");
        open.batch_execute(&insert(db, "open")).await.expect("inserts");
        let others = async {
            // Twice one of them had to wait behind the migration.
            let slow = |took: &Duration| *took > Duration::from_secs(1);
            let longest = insert_until(db, async |took| took.iter().filter(|took| slow(took)).count() >= 2).await;
            open.commit().await.expect("commits");
            longest
        };
        let (migrated, longest) = join(store.migrate(), others).await;
        migrated.expect("migrates when the writer has ended");
        assert!(longest < LONGEST, "{longest:?}");
        store.check().await.expect("is complete");
    })
    .await;
}

/// An index that is built waits for open transactions, and nobody for it. What an interrupted migration left is not taken for one.
#[tokio::test]
async fn writers_go_on_while_indexes_are_built() {
    with_db(async |db| {
        let store = tables_of_version(db, 11).await;
        let before = db.indexes(&db.schema).await;
        let left = format!(
            "CREATE INDEX outbox_event_new_due_idx ON {0}.outbox_event (seq);
             UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{0}.outbox_event_new_due_idx'::regclass",
            db.schema
        );
        db.execute(&left).await;
        let mut writer = db.pool.get().await.expect("a connection");
        let open = writer.transaction().await.expect("begins");
        open.batch_execute(&insert(db, "open")).await.expect("inserts");
        let others = async {
            let built = "CREATE INDEX CONCURRENTLY";
            let longest = insert_until(db, async |took| took.len() >= 50 && waits(db, built).await).await;
            open.commit().await.expect("commits");
            longest
        };
        let (migrated, longest) = join(store.migrate(), others).await;
        migrated.expect("migrates when the writer has ended");
        assert!(longest < LONGEST, "{longest:?}");
        let after = db.indexes(&db.schema).await;
        assert_eq!(
            after.len(),
            before.len() + 9,
            "five of events, two of the inbox, and one each of the audit and the pauses: {after:?}"
        );
        assert!(before.iter().all(|index| after.contains(index)), "and leaves those of the release before: {after:?}");
        assert!(after.iter().any(|index| index.contains("new_due_idx") && index.contains("aside")), "{after:?}");
    })
    .await;
}

/// A build goes on after its process has gone, and may end well.
#[tokio::test]
async fn an_index_that_another_session_still_builds_is_waited_for() {
    with_db(async |db| {
        let store = tables_of_version(db, 11).await;
        let reader = db.pool.get().await.expect("a connection");
        reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.expect("has a snapshot");
        let build = "CREATE INDEX CONCURRENTLY outbox_event_aside_idx";
        let index = format!("SELECT to_regclass('{}.outbox_event_aside_idx')::oid", db.schema);
        let migrates = async {
            support::eventually("the build waits", async || waits(db, build).await).await;
            let built = db.text(&index).await;
            let commits = async {
                support::eventually("the migration waits", async || waits(db, "LOCK TABLE").await).await;
                reader.batch_execute("COMMIT").await.expect("commits");
            };
            let (migrated, ()) = join(store.migrate(), commits).await;
            migrated.expect("migrates");
            built
        };
        let statement = format!("{build} ON {}.outbox_event (seq)", db.schema);
        let (built, ()) = join(migrates, db.execute(&statement)).await;
        assert_eq!(db.text(&index).await, built, "it was kept");
        store.check().await.expect("is complete");
    })
    .await;
}

/// Nodes that change membership lock partitions first and events after; a migration holds no lock on the one while it waits for
/// the other.
#[tokio::test]
async fn a_migration_and_a_reclaim_do_not_wait_for_each_other() {
    with_db(async |db| {
        let store = tables_of_version(db, 3).await;
        db.execute(&insert(db, "held")).await;
        let mut node = db.pool.get().await.expect("a connection");
        let reclaim = node.transaction().await.expect("begins");
        let lock = format!("SELECT FROM {}.outbox_partition WHERE partition = 0 FOR UPDATE", db.schema);
        reclaim.batch_execute(&lock).await.expect("locks");
        let reclaims = async {
            while !waits(db, "interventions").await {
                sleep(Duration::from_millis(5)).await;
            }
            let began = Instant::now();
            let free = format!("UPDATE {}.outbox_event SET locked_by = NULL", db.schema);
            reclaim.batch_execute(&free).await.expect("is in nobody's way");
            reclaim.commit().await.expect("commits");
            began.elapsed()
        };
        let (migrated, took) = join(store.migrate(), reclaims).await;
        migrated.expect("migrates");
        assert!(took < LONGEST, "{took:?}");
    })
    .await;
}

/// The identity's numbers alone count for how far the table has been written.
#[tokio::test]
async fn a_number_that_a_program_made_up_is_refused() {
    with_db(async |db| {
        let store = db.store().await;
        let made_up = format!(
            "INSERT INTO {}.outbox_event (seq, event_id, event_type, payload) VALUES (1000000000, 'a', 't', '1')",
            db.schema
        );
        let connection = db.pool.get().await.expect("a connection");
        let error = connection.batch_execute(&made_up).await.expect_err("it is refused");
        assert_eq!(error.code(), Some(&tokio_postgres::error::SqlState::GENERATED_ALWAYS), "{error}");
        assert_eq!(db.write(&store, events(1)).await, [1]);
    })
    .await;
}

/// What is printed for other migration tools leads to what `migrate` leads to.
#[tokio::test]
async fn the_printed_sql_is_what_runs() {
    with_db(async |db| {
        let printed = unique("pillarbox");
        let other = db.options().table(format!("{printed}.outbox_event")).connect().await.expect("connects");
        db.execute(&other.migration_sql()).await;
        other.check().await.expect("it says nothing is missing");
        other.migrate().await.expect("nothing is left to do");
        let migrated = db.store().await;
        let shape = async |schema: &str| {
            let columns = format!(
                "SELECT string_agg(concat_ws(' ', table_name, column_name, data_type, column_default, is_nullable), E'\\n'
                                   ORDER BY table_name, column_name)
                 FROM information_schema.columns WHERE table_schema = '{schema}'"
            );
            (db.text(&columns).await.map(|columns| columns.replace(schema, "")), db.indexes(schema).await)
        };
        assert_eq!(shape(&printed).await, shape(&db.schema).await);
        assert_eq!(db.write(&other, events(2)).await, db.write(&migrated, events(2)).await);
        db.execute(&format!("DROP SCHEMA {printed} CASCADE")).await;
    })
    .await;
}

/// Names are quoted, so case is kept and keywords are names; the longest ones fit.
#[tokio::test]
async fn any_valid_table_name_works() {
    with_db(async |db| {
        let longest = "x".repeat(48);
        for name in ["Select_event", "user", "order", &longest] {
            let store = db.options().table(format!("{}.{name}", db.schema)).connect().await.expect("connects");
            store.migrate().await.expect("migrates");
            store.check().await.expect("is there");
            let written = db.write(&store, events(2)).await;
            assert_eq!(support::seqs(&store.fetch(&fetch(9)).await.expect("fetches").rows), written, "{name}");
        }
        let error = db.options().table("a.b.c").connect().await.expect_err("no such name");
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    })
    .await;
}

/// A service's own user need not be allowed to create tables where there is nothing to create.
#[tokio::test]
async fn a_user_without_privileges_migrates_what_is_migrated() {
    with_db(async |db| {
        let store = db.store().await;
        let role = unique("pillarbox_role");
        db.execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {0} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {0} TO {role}",
            db.schema
        ))
        .await;
        let service = db.options_as(&role).connect().await.expect("connects");
        service.migrate().await.expect("nothing is to be done");
        service.check().await.expect("all is there");
        db.execute(&format!(
            "ALTER TABLE {0}.outbox_event DROP COLUMN delivered_as; DELETE FROM {0}.outbox_migration WHERE version >= 19",
            db.schema
        ))
        .await;
        let error = service.migrate().await.expect_err("what is missing takes the owner");
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        let remedy = "do it as its owner, or as a member of the owner's role";
        assert!(error.to_string().contains("must be owner") && error.to_string().contains(remedy), "{error}");
        db.execute(&format!("REVOKE ALL ON ALL TABLES IN SCHEMA {} FROM {role}", db.schema)).await;
        let error = service.counts().await.expect_err("it may not read");
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert_eq!(store.counts().await.expect("counts").pending(), 0);
        db.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}

/// Several outboxes live in one schema, told apart by their prefixes.
#[tokio::test]
async fn a_prefix_stands_before_all_tables() {
    with_db(async |db| {
        for (prefix, event) in [("shop_", "outbox_event"), ("till_", "outbox_event"), ("shop_", "events")] {
            let table = TableName::parse(&format!("{}.{event}", db.schema)).and_then(|table| table.prefixed(prefix));
            let store = db.options().table(table.expect("valid")).connect().await.expect("connects");
            store.migrate().await.expect("migrates");
            store.check().await.expect("finds its tables");
            let node = NodeId::incarnate(&NodeName::of_host(), Stamp::system());
            store.join(&node, NodeMode::Partitioned, LEASE).await.expect("joins alone");
            assert_eq!(store.nodes().await.expect("lists").len(), 1, "{}", store.info().table);
        }
        let tables = format!(
            "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_tables WHERE schemaname = '{}'",
            db.schema
        );
        let expected = "shop_events,shop_events_audit,shop_events_inbox,shop_events_migration,shop_events_node,shop_events_partition,shop_events_pause,\
             shop_outbox_audit,shop_outbox_event,shop_outbox_inbox,shop_outbox_migration,shop_outbox_node,shop_outbox_partition,shop_outbox_pause,\
             till_outbox_audit,till_outbox_event,till_outbox_inbox,till_outbox_migration,till_outbox_node,till_outbox_partition,till_outbox_pause";
        assert_eq!(db.text(&tables).await.as_deref(), Some(expected));
    })
    .await;
}
