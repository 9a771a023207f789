//! Each condition that a doctor looks for is provoked, found, and gone once it is mended.

use std::path::Path;
use std::time::Duration;

use pillarbox_core::examine::{Checked, Judgement, Thresholds};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_sqlite::SqliteStore;
use pillarbox_sqlx::begin_immediate;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::scratch::{Scratch, write};

async fn examine(store: &SqliteStore, change: impl FnOnce(&mut Thresholds)) -> Vec<Checked> {
    let mut thresholds = Thresholds::default();
    // The disk of the tests is none of theirs.
    thresholds.free_bytes = 0;
    change(&mut thresholds);
    let view = store.examiner(Duration::from_secs(2)).expect("a view");
    let results = view.examine(&thresholds).await;
    view.close().await;
    results
}

fn judgement<'a>(results: &'a [Checked], code: &str) -> &'a Judgement {
    &results.iter().find(|checked| checked.check.code == code).expect("it is looked for").judgement
}

fn found<'a>(results: &'a [Checked], code: &str) -> (&'a str, &'a str) {
    match judgement(results, code) {
        Judgement::Found { evidence, command } => (evidence, command.as_deref().unwrap_or_default()),
        other => panic!("{code}: {other:?}"),
    }
}

async fn run(store: &SqliteStore, sql: &str) {
    store.writer().execute(AssertSqlSafe(sql.to_owned())).await.expect("runs");
}

#[tokio::test]
async fn a_healthy_outbox_passes_every_check() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let results = examine(&store, |_| {}).await;
    let codes: Vec<&str> = results.iter().map(|checked| checked.check.code).collect();
    let all: Vec<&str> = pillarbox_sqlite::examine::ALL.iter().map(|check| check.code).collect();
    assert_eq!(codes, all);
    for checked in results {
        assert_eq!(checked.judgement, Judgement::Healthy, "{}", checked.check.code);
    }
}

#[tokio::test]
async fn a_reader_that_keeps_the_log_from_beginning_anew_is_found_by_its_size() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let pool = scratch.foreign_pool().await;
    let mut reader = pool.acquire().await.expect("a connection");
    let mut reading = reader.begin().await.expect("begins");
    reading.execute("SELECT count(*) FROM outbox_event").await.expect("reads");
    // More than a log keeps once it is begun anew, in one transaction.
    let large = |limits: &mut Thresholds| limits.wal_bytes = 80_000_000;
    run(
        &store,
        "INSERT INTO outbox_event (event_id, event_type, payload_bytes, content_type)
         VALUES ('large', 't', zeroblob(90000000), 'application/octet-stream')",
    )
    .await;
    let results = examine(&store, large).await;
    assert!(found(&results, "sqlite-wal-large").0.contains("bytes beside the database"));
    #[cfg(unix)]
    {
        let link = scratch.path().join("link.db");
        std::os::unix::fs::symlink(scratch.file(), &link).expect("links");
        let linked = SqliteStore::open(link.to_str().expect("a UTF-8 path")).await.expect("opens");
        assert!(found(&examine(&linked, large).await, "sqlite-wal-large").0.contains("bytes beside the database"));
        linked.close().await;
    }
    reading.rollback().await.expect("ends");
    run(&store, "PRAGMA wal_checkpoint(PASSIVE)").await;
    write(&store, 1).await;
    assert_eq!(judgement(&examine(&store, large).await, "sqlite-wal-large"), &Judgement::Healthy);
}

#[tokio::test]
async fn a_dropped_index_is_found_and_its_command_creates_it_again() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let names = ["ready", "due", "dead", "heads", "once", "unique"].map(|index| format!("outbox_event_{index}"));
    for name in names.into_iter().chain(["outbox_inbox_age".to_owned()]) {
        let definition = format!("SELECT sql FROM sqlite_schema WHERE name = '{name}'");
        let before: String =
            sqlx::query_scalar(AssertSqlSafe(definition.clone())).fetch_one(store.writer()).await.expect("is there");
        run(&store, &format!("DROP INDEX {name}")).await;
        let results = examine(&store, |_| {}).await;
        let (evidence, command) = found(&results, "sqlite-index-missing");
        assert_eq!(evidence, format!("missing: {name}"));
        run(&store, command).await;
        assert_eq!(judgement(&examine(&store, |_| {}).await, "sqlite-index-missing"), &Judgement::Healthy);
        let after: String =
            sqlx::query_scalar(AssertSqlSafe(definition)).fetch_one(store.writer()).await.expect("is there");
        let words = |sql: &str| sql.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&after), words(&before));
    }
}

