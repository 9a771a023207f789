//! Creating, adopting and checking the tables.

use std::time::Duration;

use crate::support::{self, LEASE, done, events, fetch, owner, pending, unique, with_db};
use futures_util::future::{join, try_join_all};
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::event::{Payload, Stamp};
use pillarbox_core::ownership::{Epochs, Fence, NodeId, NodeMode, NodeName, Partitions, Rebalanced};
use pillarbox_core::store::{Admin as _, Fetch, FetchScope, FetchedRow, Heads, Store as _, TableName};
use tokio::time::Instant;

/// Many processes start at once on an empty database; stores share nothing, as processes do.
#[tokio::test]
async fn many_migrate_at_once() {
    with_db(async |db| {
        let stores = try_join_all((0..8).map(|_| db.options().pool_size(1).connect())).await.expect("connect");
        try_join_all(stores.iter().map(|store| store.migrate())).await.expect("all migrate");
        try_join_all(stores.iter().map(|store| store.check())).await.expect("all find the tables");
        let versions = "SELECT GROUP_CONCAT(version ORDER BY version) FROM outbox_migration";
        assert_eq!(db.text(versions).await.as_deref(), Some("1,3,4,5,6,8,9,13,14,15,16,17,19"), "one of them did it");
        let partitions = "SELECT COUNT(*) FROM outbox_partition WHERE node_id IS NULL";
        assert_eq!(db.text(partitions).await.as_deref(), Some("256"));
    })
    .await;
}

/// Statements that make tables commit by themselves, so a process may die between any two of them.
#[tokio::test]
async fn a_migration_that_was_cut_short_is_completed() {
    with_db(async |db| {
        let store = db.store().await;
        let written = db.write(&store, events(3)).await;
        for lost in [
            "DELETE FROM outbox_migration",
            "DELETE FROM outbox_migration WHERE version >= 3",
            "DELETE FROM outbox_migration; DELETE FROM outbox_partition WHERE `partition` > 100",
            "DROP TABLE outbox_migration, outbox_partition, outbox_node",
            "DELETE FROM outbox_migration WHERE version >= 4",
            "DELETE FROM outbox_migration WHERE version >= 4; ALTER TABLE outbox_event DROP KEY pillarbox_heads",
        ] {
            db.execute(lost).await;
            store.migrate().await.expect("migrates");
            store.check().await.expect("is complete");
            assert_eq!(db.text("SELECT COUNT(*) FROM outbox_partition").await.as_deref(), Some("256"));
            assert_eq!(pending(&store).await, written);
            assert_eq!(heads_index(db).await, "head,handler,failing,seq");
        }
    })
    .await;
}

#[tokio::test]
async fn a_lost_table_is_named_by_check_and_migration() {
    with_db(async |db| {
        let store = db.store().await;
        db.execute("DROP TABLE outbox_pause").await;
        for answer in [store.check().await, store.migrate().await] {
            let error = answer.expect_err("another migration makes nothing");
            let text = error.to_string();
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{text}");
            assert!(text.contains("outbox_pause, which") && text.contains("--print"), "{text}");
        }
    })
    .await;
}

/// The columns of the index of heads.
async fn heads_index(db: &support::Db) -> String {
    let columns = format!(
        "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX) FROM information_schema.STATISTICS
         WHERE TABLE_SCHEMA = '{}' AND TABLE_NAME = 'outbox_event' AND INDEX_NAME = 'pillarbox_heads'",
        db.name
    );
    db.text(&columns).await.unwrap_or_default()
}

/// What the first release made, as it stands in a file that never changes.
async fn first_release(db: &support::Db) {
    let mut script = include_str!("../../migrations/0001_outbox.sql").to_owned();
    for role in ["event", "node", "partition"] {
        script = script.replace(&format!("{{{role}}}"), &format!("`outbox_{role}`"));
    }
    db.execute(&script).await;
    db.execute(
        "CREATE TABLE outbox_migration (version INT PRIMARY KEY, applied_at DATETIME(6) NOT NULL DEFAULT NOW(6))",
    )
    .await;
    db.execute("INSERT INTO outbox_migration (version) VALUES (1)").await;
}

