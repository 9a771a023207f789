use pillarbox_core::event::{Envelope, Payload};
use pillarbox_core::store::{Fetch, FetchedRow, Store as _};
use pillarbox_core::write::insert;
use pillarbox_sqlx::begin_immediate;

use crate::scratch::{Scratch, pending};

#[tokio::test]
async fn payloads_come_back_byte_for_byte() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let texts = [
        r#"{ "b" : 1,   "a":1.0, "a":2e400 }"#,
        r#""\u0000 \ud83d\ude00 😀 \/ é é""#,
        "  [1 ,\n\t2]\r\n",
        "null",
        "123456789012345678901234567890.10",
    ];
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut events: Vec<Envelope> = texts.map(|text| Envelope::json("t", text).expect("valid")).into();
    for bytes in [every_byte.clone(), Vec::new(), vec![0]] {
        events.push(Envelope::builder("t").payload_bytes("application/x-protobuf", bytes).build().expect("valid"));
    }
    let expected: Vec<Payload> = events.iter().map(|event| event.payload().clone()).collect();
    let mut tx = begin_immediate(store.writer()).await.expect("begins");
    let seqs = insert(&store, &mut tx, events).await.expect("inserts");
    tx.commit().await.expect("commits");
    assert!(seqs.is_sorted());
    let read: Vec<Payload> = pending(&store).await.into_iter().map(|row| row.event.payload().clone()).collect();
    assert_eq!(read, expected);
}

/// SQLite takes a number that a program made up, also one below those that it gives itself.
#[tokio::test]
async fn rows_with_numbers_below_one_are_read() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    for seq in [0, -7] {
        let insert = "INSERT INTO outbox_event (seq, event_id, event_type, payload) VALUES (?1, 'e' || ?1, 't', '{}')";
        sqlx::query(insert).bind(seq).execute(store.writer()).await.expect("inserts");
    }
    let read: Vec<i64> = pending(&store).await.into_iter().map(|row| row.seq).collect();
    assert_eq!(read, [-7, 0]);
}

#[tokio::test]
async fn more_rows_than_one_statement_can_bind_keep_their_order() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let mut tx = begin_immediate(store.writer()).await.expect("begins");
    let events: Vec<_> = (0..5_100).map(|number| Envelope::json("t", number.to_string()).expect("valid")).collect();
    let seqs = insert(&store, &mut tx, events).await.expect("inserts");
    tx.commit().await.expect("commits");
    let rows = pending(&store).await;
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), seqs);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row.event.payload().as_json(), Some(number.to_string().as_str()));
    }
}

#[tokio::test]
async fn text_that_is_no_utf_8_breaks_its_own_row_only() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    let row = "INSERT INTO outbox_event (event_id, event_type, payload) VALUES";
    for values in ["('a', 't', CAST(x'22ff22' AS TEXT))", "('b', 't', NULL)", "('c', '', '{}')", "('d', 't', '{}')"] {
        sqlx::query(sqlx::AssertSqlSafe(format!("{row} {values}"))).execute(store.writer()).await.expect("inserts");
    }
    let fetched = store.fetch(&Fetch::new(10)).await.expect("fetches");
    let reasons: Vec<Option<&str>> = fetched
        .rows
        .iter()
        .map(|row| match row {
            FetchedRow::Row(_) => None,
            FetchedRow::Broken(row) => Some(row.reason.as_str()),
        })
        .collect();
    assert!(reasons[0].is_some_and(|reason| reason.contains("utf-8")), "{reasons:?}");
    assert!(reasons[1].is_some_and(|reason| reason.contains("both NULL")), "{reasons:?}");
    assert!(reasons[2].is_some_and(|reason| reason.contains("event_type")), "{reasons:?}");
    assert_eq!(reasons[3], None);
}

#[tokio::test]
async fn a_row_of_which_the_text_is_no_utf_8_counts_with_its_bytes() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    for payload in ["'\"' || printf('%5000d', 1) || CAST(x'ff22' AS TEXT)", "'{}'"] {
        let row = "INSERT INTO outbox_event (event_id, event_type, payload) VALUES (hex(randomblob(8)), 't'";
        let row = format!("{row}, {payload})");
        sqlx::query(sqlx::AssertSqlSafe(row)).execute(store.writer()).await.expect("inserts");
    }
    let fetched = store.fetch(&Fetch { max_bytes: 5000, ..Fetch::new(10) }).await.expect("fetches");
    assert_eq!((fetched.rows.len(), fetched.truncated), (1, true));
}

#[tokio::test]
async fn a_value_of_another_type_is_refused_where_it_is_written() {
    let scratch = Scratch::new();
    let store = scratch.store().await;
    for values in ["('a', 't', x'00', 0)", "('a', 't', '{}', 'many')", "('a', 't', '{}', -1)"] {
        let sql = format!("INSERT INTO outbox_event (event_id, event_type, payload, attempts) VALUES {values}");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(store.writer()).await.expect_err(values);
    }
}
