//! Databases that are not encoded in UTF8.

use std::time::Duration;

use pillarbox_core::examine::{Judgement, Thresholds};
use pillarbox_core::ownership::Fence;
use pillarbox_core::row::{Change, Expected, Verdict};
use pillarbox_core::store::{Admin as _, BegunAttempt, Examine as _, FailedAttempt, FetchedRow, Store as _};
use pillarbox_postgres::PostgresOptions;

use crate::support::{NONE, fetch, owner, unique, with_db};

/// The server counts bytes there, and an error of which it kept 500 would end within a character.
#[tokio::test]
async fn the_errors_of_failed_attempts_can_be_read_in_sql_ascii() {
    with_db(async |db| {
        let database = unique("pillarbox");
        let options = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
        db.execute(&format!("CREATE DATABASE {database} {options}")).await;
        let url = db.url_with("", "");
        let (server, _) = url.rsplit_once('/').expect("it names a database");
        let store = PostgresOptions::parse(&format!("{server}/{database}")).expect("a valid URL").connect().await;
        let store = store.expect("connects");
        store.migrate().await.expect("migrates");
        let insert =
            "INSERT INTO outbox_event (event_id, event_type, payload) SELECT i, 't', '{}' FROM generate_series(1, 3) i";
        let (client, connection) =
            tokio_postgres::connect(&format!("{server}/{database}"), tokio_postgres::NoTls).await.expect("connects");
        let (inserted, _) = tokio::join!(async move { client.batch_execute(insert).await }, connection);
        inserted.expect("inserts");

        let node = owner(&store).await;
        let error = "€".repeat(FailedAttempt::ERROR_CHARACTERS);
        let fetched = store.fetch(&fetch(10)).await.expect("fetches");
        let ids = fetched.rows.iter().map(|row| match row {
            FetchedRow::Row(row) => row.id(),
            other => panic!("{other:?}"),
        });
        let ids: Vec<_> = ids.collect();
        let verdict = |place: usize, change| Verdict { row: ids[place].clone(), expected: Expected::FIRST, change };
        let retry = Change::Retry { attempts: 1, delay: Duration::ZERO, error: Some(error.clone()) };
        let verdicts = [verdict(0, retry), verdict(1, Change::Dead { attempts: 1, error: error.clone() })];
        assert_eq!(store.settle(&node, Fence::Table, &verdicts).await.expect("settles"), NONE);
        let row = ids[2].clone();
        let begun = BegunAttempt { row, expected: Expected::FIRST, attempts: 1, error: Some(error.clone()) };
        assert!(store.begin_attempt(&node, Fence::Table, &begun).await.expect("begins"));

        let kept: String = error.chars().take(FailedAttempt::ERROR_CHARACTERS).collect();
        for id in ids {
            let record = store.record(id.seq).await.expect("is read").expect("is there");
            assert_eq!(record.last_error.as_deref(), Some(&*error));
            assert_eq!(record.failures.iter().map(|failed| &*failed.error).collect::<Vec<_>>(), [kept.as_str()]);
        }

        let examined = store.examine(&Thresholds::default()).await;
        let checked = examined.iter().find(|checked| checked.check.code == "postgres-encoding").expect("is looked for");
        let Judgement::Found { evidence, .. } = &checked.judgement else { panic!("{checked:?}") };
        assert_eq!(evidence, "server_encoding is SQL_ASCII");
        store.close().await;
        db.execute(&format!("DROP DATABASE {database} WITH (FORCE)")).await;
    })
    .await;
}