/// Rows of every state are there, and of a key with and without a trailing space, which text takes for the same.
#[tokio::test]
async fn a_table_of_the_first_release_learns_which_rows_are_heads() {
    with_db(async |db| {
        first_release(db).await;
        db.execute(
            "INSERT INTO outbox_event (event_id, event_type, payload, ordering_key, aggregate_id, `partition`, status)
             VALUES ('a', 't', '{}', 'k', 'x', 0, 2), ('b', 't', '{}', 'k', 'y', 0, 0), ('c', 't', '{}', 'k ', NULL, 0, 0),
                    ('d', 't', '{}', NULL, 'dead', 0, 3), ('e', 't', '{}', NULL, 'dead', 0, 0), ('f', 't', '{}', 'o', NULL, 0, 1),
                    ('g', 't', '{}', 'o', NULL, 0, 0), ('h', 't', '{}', NULL, NULL, 0, 2), ('i', 't', '{}', NULL, NULL, 0, 0)",
        )
        .await;
        db.execute("UPDATE outbox_event SET `partition` = NULL WHERE event_id = 'i'").await;
        db.execute("UPDATE outbox_partition SET node_id = 'gone' WHERE `partition` < 3").await;
        let store = db.options().connect().await.expect("connects");
        let error = store.check().await.expect_err("a version is missing");
        assert!(error.to_string().contains("version 1, this release needs 19"), "{error}");
        store.migrate().await.expect("upgrades");
        store.check().await.expect("is complete");
        assert_eq!(heads_index(db).await, "head,handler,failing,seq");

        for (heads, expected) in [
            (Heads::None, "abceghi"),
            (Heads::Retry, "aceghi"),
            (Heads::RetryAndDead, "acghi"),
        ] {
            let scope = FetchScope { partitions: 0..=127, heads, without: Vec::new(), only: Vec::new(), node: None };
            let fetched = store.fetch(&Fetch { scope: Some(scope), ..fetch(100) }).await.expect("fetches");
            let ids: String = fetched.rows.iter().map(event_id).collect();
            assert_eq!(ids, expected, "{heads:?}");
        }

        // What the release before left to whoever takes it over says now that its owner died.
        let node = support::node("rebalancer");
        store.join(&node, NodeMode::Partitioned, LEASE).await.expect("joins");
        let Rebalanced::Member(holding) = store.rebalance(&node, &Epochs::none()).await.expect("rebalances") else {
            panic!("it is registered")
        };
        assert_eq!((holding.owned, holding.unclean), (Partitions::ALL, Partitions::from(0..=2)));
    })
    .await;
}

/// An event without a handler stays one row; for each handler there may be another.
#[tokio::test]
async fn tables_of_version_1_take_an_event_for_several_handlers() {
    with_db(async |db| {
        let store = db.options().connect().await.expect("connects");
        let whole = store.migration_sql();
        let (first, _) = whole.split_once("-- Version 3").expect("the third version is there");
        db.execute(first).await;
        let insert = |column: &str, value: &str| {
            format!("INSERT INTO outbox_event (event_id, event_type, payload{column}) VALUES ('a', 't', '{{}}'{value})")
        };
        db.execute(&insert("", "")).await;
        assert_eq!(store.check().await.expect_err("is older").kind(), StoreErrorKind::Schema);
        store.migrate().await.expect("migrates");
        store.check().await.expect("is complete");

        let mailer = insert(", handler", ", 'mailer'");
        db.execute(&mailer).await;
        for twice in [insert("", ""), mailer] {
            let mut connection = db.pool.get_conn().await.expect("a connection");
            assert!(mysql_async::prelude::Query::ignore(twice.as_str(), &mut connection).await.is_err(), "{twice}");
        }
        let handlers: Vec<_> =
            store.records("a").await.expect("reads").into_iter().map(|record| (record.seq, record.handler)).collect();
        assert_eq!(handlers, [(1, None), (2, Some("mailer".to_owned()))]);
    })
    .await;
}