#[tokio::test]
async fn rows_a_full_disk_and_a_locked_file_are_found() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    run(
        &store,
        "INSERT INTO outbox_event (event_id, event_type, payload, status, done_at)
         VALUES ('old', 't', '{}', 1, (unixepoch() - 20 * 86400) * 1000000)",
    )
    .await;
    let results = examine(&store, |limits| limits.free_bytes = u64::MAX).await;
    assert_eq!(found(&results, "sqlite-purge-behind").0, "an event that was delivered 20 days ago is still there");
    assert!(found(&results, "sqlite-disk-nearly-full").0.contains("bytes are left"));
    let file = scratch.file();
    let set = |locked: bool| {
        let mut permissions = std::fs::metadata(Path::new(&file)).expect("is there").permissions();
        permissions.set_readonly(locked);
        std::fs::set_permissions(&file, permissions).expect("sets");
    };
    set(true);
    let results = examine(&store, |_| {}).await;
    assert!(found(&results, "sqlite-read-only").0.contains("shop.db is read-only"));
}

#[tokio::test]
async fn an_examination_waits_for_no_writer_and_keeps_none_waiting() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let mut writing = begin_immediate(store.writer()).await.expect("begins");
    (&mut *writing)
        .execute("INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('e', 't', '{}')")
        .await
        .expect("writes");
    let results = examine(&store, |_| {}).await;
    for checked in results {
        assert_eq!(checked.judgement, Judgement::Healthy, "{}", checked.check.code);
    }
    let view = store.examiner(Duration::from_secs(2)).expect("a view");
    assert_eq!(view.backlog().await.expect("reads").due, 0, "what is not committed is not seen");
    writing.commit().await.expect("commits");
    assert_eq!(view.backlog().await.expect("reads").due, 1);
    view.close().await;
    assert_eq!(store.backlog().await.expect("the store is as it was").due, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_with_two_names_is_found() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let other = scratch.path().join("other.db");
    std::fs::hard_link(scratch.file(), &other).expect("links");
    let results = examine(&store, |_| {}).await;
    assert!(found(&results, "sqlite-two-names").0.contains("has 2 names"));
    std::fs::remove_file(&other).expect("removes");
    assert_eq!(judgement(&examine(&store, |_| {}).await, "sqlite-two-names"), &Judgement::Healthy);
}

#[tokio::test]
async fn a_damaged_database_is_found() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    write(&store, 2000).await;
    // The log would mend what is damaged below.
    run(&store, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    store.close().await;
    drop(store);
    // The schema is at the beginning.
    let mut bytes = std::fs::read(scratch.file()).expect("reads");
    let half = bytes.len() / 2;
    bytes[half..].fill(0xff);
    std::fs::write(scratch.file(), bytes).expect("writes");
    let store = SqliteStore::open(&scratch.file()).await.expect("opens");
    let results = examine(&store, |_| {}).await;
    assert!(found(&results, "sqlite-corrupt").0.contains("malformed"));
}

/// Damage is not ruled out by questions that the database refuses for another reason.
#[tokio::test]
async fn a_database_that_cannot_be_read_is_not_said_to_be_undamaged() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    run(&store, "ALTER TABLE outbox_event RENAME TO put_aside").await;
    let results = examine(&store, |_| {}).await;
    assert!(matches!(judgement(&results, "sqlite-corrupt"), Judgement::NotChecked { .. }), "{results:?}");
}

#[tokio::test]
async fn a_table_without_numbers_for_its_rows_is_found_and_its_remedy_works() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    write(&store, 1).await;
    let insert =
        "INSERT INTO outbox_event (seq, event_id, event_type, payload) VALUES (9223372036854775807, 'last', 't', '{}')";
    run(&store, insert).await;
    let results = examine(&store, |_| {}).await;
    let (evidence, command) = found(&results, "sqlite-numbers-used-up");
    assert!(evidence.contains("9223372036854775807"), "{evidence}");
    let error = store
        .writer()
        .execute("INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('n', 't', '{}')")
        .await;
    assert!(error.expect_err("there is none left").to_string().contains("full"));
    run(&store, "DELETE FROM outbox_event WHERE event_id = 'last'").await;
    run(&store, command).await;
    assert_eq!(judgement(&examine(&store, |_| {}).await, "sqlite-numbers-used-up"), &Judgement::Healthy);
    write(&store, 1).await;
}