/// Which event it is, or why it is none.
fn event_id(row: &FetchedRow) -> &str {
    match row {
        FetchedRow::Row(row) => row.event.id().as_str(),
        FetchedRow::Broken(row) => &row.reason,
    }
}

#[tokio::test]
async fn the_database_of_the_table_is_made_and_found() {
    with_db(async |db| {
        let name = unique("pillarbox_other");
        let store = db.options().table(format!("{name}.orders")).connect().await.expect("connects");
        let error = store.check().await.expect_err("nothing is there");
        assert!(error.to_string().contains(&format!("{name}.orders_partition")), "{error}");
        store.migrate().await.expect("migrates");
        store.check().await.expect("is there");
        assert_eq!(db.write(&store, events(2)).await, pending(&store).await);
        db.execute(&format!("DROP DATABASE {name}")).await;
    })
    .await;
}

#[tokio::test]
async fn a_table_of_another_purpose_is_refused_untouched() {
    for (table, columns) in [
        ("outbox_event", "event_id VARCHAR(36) PRIMARY KEY, payload JSON"),
        ("outbox_node", "node_id INT PRIMARY KEY"),
        ("outbox_migration", "name VARCHAR(20)"),
    ] {
        with_db(async |db| {
            db.execute(&format!("CREATE TABLE {table} ({columns})")).await;
            let store = db.options().connect().await.expect("connects");
            let error = store.migrate().await.expect_err("it is not ours");
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
            assert!(error.to_string().contains(table) && error.to_string().contains("rename"), "{error}");
            let tables = format!("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{}'", db.name);
            assert_eq!(db.text(&tables).await.as_deref(), Some("1"), "nothing was written");
        })
        .await;
    }
}

/// As outbox-java's documentation prints it.
const OUTBOX_JAVA: &str = "
    CREATE TABLE outbox_event (
      event_id VARCHAR(36) PRIMARY KEY,
      event_type VARCHAR(128) NOT NULL,
      aggregate_type VARCHAR(64),
      aggregate_id VARCHAR(128),
      tenant_id VARCHAR(64),
      payload JSON NOT NULL,
      headers JSON,
      status TINYINT NOT NULL,
      attempts INT NOT NULL DEFAULT 0,
      available_at DATETIME(6) NOT NULL,
      created_at DATETIME(6) NOT NULL,
      done_at DATETIME(6),
      last_error TEXT,
      locked_by VARCHAR(128),
      locked_at DATETIME(6)
    ) DEFAULT CHARACTER SET latin1;
    CREATE INDEX idx_status_available ON outbox_event(status, available_at, created_at)";

/// The insert that its writers send.
fn java_insert(event_id: &str, status: u8) -> String {
    format!(
        "INSERT INTO outbox_event (event_id, event_type, aggregate_type, aggregate_id, tenant_id, payload, headers, status,
             attempts, available_at, created_at)
         VALUES ('{event_id}', 'OrderPlaced', '__GLOBAL__', NULL, NULL, '{{\"n\" :  1}}', '{{\"trace\": \"é\"}}', {status},
             0, UTC_TIMESTAMP(6) - INTERVAL 1 SECOND, UTC_TIMESTAMP(6))"
    )
}

#[tokio::test]
async fn a_table_of_outbox_java_is_adopted_and_its_writers_go_on() {
    with_db(async |db| {
        db.execute(OUTBOX_JAVA).await;
        for (id, status) in [("01B", 0), ("01A", 0), ("01C", 1), ("01D", 3)] {
            db.execute(&java_insert(id, status)).await;
        }
        let store = db.options().connect().await.expect("connects");
        store.migrate().await.expect("adopts");
        store.check().await.expect("is ours");
        store.migrate().await.expect("migrates again");
        db.execute(&java_insert("01E", 0)).await;
        let duplicate = db.pool.get_conn().await.expect("a connection");
        let refused = mysql_async::prelude::Query::ignore(java_insert("01A", 0), duplicate).await;
        assert!(refused.is_err(), "an id is still unique");
        let ours = db.write(&store, events(1)).await;

        let rows = store.fetch(&fetch(10)).await.expect("fetches").rows;
        let ids: Vec<&str> = rows.iter().map(event_id).collect();
        // Their due times are not after their creation, so all are due at once.
        assert_eq!(ids[..3], ["01A", "01B", "01E"]);
        assert_eq!(rows[3].seq(), ours[0]);
        let FetchedRow::Row(theirs) = &rows[0] else { panic!("{rows:?}") };
        assert!(matches!(theirs.event.payload(), Payload::Json(json) if json.contains("\"n\"")), "{theirs:?}");
        assert_eq!(theirs.event.headers().get("trace"), Some("é"));

        let owner = owner(&store).await;
        let all: Vec<i64> = rows.iter().map(FetchedRow::seq).collect();
        assert_eq!(store.settle(&owner, Fence::Table, &done(&store, &all).await).await.expect("settles"), [0_i64; 0]);
        let counts = store.counts().await.expect("counts");
        assert_eq!((counts.new, counts.done, counts.dead), (0, 5, 1));
        let record = store.records("01D").await.expect("reads").pop().expect("is there");
        assert_eq!((record.status, record.seq), (3, 4), "seq follows the old primary key");
    })
    .await;
}

/// A column that an adoption or a later version would add has another meaning there; one that has to be given would keep our
/// inserts out.
#[tokio::test]
async fn a_table_of_outbox_java_with_columns_that_are_in_the_way_is_refused_untouched() {
    with_db(async |db| {
        db.execute(OUTBOX_JAVA).await;
        let store = db.options().connect().await.expect("connects");
        let refused = async |named: &str| {
            let error = store.migrate().await.expect_err(named);
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
            assert!(error.to_string().contains(named) && error.to_string().contains("nothing was changed"), "{error}");
            let tables = format!("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{}'", db.name);
            assert_eq!(db.text(&tables).await.as_deref(), Some("1"), "{named}: nothing was written");
        };
        for name in [
            "ordering_key",
            "partition",
            "handler",
            "payload_bytes",
            "content_type",
            "occurred_at",
            "queue",
            "due_at",
            "room",
            "handler_id",
            "head",
            "failing",
            "replays",
            "failures",
            "unique_key",
            "delivered_as",
        ] {
            db.execute(&format!("ALTER TABLE outbox_event ADD COLUMN `{name}` DATETIME(6)")).await;
            refused(&format!("column `{name}` is there already")).await;
            db.execute(&format!("ALTER TABLE outbox_event RENAME COLUMN `{name}` TO `their_{name}`")).await;
        }
        db.execute("ALTER TABLE outbox_event ADD COLUMN region VARCHAR(10) NOT NULL").await;
        refused("column `region` is unknown").await;
        db.execute("ALTER TABLE outbox_event MODIFY COLUMN region VARCHAR(10) NOT NULL DEFAULT 'eu'").await;
        store.migrate().await.expect("adopts");
        assert_eq!(db.write(&store, events(1)).await, pending(&store).await);
    })
    .await;
}

/// A statement that waits for a table keeps all others waiting behind it; so it gives up soon, and comes back.
#[tokio::test]
async fn writers_go_on_while_a_migration_waits_for_one_of_them() {
    with_db(async |db| {
        let store = db.store().await;
        db.execute("DELETE FROM outbox_migration WHERE version >= 4").await;
        db.execute("ALTER TABLE outbox_event DROP KEY pillarbox_heads").await;
        let insert =
            |id: &str| format!("INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('{id}', 't', '1')");
        let mut writer = db.pool.get_conn().await.expect("a connection");
        let mut open = writer.start_transaction(mysql_async::TxOpts::new()).await.expect("begins");
        mysql_async::prelude::Query::ignore(insert("open"), &mut open).await.expect("inserts");
        let others = async {
            // Twice one of them had to wait behind the migration.
            let (mut longest, mut slow, mut number) = (Duration::ZERO, 0, 0);
            while slow < 2 {
                let began = Instant::now();
                db.execute(&insert(&format!("event-{number}"))).await;
                number += 1;
                longest = longest.max(began.elapsed());
                slow += i32::from(began.elapsed() > Duration::from_secs(1));
            }
            open.commit().await.expect("commits");
            longest
        };
        let (migrated, longest) = join(store.migrate(), others).await;
        migrated.expect("migrates when the writer has ended");
        // What the migration waits for a lock, and a slow machine.
        assert!(longest < Duration::from_secs(4), "{longest:?}");
        assert_eq!(heads_index(db).await, "head,handler,failing,seq");
    })
    .await;
}

/// A table that is written anew keeps its writers waiting, which is in vain if a transaction that has read it is open in the end.
#[tokio::test]
async fn a_table_is_not_written_anew_while_a_transaction_that_has_read_it_is_open() {
    with_db(async |db| {
        first_release(db).await;
        db.execute("INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('first', 't', '1')").await;
        for _ in 0..15 {
            let twice =
                "INSERT INTO outbox_event (event_id, event_type, payload) SELECT UUID(), 't', '1' FROM outbox_event";
            db.execute(twice).await;
        }
        let store = db.options().connect().await.expect("connects");
        let mut reader = db.pool.get_conn().await.expect("a connection");
        let mut open = reader.start_transaction(mysql_async::TxOpts::new()).await.expect("begins");
        mysql_async::prelude::Query::ignore("SELECT event_id FROM outbox_event LIMIT 1", &mut open)
            .await
            .expect("reads");
        let copies = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{}' AND STATE = 'copy to tmp table'",
            db.name
        );
        let watch = async {
            while db.text(&copies).await.as_deref() == Some("0") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let insert = async {
            // Twice one had to wait behind the migration.
            let (mut longest, mut slow) = (Duration::ZERO, 0);
            while slow < 2 {
                let began = Instant::now();
                db.execute("INSERT INTO outbox_event (event_id, event_type, payload) VALUES (UUID(), 't', '1')").await;
                longest = longest.max(began.elapsed());
                slow += i32::from(began.elapsed() > Duration::from_secs(1));
            }
            longest
        };
        let others = async {
            let longest = tokio::select! {
                () = watch => panic!("the table is written anew"),
                longest = insert => longest,
            };
            open.commit().await.expect("commits");
            longest
        };
        let (migrated, longest) = join(store.migrate(), others).await;
        migrated.expect("migrates when the reader has ended");
        assert!(longest < Duration::from_secs(4), "{longest:?}");
        store.check().await.expect("is complete");
    })
    .await;
}

/// Whatever time zone a writer's session is in, the defaults are UTC.
#[tokio::test]
async fn defaults_are_utc_in_every_time_zone() {
    with_db(async |db| {
        let store = db.store().await;
        db.execute(
            "SET time_zone = '+09:00';
             INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('a', 'order.placed', '{}')",
        )
        .await;
        let age = "SELECT ABS(TIMESTAMPDIFF(SECOND, created_at, UTC_TIMESTAMP())) < 60 FROM outbox_event";
        assert_eq!(db.text(age).await.as_deref(), Some("1"));
        assert_eq!(pending(&store).await.len(), 1);
    })
    .await;
}

/// Several outboxes live in one database, told apart by their prefixes.
#[tokio::test]
async fn a_prefix_stands_before_all_tables() {
    with_db(async |db| {
        for (prefix, event) in [("shop_", "outbox_event"), ("till_", "outbox_event"), ("shop_", "events")] {
            let table = TableName::parse(&format!("{}.{event}", db.name)).and_then(|table| table.prefixed(prefix));
            let store = db.options().table(table.expect("valid")).connect().await.expect("connects");
            store.migrate().await.expect("migrates");
            store.check().await.expect("finds its tables");
            let node = NodeId::incarnate(&NodeName::of_host(), Stamp::system());
            store.join(&node, NodeMode::Partitioned, LEASE).await.expect("joins alone");
            assert_eq!(store.nodes().await.expect("lists").len(), 1, "{}", store.info().table);
        }
        let tables = "SELECT GROUP_CONCAT(TABLE_NAME ORDER BY TABLE_NAME) FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE()";
        let expected = "shop_events,shop_events_audit,shop_events_inbox,shop_events_migration,shop_events_node,shop_events_partition,shop_events_pause,\
             shop_outbox_audit,shop_outbox_event,shop_outbox_inbox,shop_outbox_migration,shop_outbox_node,shop_outbox_partition,shop_outbox_pause,\
             till_outbox_audit,till_outbox_event,till_outbox_inbox,till_outbox_migration,till_outbox_node,till_outbox_partition,till_outbox_pause";
        assert_eq!(db.text(tables).await.as_deref(), Some(expected));
    })
    .await;
}

/// Nobody else may have made a column of the name that a version adds: what it holds would be taken for a count.
#[tokio::test]
async fn a_column_of_the_same_name_and_another_kind_is_refused() {
    with_db(async |db| {
        let store = db.options().connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        db.execute("INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('waits', 't', '1')").await;
        for kind in ["INT", "VARCHAR(20) DEFAULT 'often'"] {
            db.execute("ALTER TABLE outbox_event DROP COLUMN replays").await;
            db.execute("DELETE FROM outbox_migration WHERE version >= 9").await;
            db.execute(&format!("ALTER TABLE outbox_event ADD COLUMN replays {kind}")).await;
            let error = store.migrate().await.expect_err(kind);
            assert!(error.to_string().contains("replays"), "{kind}: {error}");
            store.check().await.expect_err("no version was recorded");
        }
        db.execute("ALTER TABLE outbox_event DROP COLUMN replays").await;
        store.migrate().await.expect("migrates");
    })
    .await;
}

/// The version of one that was accepted would be recorded, although the server leaves out the other columns of the same statement.
#[tokio::test]
async fn a_column_of_the_same_name_is_refused_until_it_is_renamed_and_none_is_left_out() {
    for taken in ["failures INT", "unique_key VARBINARY(1020)", "delivered_as VARCHAR(20)"] {
        with_db(async |db| {
            let store = db.store().await;
            db.execute(
                "ALTER TABLE outbox_event DROP KEY pillarbox_unique_key;
                 ALTER TABLE outbox_event DROP COLUMN failures, DROP COLUMN unique_key, DROP COLUMN delivered_as;
                 DELETE FROM outbox_migration WHERE version >= 16",
            )
            .await;
            db.execute(&format!("ALTER TABLE outbox_event ADD COLUMN {taken}")).await;
            let (name, _) = taken.split_once(' ').expect("a type");
            for _ in 0..2 {
                let error = store.migrate().await.expect_err(taken);
                assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
                assert!(
                    error.to_string().contains(&format!("`{name}`")) && error.to_string().contains("rename"),
                    "{error}"
                );
                store.check().await.expect_err("the version is not recorded");
            }
            db.execute(&format!("ALTER TABLE outbox_event RENAME COLUMN {name} TO theirs")).await;
            store.migrate().await.expect("migrates");
            let types = "SELECT GROUP_CONCAT(COLUMN_TYPE ORDER BY COLUMN_NAME) FROM information_schema.COLUMNS
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'outbox_event'
                   AND COLUMN_NAME IN ('failures', 'unique_key', 'delivered_as')";
            assert_eq!(db.text(types).await.as_deref(), Some("varchar(300),mediumtext,varbinary(1020)"));
        })
        .await;
    }
}
